/** How the bench computes its figures: medians, CPU of threads, ratios within a round. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median } from '../figures/median.js';
import { keptRate, ratioOf, rowOf, type Sample } from '../proxy/bench/figures.js';
import { isPeer, titleOf, type PeerName } from '../proxy/bench/peers.js';
import { byClients, parsePointKey, pointKey, pointsOf, type Point } from '../proxy/bench/point.js';
import { costsOf, figuresOf } from '../proxy/bench/record.js';
import { scaled, type Costs } from '../proxy/bench/scaling.js';
import { spentBy } from '../proxy/bench/threads.js';
import { judge, parseRequirement, REQUIREMENTS, ruleOf } from '../proxy/requirements.js';
import { threadOf, threadsOf } from '../rig/proc.js';
import { rotate } from '../rounds/schedule.js';

const AT: Point = { pipeline: 16, clients: 50, rate: null };
const FIXED: Point = { pipeline: 1, clients: 50, rate: 15_000 };

const sample = (peer: PeerName, round: number, more: Partial<Sample> = {}): Sample => ({
  ...{ peer, round, ...AT, opsPerSecond: 100, operations: 1, p50: 1, p99: 1, cpu: 1, threadCpu: 1, threads: [] },
  ...{ loadCpu: 1, sourceCpu: 1, sourceThreadCpu: 1, targetCpu: 1, targetThreadCpu: 1 },
  ...{ rss: null, peakRss: null, mirrored: 1, mirrorLagMs: 0, equal: null },
  ...more,
});

/** As of proc(5), with user and system time in ticks. */
const stat = (tid: number, name: string, utime: number, stime: number): string =>
  `${tid} (${name}) S 1 2 3 0 -1 4194560 11 12 13 14 ${utime} ${stime} 0 0 20 0 11 0 123 456 789`;

test('the median is the middle value, or the mean of the two in the middle', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([10, 9, 1, 2]), 5.5);
  assert.equal(median([]), null);
});

test('a thread has the nanoseconds of schedstat, or the ticks of stat where the kernel does not count', () => {
  assert.deepEqual(threadOf(stat(7, 'node', 100, 50), '2500000000 12 3\n'), { tid: 7, name: 'node', cpu: 2.5 });
  assert.equal(threadOf(stat(7, 'node', 100, 50), '').cpu, 1.5);
  assert.deepEqual(threadOf(stat(8, 'wrk:worker (0) x', 100, 50), '0 0 0\n'), {
    tid: 8,
    name: 'wrk:worker (0) x',
    cpu: 1.5,
  });
});

test('the threads of this process are those of the kernel, and its main thread works', () => {
  const before = threadsOf(process.pid);
  const start = process.cpuUsage();
  while (process.cpuUsage(start).user < 30_000);
  const [main, ...others] = spentBy(before, threadsOf(process.pid), process.pid);
  assert.ok(main.cpu > 0.01 && main.cpu < 1, `${main.cpu} s`);
  assert.ok(others.length < before.length);
});

test('the sequencing thread is first even where another is busier; a new thread counts, an idle one does not', () => {
  const thread = (tid: number, cpu: number) => ({ tid, name: `t${tid}`, cpu });
  const [before, after] = [
    [thread(1, 5), thread(2, 5), thread(3, 5), thread(9, 1)],
    [thread(1, 6), thread(2, 8), thread(3, 5), thread(4, 2)],
  ];
  const names = (first: number | 'busiest') => spentBy(before, after, first).map(({ name, cpu }) => `${name}=${cpu}`);
  assert.deepEqual(names(1), ['t1=1', 't2=3', 't4=2']);
  assert.deepEqual(names('busiest'), ['t2=3', 't4=2', 't1=1']);
});

test('a ratio compares the two peers within each round, not their medians', () => {
  const samples = [210, 380, 690].flatMap((ops, round) => [
    sample('envoy', round, { opsPerSecond: 100 * (round + 1) }),
    sample('shadow', round, { opsPerSecond: ops }),
  ]);
  assert.deepEqual(ratioOf(samples, 'shadow', 'ops/envoy', AT), { median: 2.1, min: 1.9, max: 2.3 });
  assert.equal(ratioOf(samples, 'shadow', 'ops/twemproxy', AT), null);
  assert.equal(ratioOf(samples, 'shadow', 'ops/envoy', { ...AT, clients: 1000 }), null);
});

