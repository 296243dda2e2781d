/** Load tests of several hosts become one, and rounds become an answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { build } from 'hdr-histogram-js';
import { encode, merge } from '../figures/histogram.js';
import { mergeResults } from '../figures/merge.js';
import { FORMAT, type Results, type Sample } from '../figures/results.js';
import { dropExtremes, exitCodeOf, summarise } from '../figures/summary.js';
import { drivenOf } from '../driver/memtier.js';
import { schedule, timeOf } from '../rounds/schedule.js';
import { loadProfile } from '../workload/load.js';

const point = { connections: 10, pipeline: 1 };

function sample(more: Partial<Sample> = {}): Sample {
  const histogram = build({ highestTrackableValue: 1_000_000, numberOfSignificantValueDigits: 3 });
  histogram.recordValueWithCount(1_000, 10);
  const driven = {
    startedAt: 1_000_000,
    durationMs: 2_000,
    doubtful: false,
    operations: 2_000,
    counts: { INCR: 2_000 },
    histogram: encode(histogram),
    percentiles: null,
    cpu: 0.5,
  };
  const series = [1_000, 1_001].map((at) => ({ at, operations: 1_000, p50: 1, p99: 2 }));
  return { side: 'source', round: 0, point, hosts: 1, work: { source: 1.5 }, series, ...driven, ...more };
}

const results = (prefix: string, samples: readonly Sample[], found = 2_000): Results => ({
  ...{
    format: FORMAT,
    startedAt: '2026-01-01T00:00:00.000Z',
    hosts: [prefix],
    driver: 'memtier',
    profile: loadProfile('rate-limits'),
    prefix,
  },
  ...{ rounds: 1, seconds: 2, warmUp: 0, rate: null, loopback: false, points: [point], samples },
  sides: [{ id: 'source', role: 'source', title: 'Redis 7', where: 'redis://a:1' }],
  counters: [{ side: 'source', server: 'source', expected: 2_000, found }],
});

test('two load hosts become one: commands, seconds and histograms add up, the server’s CPU does not', () => {
  const late = sample({
    startedAt: 1_000_100,
    series: [1_001, 1_002].map((at) => ({ at, operations: 500, p50: 1, p99: 2 })),
  });
  const merged = mergeResults([results('a:', [sample()]), results('b:', [late])]);
  const [one] = merged.samples;
  assert.equal(one.operations, 4_000);
  assert.deepEqual(one.counts, { INCR: 4_000 });
  assert.equal(merge([one.histogram!])!.totalCount, 20);
  assert.deepEqual(
    one.series,
    [{ at: 1_001, operations: 1_500, p50: null, p99: null }],
    'only the second in which both were loading',
  );
  assert.deepEqual([one.work.source, one.cpu, one.hosts], [1.5, 1, 2]);
  assert.deepEqual(merged.counters, [{ side: 'source', server: 'source', expected: 4_000, found: 4_000 }]);
  assert.deepEqual(merged.hosts, ['a:', 'b:']);
});

test('increments that one host lost are not evened out by another that has too many', () => {
  const merged = mergeResults([results('a:', [sample()], 1_990), results('b:', [sample()], 2_010)]);
  assert.notEqual(merged.counters[0].expected, merged.counters[0].found);
  assert.match(summarise(merged).warnings[0], /lost: 10/);
});

test('a run that measured nothing, or added no counters up, is inconclusive', () => {
  const held = results('a:', [sample()]);
  assert.equal(exitCodeOf(held), 0);
  assert.equal(exitCodeOf(results('a:', [sample()], 1_999)), 1);
  assert.equal(exitCodeOf({ ...held, samples: [] }), 3);
  assert.equal(exitCodeOf({ ...held, counters: [] }), 3);
  assert.equal(exitCodeOf({ ...held, counters: [{ side: 'source', server: 'source', expected: 0, found: 0 }] }), 3);
  const soak = { restarted: null, downtime: null, interrupted: [], tallies: [], longestWaitMs: 0 };
  assert.equal(exitCodeOf({ ...held, soak }), 3);
  const tally = { server: 'source', acknowledged: 5, attempted: 6, found: 5 };
  assert.deepEqual(
    [tally, { ...tally, found: 4 }].map((each) => exitCodeOf({ ...held, soak: { ...soak, tallies: [each] } })),
    [0, 1],
  );
});

test('hosts that did not load together, another test, and the same run twice are refused', () => {
  const apart = results('b:', [sample({ startedAt: 1_001_000 })]);
  assert.throws(
    () => mergeResults([results('a:', [sample()]), apart]),
    /source, round 1: the hosts loaded it together for 1\.0 of 2\.0 s/,
  );
  assert.throws(
    () => mergeResults([results('a:', [sample()]), { ...results('b:', [sample()]), seconds: 3 }]),
    /their seconds differ/,
  );
  assert.throws(() => mergeResults([results('a:', [sample()]), results('a:', [sample()])]), /have the prefix a:/);
  assert.throws(() => mergeResults([results('a:', [sample()])]), /at least two/);
});

test('from five rounds on, the fastest and the slowest are dropped', () => {
  const rounds = [3, 1, 2, 5, 4].map((operations, round) => sample({ operations, round }));
  assert.deepEqual(
    dropExtremes(rounds).kept.map(({ operations }) => operations),
    [3, 2, 4],
  );
  assert.equal(dropExtremes(rounds.slice(1)).kept.length, 4);
});

test('in each round every side has its turn, and another one is first; a timetable leaves room between turns', () => {
  const turns = schedule(['a', 'b', 'c'], [point], { rounds: 2, seconds: 10, warmUp: 4 });
  assert.deepEqual(
    turns.map(({ side, round, seconds }) => `${side}${round}/${seconds}`),
    ['a-1/4', 'b-1/4', 'c-1/4', 'a0/10', 'b0/10', 'c0/10', 'b1/10', 'c1/10', 'a1/10'],
  );
  assert.equal(timeOf(turns, 4), 3 * (4 + 3) + (10 + 3));
});

test('an impossible duration from the load generator is replaced by the requested one, and marked doubtful', () => {
  const read = (ms: number) => {
    const incrs = { Count: 500, 'Time-Serie': { 0: { Count: 500, 'p50.00': 1, 'p99.00': 2 } } };
    return drivenOf(
      {
        'ALL STATS': { Runtime: { 'Start time': 5_000, 'Total duration': ms }, Incrs: incrs, Totals: incrs },
      } as unknown as Parameters<typeof drivenOf>[0],
      1,
    );
  };
  assert.deepEqual([read(1_050).durationMs, read(1_050).doubtful], [1_050, false]);
  assert.deepEqual([read(18).durationMs, read(18).doubtful], [1_000, true]);
  assert.deepEqual(read(18).counts, { INCR: 500 });
  const doubtful = { ...results('a:', [sample({ doubtful: true })]), rounds: 6 };
  assert.match(summarise(doubtful).warnings.join(), /in 1 of 1 measurements the load generator’s clock was off/);
});
