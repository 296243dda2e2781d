/** What is derived from a plan before it is used. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { otherShard, problemsOf, smallPlan, printProblems, toPlan, type PlanObject } from '../../support/plans.js';

/** A change of the small plan, and what must be said about it; undefined where nothing is wrong. */
type Case = readonly [name: string, change: (plan: PlanObject) => void, expected?: RegExp];

const withSecond = (change: (second: PlanObject, plan: PlanObject) => void) => (plan: PlanObject) => {
  const second = otherShard();
  change(second, plan);
  plan.shards.push(second);
};

/** An endpoint of ElastiCache as the source. */
const cache = (host: string) => (plan: PlanObject) => {
  plan.shards[0].source = `rediss://${host}.use1.cache.amazonaws.com:6379`;
};

/** A receiver of notifications. */
const notifying =
  (...notify: readonly object[]) =>
  (plan: PlanObject): void => {
    plan.notify = notify;
  };

const groups: Record<string, readonly Case[]> = {
  'receivers of notifications have what their kind needs, and no secret is in a message:': [
    [
      'Slack and Alertmanager',
      notifying({ kind: 'slack', url: 'https://x' }, { kind: 'alertmanager', url: 'http://x:9093/' }),
    ],
    ['no URL', notifying({ kind: 'slack' }), /^notify\.0\.url: is missing: slack needs url or urlFile$/],
    [
      'a webhook that nobody could verify',
      notifying({ kind: 'webhook', url: 'https://x' }),
      /^notify\.0\.secretFile: is missing: webhook needs a file with its secret$/,
    ],
    ['no URL at all', notifying({ kind: 'slack', url: 'hidden-token' }), /^notify\.0\.url: has no http or https URL$/],
    [
      'another protocol',
      notifying({ kind: 'slack', url: 'redis://hidden-token' }),
      /^notify\.0\.url: has no http or https URL$/,
    ],
    [
      'a file that is not there',
      notifying({ kind: 'slack', urlFile: 'no' }),
      /^notify\.0\.urlFile: is \/nowhere\/no, which cannot be read \(ENOENT\)$/,
    ],
    [
      'two of one name',
      notifying({ kind: 'slack', url: 'https://x' }, { kind: 'slack', url: 'https://y' }),
      /^notify\.1\.name: is the name of notify\[0\] too: give each receiver its own name/,
    ],
    [
      'a slip',
      notifying({ kind: 'slak', url: 'https://x' }),
      /^notify\.0\.kind: is "slak": webhook, slack, pagerduty or alertmanager is allowed; did you mean slack\?$/,
    ],
  ],
  'endpoints of ElastiCache are refused by what their names say:': [
    ['the primary, with TLS', cache('master.cache-a.abc123')],
    ['the primary, without TLS', cache('cache-a.abc123.ng.0001')],
    ['one node, which may be all there is', cache('cache-a-001.cache-a.abc123')],
    ['a name that ends like a reader, and is a primary', cache('master.read-ro.abc123')],
    [
      'the reader, with TLS',
      cache('replica.cache-a.abc123'),
      /^shards\.0\.source: is replica\.cache-a\.abc123\.use1.*a reader endpoint.*refuse writes.*Use the primary endpoint, master\.cache-a\.abc123\.use1\.cache\.amazonaws\.com$/,
    ],
    [
      'the reader, without TLS',
      cache('cache-a-ro.abc123.ng.0001'),
      /Use the primary endpoint, cache-a\.abc123\.ng\.0001\.use1\.cache\.amazonaws\.com$/,
    ],
    [
      'cluster mode enabled, with TLS',
      cache('clustercfg.cache-a.abc123'),
      /^shards\.0\.source: is clustercfg\..*cluster mode enabled, which is not supported.*cluster mode disabled first/,
    ],
    [
      'cluster mode enabled, without TLS',
      cache('cache-a.abc123.clustercfg'),
      /cluster mode enabled, which is not supported/,
    ],
    [
      'Serverless',
      cache('cache-a-abc123.serverless'),
      /^shards\.0\.source: is cache-a-abc123\.serverless\..*ElastiCache Serverless, which is not supported.*CLIENT LIST and CLIENT KILL/,
    ],
    [
      'Serverless in China, as the target, in upper case',
      (plan) => (plan.shards[0].target = 'rediss://A-1.SERVERLESS.cnn1.cache.amazonaws.com.cn:6379'),
      /^shards\.0\.target: is A-1\.SERVERLESS.*which is not supported/,
    ],
    ['another domain', (plan) => (plan.shards[0].source = 'redis://x.serverless.example.com:6379')],
  ],
  'names are used once:': [
    ['two shards', withSecond((second) => (second.name = 'A')), /^shards\.1\.name: is the name of shards\[0\] too/],
    [
      'two workloads',
      (plan) => plan.workloads.push({ name: 'sessions', keys: ['x'] }),
      /^workloads\.1\.name: is the name of workloads\[0\] too/,
    ],
    ['a workload called default', (plan) => (plan.workloads[0].name = 'default'), /^workloads\.0\.name: is "default"/],
    [
      'a pattern that an earlier workload has',
      (plan) => plan.workloads.push({ name: 'b', keys: ['x', 'session:*'] }),
      /^workloads\.1\.keys\.1: is "session:\*", which workloads\[0\] has/,
    ],
    [
      'a name that is no directory',
      (plan) => (plan.shards[0].name = '../x'),
      /^shards\.0\.name: is "..\/x": letters, digits/,
    ],
  ],
  'every pattern has keys of its own:': [
    [
      'one that takes all of a later one',
      (plan) => plan.workloads.unshift({ name: 'all', keys: ['*'] }),
      /^workloads\.1\.keys\.0: is "session:\*", whose keys workloads\[0\] \(all\) has by "\*": the first workload that matches a key has it/,
    ],
    [
      'a narrower one behind',
      (plan) => plan.workloads.push({ name: 'eu', keys: ['x', 'session:eu:*'] }),
      /^workloads\.1\.keys\.1: is "session:eu:\*", whose keys workloads\[0\] \(sessions\) has/,
    ],
    ['a narrower one before', (plan) => plan.workloads.unshift({ name: 'eu', keys: ['session:eu:*'] })],
    ['a narrower one in the same workload', (plan) => plan.workloads[0].keys.push('session:eu:*')],
    [
      'two that take all of a third',
      (plan) =>
        plan.workloads.push(
          { name: 'a', keys: ['a[a-m]*'] },
          { name: 'b', keys: ['a[n-z]*', 'b?'] },
          { name: 'c', keys: ['aa', 'a[l-o]x'] },
        ),
      /^workloads\.3\.keys\.0: is "aa", .*workloads\.3\.keys\.1: is "a\[l-o\]x", whose keys several earlier workloads have together/s,
    ],
    [
      'channels that an earlier one takes',
      (plan) => {
        plan.workloads[0].channels = ['news.*'];
        plan.workloads.push({ name: 'b', keys: ['x'], channels: ['news.eu'] });
      },
      /^workloads\.1\.channels\.0: is "news\.eu", whose channels workloads\[0\] \(sessions\) has by "news\.\*"/,
    ],
    [
      'one without its bracket',
      (plan) => (plan.workloads[0].keys = ['a[b']),
      /^workloads\.0\.keys\.0: is "a\[b", which has a \[ without a \]: close it/,
    ],
    [
      'one that escapes nothing',
      (plan) => (plan.shards[0].owns = ['a\\']),
      /^shards\.0\.owns\.0: is "a\\\\", which ends with a backslash/,
    ],
  ],
  'addresses are opened once:': [
    [
      'two shards on one',
      withSecond((second) => (second.listen = 'redis://127.0.0.1:6400')),
      /^shards\.1\.listen: is 127\.0\.0\.1:6400, which shards\.0\.listen uses/,
    ],
    ['one on all hosts', withSecond((second) => (second.listen = 'redis://0.0.0.0:6400')), /uses already/],
    [
      'any free port twice',
      withSecond((second, plan) => (second.listen = plan.shards[0].listen = 'redis://127.0.0.1:0')),
    ],
    [
      'the admin on a shard',
      (plan) => (plan.admin = { listen: '127.0.0.1:6400' }),
      /^admin\.listen: is 127\.0\.0\.1:6400, which shards\.0\.listen uses/,
    ],
    [
      'shards with an admin of their own',
      withSecond((second, plan) => {
        plan.shards[0].admin = { listen: '127.0.0.1:9401' };
        second.admin = { listen: '127.0.0.1:9402' };
      }),
    ],
    [
      'shards that share an admin',
      withSecond((second, plan) => (second.admin = plan.shards[0].admin = { listen: '127.0.0.1:9401' })),
    ],
    [
      'shards that share an admin with two tokens',
      withSecond((second, plan) => {
        plan.shards[0].admin = { listen: '127.0.0.1:9401', token: 'x' };
        second.admin = { listen: '127.0.0.1:9401', token: 'y' };
      }),
      /^shards\.1\.admin\.listen: is that of shards\.0\.admin, with another token/,
    ],
  ],
  'the admin beyond loopback needs a token:': [
    [
      'without',
      (plan) => (plan.admin = { listen: '0.0.0.0:9400' }),
      /^admin\.listen: is 0\.0\.0\.0:9400, beyond loopback: add token or tokenFile/,
    ],
    ['with', (plan) => (plan.admin = { listen: '0.0.0.0:9400', token: 'x' })],
    [
      'of a shard',
      (plan) => (plan.shards[0].admin = { listen: '[::]:9401' }),
      /^shards\.0\.admin\.listen: is \[::\]:9401, beyond loopback/,
    ],
    ['on loopback', (plan) => (plan.admin = { listen: '[::1]:9400' })],
  ],
  'servers are told apart:': [
    [
      'source and target the same',
      (plan) => (plan.shards[0].target = plan.shards[0].source),
      /^shards\.0\.target: is the source itself/,
    ],
    [
      'two shards of one source',
      withSecond((second, plan) => (second.source = plan.shards[0].source)),
      /^shards\.1\.source: is the source of shards\[0\] too/,
    ],
    [
      'two shards of one master',
      withSecond((second, plan) => {
        plan.shards[0].source = 'redis+sentinel://s1,s2/m';
        second.source = 'redis+sentinel://s2,s3/m';
      }),
      /^shards\.1\.source: is the source of shards\[0\] too/,
    ],
    [
      'two masters of the same sentinels',
      withSecond((second, plan) => {
        plan.shards[0].source = 'redis+sentinel://s1,s2/m1';
        second.source = 'redis+sentinel://s1,s2/m2';
      }),
    ],
    [
      'a target where the proxy listens',
      (plan) => (plan.shards[0].target = 'redis://127.0.0.1:6400'),
      /^shards\.0\.target: is where shards\[0\] listens/,
    ],
    [
      'a port that nothing listens on',
      (plan) => (plan.shards[0].target = 'redis://h:0'),
      /^shards\.0\.target: has port 0/,
    ],
  ],
  'clients are told where to connect, and no more:': [
    [
      'with a user',
      (plan) => (plan.shards[0].listen = 'redis://u:p@127.0.0.1:6400'),
      /^shards\.0\.listen: holds a user or password/,
    ],
    [
      'with a database',
      (plan) => (plan.shards[0].listen = 'redis://127.0.0.1:6400/1'),
      /^shards\.0\.listen: has a database/,
    ],
    [
      'with sentinels',
      (plan) => (plan.shards[0].listen = 'redis+sentinel://h/m'),
      /^shards\.0\.listen: is a Sentinel URL/,
    ],
  ],
  'percent is for live:': [
    ['with live', (plan) => Object.assign(plan.workloads[0], { stage: 'live', percent: 10 })],
    [
      'with shadow',
      (plan) => Object.assign(plan.workloads[0], { stage: 'shadow', percent: 10 }),
      /^workloads\.0\.percent: is 10 with stage shadow/,
    ],
    ['of the rest', (plan) => (plan.default = { percent: 10 }), /^default\.percent: is 10 with stage off/],
    [
      'over 100',
      (plan) => Object.assign(plan.workloads[0], { stage: 'live', percent: 101 }),
      /^workloads\.0\.percent: is 101: a number up to 100 is allowed/,
    ],
  ],
  'a shared target': [
    ['may be shadowed without saying who owns what', sharing((plan) => (plan.workloads[0].stage = 'shadow'))],
    [
      'goes no further then',
      sharing((plan) => (plan.workloads[0].stage = 'live')),
      /^workloads\.0\.stage: is live, but shards\[0\] \(a\) shares its target/,
    ],
    [
      'nor does the rest',
      sharing((plan) => (plan.default = { stage: 'complete' })),
      /^default\.stage: is complete, but shards\[0\]/,
    ],
    [
      'needs every owner',
      sharing((plan) => {
        plan.workloads[0].stage = 'live';
        plan.shards[0].owns = ['eu:*'];
      }),
      /shards\[1\] \(b\) shares its target/,
    ],
    [
      'goes further with owners',
      sharing((plan) => {
        plan.workloads[0].stage = 'live';
        plan.shards[0].owns = ['eu:*'];
        plan.shards[1].owns = ['us:*'];
      }),
    ],
    [
      'goes further with slots',
      sharing((plan) => {
        plan.workloads[0].stage = 'live';
        plan.shards[0].owns = { slots: '0-5460, 6000' };
        plan.shards[1].owns = { slots: '5461-5999,6001-16383' };
      }),
    ],
    [
      'has one owner for each slot',
      sharing((plan) => {
        plan.shards[0].owns = { slots: '0-5460,9000' };
        plan.shards[1].owns = { slots: '5461-9000' };
      }),
      /^shards\.1\.owns: has slots 5461-9000, and shards\[0\] has slots 9000-9000: a key that matches both would have two owners/,
    ],
    [
      'is shared out in one way',
      sharing((plan) => {
        plan.shards[0].owns = { slots: '0-5460' };
        plan.shards[1].owns = ['us:*'];
      }),
      /^shards\.1\.owns: has patterns, and shards\[0\] has slots: a key that matches both would have two owners/,
    ],
    [
      'has slots that there are',
      sharing((plan) => (plan.shards[0].owns = { slots: '0-16384' })),
      /^shards\.0\.owns\.slots: has "0-16384": slots are 0 to 16383/,
    ],
    [
      'has ranges that go up',
      sharing((plan) => (plan.shards[0].owns = { slots: '1, 9-2' })),
      /^shards\.0\.owns\.slots: has "9-2"/,
    ],
    [
      'is shared out by patterns or slots',
      sharing((plan) => (plan.shards[0].owns = { slots: 'all' })),
      /^shards\.0\.owns\.slots: is "all": hash slots such as "0-5460"/,
    ],
    ['is shared out by nothing else', sharing((plan) => (plan.shards[0].owns = { ketama: 1 })), /^shards\.0\.owns/],
    [
      'has one owner for each key',
      sharing((plan) => {
        plan.shards[0].owns = ['eu:*'];
        plan.shards[1].owns = ['us:*', 'e*:x'];
      }),
      /^shards\.1\.owns: has "e\*:x", and shards\[0\] has "eu:\*": a key that matches both would have two owners/,
    ],
  ],
  'active-active': [
    ['needs regions', (plan) => (plan.topology = { mode: 'active-active' }), /^topology\.regions: needs at least two/],
    [
      'names each region once',
      (plan) => (plan.topology = { mode: 'active-active', regions: ['eu', 'us', 'eu'] }),
      /^topology\.regions\.2: is eu, which is listed already/,
    ],
    [
      'knows where a pinned workload is written',
      activeActive((plan) => {
        plan.workloads[0].writer = 'eu';
        delete plan.shards[0].region;
      }),
      /^shards\.0\.region: is missing, and the writer of sessions depends on it: set the region of the target, one of topology\.regions \(eu, us\)/,
    ],
    ['need not know it otherwise', activeActive((plan) => delete plan.shards[0].region)],
    [
      'has no region besides',
      activeActive((plan) => (plan.shards[0].region = 'asia')),
      /^shards\.0\.region: is asia, which topology\.regions does not list/,
    ],
    [
      'has one region for each target',
      activeActive((plan) => plan.shards.push({ ...otherShard(), region: 'us', target: plan.shards[0].target })),
      /^shards\.1\.region: is us, and shards\[0\], which has the same target, says eu/,
    ],
    ['takes other classes', activeActive(() => undefined)],
    [
      'refuses a plain counter',
      activeActive((plan) => (plan.workloads[0].class = 'counter')),
      /^workloads\.0\.class: is counter, and topology\.mode is active-active: two nodes that count at the same time lose increments\. Give it one writer \(writer: eu\), or a conflict-free layout \(counterLayout: library or per-region\), or use mode primary-replica$/,
    ],
    [
      'refuses counters in the rest',
      activeActive((plan) => (plan.default = { class: 'counter' })),
      /^default\.class: is counter, and topology/,
    ],
    [
      'refuses a leaderboard, which has no layout',
      activeActive((plan) => (plan.workloads[0].class = 'leaderboard')),
      /^workloads\.0\.class: is leaderboard, .* Give it one writer \(writer: eu\), or use mode primary-replica$/,
    ],
    [
      'takes a counter with one writer',
      activeActive((plan) => Object.assign(plan.workloads[0], { class: 'counter', writer: 'us' })),
    ],
    [
      'takes a leaderboard with one writer',
      activeActive((plan) => Object.assign(plan.workloads[0], { class: 'leaderboard', writer: 'us' })),
    ],
    [
      'takes a counter of the library',
      activeActive((plan) => Object.assign(plan.workloads[0], { class: 'counter', counterLayout: 'library' })),
    ],
    [
      'takes counters that the proxy rewrites',
      activeActive((plan) =>
        Object.assign(plan.workloads[0], { class: 'counter', counterLayout: 'per-region', stage: 'complete' }),
      ),
    ],
    [
      'has no stage for them in which both servers hold the same',
      activeActive((plan) =>
        Object.assign(plan.workloads[0], { class: 'counter', counterLayout: 'per-region', stage: 'shadow' }),
      ),
      /^workloads\.0\.stage: is shadow, in which both servers hold the same keys, but counterLayout is per-region, with other keys on the target: "off" and complete are allowed/,
    ],
    [
      'has no one writer for them',
      activeActive((plan) =>
        Object.assign(plan.workloads[0], { class: 'counter', counterLayout: 'per-region', writer: 'eu' }),
      ),
      /^workloads\.0\.writer: is eu, but counterLayout is per-region, in which each region writes: leave one of them out/,
    ],
    [
      'has them in a workload of their own',
      activeActive((plan) => Object.assign(plan, { default: { class: 'counter', counterLayout: 'per-region' } })),
      /^default\.counterLayout: is per-region, but default has the keys that match no workload/,
    ],
    [
      'must know their region, on one node too',
      (plan) => Object.assign(plan.workloads[0], { class: 'counter', counterLayout: 'per-region' }),
      /^shards\.0\.region: is missing, and the writer of .* depends on it/,
    ],
    [
      'has no dots in what names a writer',
      activeActive((plan) =>
        Object.assign(
          Object.assign(plan.workloads[0], { class: 'counter', counterLayout: 'per-region' }) && plan.shards[0],
          { name: 'cache.0' },
        ),
      ),
      /^shards\.0\.name: is cache\.0, but .* has counterLayout per-region: a name without a dot is allowed/,
    ],
    [
      'refuses a writer that is no region',
      activeActive((plan) => Object.assign(plan.workloads[0], { class: 'counter', writer: 'asia' })),
      /^workloads\.0\.writer: is asia, which topology\.regions does not list: eu, us are allowed/,
    ],
    [
      'copies nothing to a second writer',
      activeActive((plan) => Object.assign(plan.workloads[0], { writer: 'us', stage: 'shadow' })),
      /^workloads\.0\.stage: is shadow, in which keys are copied, but its only writer is us, and shard a is in eu: begin with "off"/,
    ],
    [
      'unless that is only counted',
      activeActive((plan) => {
        plan.topology.secondWriter = 'count';
        Object.assign(plan.workloads[0], { writer: 'us', stage: 'shadow' });
      }),
    ],
    [
      'copies to the writer',
      activeActive((plan) => Object.assign(plan.workloads[0], { writer: 'eu', stage: 'shadow' })),
    ],
    [
      'has layouts for counters only',
      activeActive((plan) => (plan.workloads[0].counterLayout = 'library')),
      /^workloads\.0\.counterLayout: is library, but class is general: only class counter has a layout/,
    ],
    [
      'refuses a layout that there is not',
      activeActive((plan) => Object.assign(plan.workloads[0], { class: 'counter', counterLayout: 'crdt' })),
      /^workloads\.0\.counterLayout: is "?crdt/,
    ],
  ],
  'primary-replica': [
    ['takes a plain counter', (plan) => (plan.workloads[0].class = 'counter')],
    [
      'has no regions to write in',
      (plan) => (plan.workloads[0].writer = 'eu'),
      /^workloads\.0\.writer: is eu, which topology\.regions does not list: the list is empty; leave writer out/,
    ],
    [
      'nor to be in',
      (plan) => (plan.shards[0].region = 'eu'),
      /^shards\.0\.region: is eu, which topology\.regions does not list/,
    ],
  ],
};

function sharing(change: (plan: PlanObject) => void): (plan: PlanObject) => void {
  return (plan) => {
    plan.shards.push({ ...otherShard(), target: plan.shards[0].target });
    change(plan);
  };
}

function activeActive(change: (plan: PlanObject) => void): (plan: PlanObject) => void {
  return (plan) => {
    plan.topology = { mode: 'active-active', regions: ['eu', 'us'] };
    plan.shards[0].region = 'eu';
    change(plan);
  };
}

for (const [group, cases] of Object.entries(groups)) {
  describe(group, () => {
    for (const [name, change, expected] of cases) {
      test(name, () => {
        const problems = printProblems(problemsOf(change));
        if (expected) assert.match(problems, expected);
        else assert.equal(problems, '');
      });
    }
  });
}

test('a shard knows whether it shares its target', () => {
  const shared = {
    ...smallPlan(),
    shards: [smallPlan().shards[0], { ...otherShard(), target: smallPlan().shards[0].target }],
  };
  assert.deepEqual(
    toPlan(shared).shards.map(({ sharedTarget }) => sharedTarget),
    [true, true],
  );
  assert.deepEqual(
    toPlan(smallPlan()).shards.map(({ sharedTarget }) => sharedTarget),
    [false],
  );
});