test('the sequencing thread is compared with Redis alone, the whole process with Envoy', () => {
  const samples = [
    sample('direct', 0, { cpu: 3, threadCpu: 2 }),
    sample('envoy', 0, { cpu: 8, threadCpu: 8 }),
    sample('shadow', 0, { cpu: 4, threadCpu: 1 }),
  ];
  const { ratios } = rowOf(samples, 'shadow', AT);
  assert.equal(ratios['thread/redis']?.median, 0.5);
  assert.equal(ratios['cpu/envoy']?.median, 0.5);
  assert.equal(ratios['p99/redis'], undefined, 'as fast as replies come, latency is the load');
});

test('latency is compared at a fixed rate only, and nothing else there', () => {
  const samples = (['direct', 'shadow'] as const).map((peer, i) => sample(peer, 0, { ...FIXED, p99: 1 + i }));
  assert.deepEqual(Object.keys(rowOf(samples, 'shadow', FIXED).ratios), ['p99/redis']);
});

test('a bound holds at its value and is missed beyond it', () => {
  const samples = [sample('envoy', 0), sample('shadow', 0, { opsPerSecond: 200, cpu: 0.3 })];
  const verdict = (rule: string): string => judge(samples, parseRequirement(rule), 2).verdict;
  assert.deepEqual(['ops/envoy@16>=2', 'ops/envoy@16>=2.01'].map(verdict), ['holds', 'missed']);
  assert.deepEqual(['cpu/envoy@16<=0.3', 'cpu/envoy@16<=0.29'].map(verdict), ['holds', 'missed']);
  for (const rule of ['ops/envoy@1>=0.1', 'ops/envoy@16,1000>=0.1', 'ops/twemproxy@16>=0'])
    assert.equal(verdict(rule), 'not measured', rule);
});

test('what a proxy without any CPU time would miss, too, is out of reach', () => {
  // The load and both servers take 2 s a million: two cores serve a million a second without a proxy.
  const rest = { loadCpu: 1, sourceCpu: 0.4, targetCpu: 0.6 };
  const samples = [
    sample('envoy', 0, { opsPerSecond: 400_000 }),
    sample('shadow', 0, { ...rest, opsPerSecond: 800_000 }),
  ];
  const judged = (rule: string) => judge(samples, parseRequirement(rule), 2);
  const { verdict, reach } = judged('ops/envoy@16>=2.51');
  assert.deepEqual([verdict, reach], ['out of reach', 2.5]);
  assert.equal(judged('ops/envoy@16>=2.5').verdict, 'missed');
  assert.equal(judged('ops/envoy@16>=2').verdict, 'holds');
  assert.equal(judged('cpu/envoy@16<=0.1').reach, null);
});

test('a p99 is not judged where the load or a peer could not keep the rate', () => {
  const at = (direct: number, shadow: number) => [
    sample('direct', 0, { ...FIXED, opsPerSecond: direct }),
    sample('shadow', 0, { ...FIXED, opsPerSecond: shadow }),
  ];
  const verdict = (samples: Sample[]): string => judge(samples, parseRequirement('p99/redis@1<=1.3'), 2).verdict;
  assert.equal(verdict(at(14_990, 14_980)), 'holds');
  assert.equal(verdict(at(14_990, 12_000)), 'rate not kept');
  assert.equal(verdict(at(12_000, 14_990)), 'rate not kept');
  assert.equal(keptRate({ opsPerSecond: 10, rate: null }), true);
});

test('requirements are read as they are written; anything else is refused', () => {
  for (const { says, ...rule } of REQUIREMENTS) {
    const { says: _, ...read } = parseRequirement(ruleOf({ ...rule, says }));
    assert.deepEqual(read, rule);
    assert.match(says, /^[A-Z].*\.$/);
  }
  for (const wrong of [
    'envoy@16=2',
    'ops/envoy',
    'ops/envoy@x>=1',
    'ops/nginx@1>=1',
    'ops/envoy@1>=',
    'cpu/envoy@1<=-1',
  ])
    assert.throws(() => parseRequirement(wrong), /RATIO@PIPELINE/, wrong);
});

test('one round with different values on the two servers makes the row unequal', () => {
  const samples = [true, false, true].map((equal, round) => sample('shadow', round, { equal }));
  assert.equal(rowOf(samples, 'shadow', AT).equal, false);
  assert.equal(rowOf(samples.slice(2), 'shadow', AT).equal, true);
  assert.equal(rowOf([sample('direct', 0)], 'direct', AT).equal, null);
});

test('every round begins with another peer and leaves none out', () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((by) => rotate(['a', 'b', 'c'], by).join('')),
    ['abc', 'bca', 'cab', 'abc'],
  );
});

test('the key of a load is read as it is written, and is no other key', () => {
  const points = pointsOf([1, 16], [50, 1000], 15_000);
  assert.deepEqual(
    points.map((point) => `shadow-2${pointKey(point)}`),
    ['shadow-2@1', 'shadow-2@16', 'shadow-2@1,1000', 'shadow-2@16,1000', 'shadow-2@1 at 15000/s'],
  );
  for (const point of points)
    assert.deepEqual(parsePointKey(`shadow-2${pointKey(point)}`), { peer: 'shadow-2', ...point });
  assert.equal(parsePointKey('shadow@1 threads'), null);
  assert.equal(pointsOf([1], [50], 0).length, 1);
  const groups = byClients(pointsOf([1, 16], [1000, 50], 15_000));
  assert.deepEqual(
    groups.map((group) => group.map(pointKey)),
    [
      ['@1', '@16', '@1 at 15000/s'],
      ['@1,1000', '@16,1000'],
    ],
    'the fewest clients first',
  );
});

test('the shadow proxy is a peer with the defaults of the plan, or with a number of front threads', () => {
  assert.deepEqual(['shadow', 'shadow-0', 'shadow-2', 'shadow-', 'shadow-two', 'redis'].map(isPeer), [
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
  assert.equal(titleOf('shadow-2'), 'shadow proxy, 2 front threads');
});

test('what is recorded has its medians, its threads, its costs and its ratios', () => {
  const threads = [5, 4, 3, 2, 1].map((cpu) => ({ name: 'node', cpu }));
  const samples = [
    sample('direct', 0, { threadCpu: 2, cpu: 2.004 }),
    sample('shadow', 0, { opsPerSecond: 100.4, cpu: 15.126, threadCpu: 5, threads, rss: 3 * 2 ** 20 }),
  ];
  const figures = figuresOf((['direct', 'shadow'] as const).map((peer) => rowOf(samples, peer, AT)));
  assert.deepEqual(figures['direct@16'], {
    ...{ 'ops/s': 100, 'p50 ms': 1, 'p99 ms': 1 },
    ...{ 'CPU s per million': 2, 'of the sequencing thread': 2 },
  });
  assert.deepEqual(figures['shadow@16'], {
    ...{ 'ops/s': 100, 'p50 ms': 1, 'p99 ms': 1 },
    ...{ 'CPU s per million': 15.13, 'of the sequencing thread': 5, 'RSS MiB': 3 },
  });
  assert.deepEqual(figures['shadow@16 threads'], { first: 5, second: 4, third: 3, further: 3 });
  assert.deepEqual(figures['shadow@16 thread/redis'], { median: 2.5, lowest: 2.5, highest: 2.5 });
  assert.equal(figures['shadow@16 costs']!.otherThread, 4);
  assert.equal('direct@16 costs' in figures, false);
  assert.equal(costsOf(rowOf([], 'shadow', AT)), null);
});

const COSTS: Costs = {
  ...{ load: 4, redis: 2, redisThread: 1.9, keydb: 3, keydbThread: 2.5 },
  ...{ proxy: 7, sequencingThread: 5, otherThread: 1 },
};

test('on few cores all CPU time limits a shard, on many its slowest thread', () => {
  assert.deepEqual(scaled(COSTS, 2), { cores: 2, withLoad: 125_000, withoutLoad: 1e6 / 6, limit: 'all cores' });
  assert.deepEqual(scaled(COSTS, 4), {
    ...{ cores: 4, withLoad: 200_000, withoutLoad: 200_000 },
    limit: 'the sequencing thread',
  });
  assert.equal(scaled({ ...COSTS, keydbThread: 6 }, 8).limit, 'KeyDB');
  assert.equal(scaled({ ...COSTS, otherThread: 6 }, 8).withoutLoad, 1e6 / 6);
});
