/** What guard says of a workload: every verdict, over made-up nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cluster } from '../../../src/guard/node-facts.js';
import { judgeWorkload, type Question, type Safety, type CountingObservation } from '../../../src/guard/judge.js';
import { cluster, node, pair } from '../../integration/guard/nodes.js';

const COUNTER = { name: 'rl', class: 'counter', writer: null, counterLayout: 'plain' } as const;
const PINNED = { ...COUNTER, writer: 'eu' };
const LIBRARY = { ...COUNTER, counterLayout: 'library' } as const;
const REWRITTEN = { ...COUNTER, counterLayout: 'per-region' } as const;
const GENERAL = { ...COUNTER, class: 'general' } as const;
const TOPOLOGY = { mode: 'active-active', regions: ['eu', 'us'], secondWriter: 'refuse', outageMinutes: 60 } as const;
const PRIMARY = { ...TOPOLOGY, mode: 'primary-replica', regions: [] } as const;

const seen = (kind: CountingObservation['kind'], name: string): CountingObservation => ({
  workload: 'rl',
  kind,
  prefix: 'rl:*',
  commands: { [name]: 1200 },
  perSecond: 20,
});
const sighted = (...counting: CountingObservation[]): Question['sightings'] => ({ counting, secondWriter: {} });
const one = (change: object = {}): Cluster => cluster([node('eu', { role: 'master', masters: [], ...change })]);

const cases: readonly [name: string, expected: Safety | null, why: RegExp, Partial<Question>][] = [
  ['one node', 'safe', /^one node accepts writes: eu:6379 \(master\)$/, { topology: PRIMARY, clusters: [one()] }],
  [
    'a read-only replica beside it',
    'safe',
    /^one node accepts/,
    {
      topology: PRIMARY,
      clusters: [cluster([node('eu', { role: 'master' }), node('us', { role: 'slave', readOnly: true })])],
    },
  ],
  [
    'a replica that may be written',
    'unsafe',
    /^the plan says primary-replica, but eu:6379 and us:6379 accept writes/,
    { topology: PRIMARY, clusters: [cluster([node('eu', { role: 'master' }), node('us', { role: 'slave' })])] },
  ],
  [
    'an active replica that the plan does not know of',
    'unsafe',
    /^the plan says primary-replica/,
    { topology: PRIMARY },
  ],
  ['two writers', 'unsafe', /^eu:6379 and us:6379 accept writes$/, {}],
  [
    'a node that cannot be queried',
    'unknown',
    /^us:6379 cannot be queried \(NOAUTH\)/,
    { clusters: [cluster([node('eu')], { unread: [{ label: 'us:6379', why: 'NOAUTH' }] })] },
  ],
  ['active-active by the plan alone', 'unknown', /has no peer that accepts writes/, { clusters: [one()] }],
  ['one writer', 'safe', /^one writer: eu$/, { workload: PINNED }],
  [
    'one writer on three nodes',
    'unsafe',
    /^its writer is eu, but 3 nodes accept writes/,
    { workload: PINNED, clusters: [cluster([node('eu'), node('us'), node('ap')])] },
  ],
  [
    'plain counters on three nodes',
    'unsafe',
    /^eu:6379 and us:6379 and ap:6379 accept writes$/,
    { clusters: [cluster([node('eu'), node('us'), node('ap')])] },
  ],
  [
    'one writer, whose numbers share a time',
    'unsafe',
    /^its writer is eu, but us:6379 keep one modification time .*noeviction/,
    { workload: PINNED, clusters: [pair({ policy: 'noeviction' })] },
  ],
  [
    'one writer, and a policy without a limit',
    'unsafe',
    /no maxmemory/,
    { workload: PINNED, clusters: [pair({ maxmemory: 0 })] },
  ],
  [
    'one writer, and writes elsewhere',
    'unsafe',
    /1,200 writes came through a proxy of another region/,
    { workload: PINNED, sightings: { counting: [], secondWriter: { rl: 1200 } } },
  ],
  [
    'one writer, and a client at the other node',
    'unknown',
    /api writes at us:6379 \(incr\), bypassing the proxy/,
    { workload: PINNED, clusters: [pair({ writers: [{ who: 'api', command: 'incr' }] })] },
  ],
  [
    'one writer, and a client that sets other keys',
    'safe',
    /^one writer/,
    { workload: PINNED, clusters: [pair({ writers: [{ who: 'api', command: 'set' }] })] },
  ],
  [
    'one writer, and a node that does not list its clients',
    'unknown',
    /us:6379 does not list its clients/,
    { workload: PINNED, clusters: [pair({ writers: null })] },
  ],
  [
    'one writer, whose node the plan does not tell',
    'unknown',
    /api writes at eu:6379 \(incr\)/,
    {
      workload: PINNED,
      clusters: [cluster([node('eu', { writers: [{ who: 'api', command: 'incr' }] }), node('us')], { shards: [] })],
    },
  ],
  [
    'one writer, and the proxy at the other node',
    'safe',
    /^one writer/,
    { workload: PINNED, clusters: [pair({ writers: [{ who: 'shadow-proxy:us', command: 'incr' }] })] },
  ],
  [
    'a conflict-free layout',
    'safe',
    /^conflict-free layout \(library\)$/,
    { workload: LIBRARY, clusters: [pair({ policy: 'noeviction' })] },
  ],
  [
    'a conflict-free layout on three nodes',
    'unknown',
    /3 nodes accept writes: more than two were not tested through restarts/,
    { workload: LIBRARY, clusters: [cluster([node('a'), node('b'), node('c')])] },
  ],
  [
    'a layout that is not used',
    'unsafe',
    /plain counters came through the proxy: rl:\* incr 1,200 \(20\/s\)/,
    { workload: LIBRARY, sightings: sighted(seen('increment', 'incr')) },
  ],
  [
    'counters that the proxy rewrites',
    'safe',
    /^conflict-free layout \(per-region\)$/,
    { workload: REWRITTEN, sightings: sighted(seen('increment', 'incr')) },
  ],
  [
    'the same, and plain keys of it on the target',
    'unsafe',
    /the proxy met plain keys of it on the target, 3 times in its samples: a client bypasses the proxy/,
    { workload: REWRITTEN, sightings: { counting: [], secondWriter: { rl: 3 } } },
  ],
  [
    'the same, and a client beside the proxy',
    'unknown',
    /api writes at us:6379 \(incr\), bypassing the proxy/,
    { workload: REWRITTEN, clusters: [pair({ writers: [{ who: 'api', command: 'incr' }] })] },
  ],
  [
    'the same, and only the proxy',
    'safe',
    /^conflict-free layout/,
    { workload: REWRITTEN, clusters: [pair({ writers: [{ who: 'shadow-proxy:us', command: 'incr' }] })] },
  ],
  ['no counter', null, /^$/, { workload: GENERAL }],
  [
    'a counter that the plan does not know',
    'unsafe',
    /accept writes; seen: rl:\* incr 1,200/,
    { workload: GENERAL, sightings: sighted(seen('increment', 'incr')) },
  ],
  [
    'the same on one node',
    'safe',
    /keys are incremented, although the class is general: rl:\* incr 1,200/,
    { workload: GENERAL, topology: PRIMARY, clusters: [one()], sightings: sighted(seen('increment', 'incr')) },
  ],
  [
    'what another workload counts',
    null,
    /^$/,
    { workload: GENERAL, sightings: sighted({ ...seen('increment', 'incr'), workload: 'other' }) },
  ],
  ['the worst of several targets', 'unsafe', /accept writes/, { clusters: [one(), pair()] }],
  [
    'no target that answers',
    'unknown',
    /cannot be queried/,
    { clusters: [cluster([], { unread: [{ label: 'eu:6379', why: 'ECONNREFUSED' }] })] },
  ],
];

for (const [name, expected, why, change] of cases) {
  test(`${name}: ${expected ?? 'not listed'}`, () => {
    const verdict = judgeWorkload({
      topology: TOPOLOGY,
      workload: COUNTER,
      clusters: [pair()],
      sightings: null,
      ...change,
    });
    assert.equal(verdict?.verdict ?? null, expected, verdict?.why);
    assert.match(verdict?.why ?? '', why);
    // A verdict other than safe says what to do.
    assert.equal(expected === null || expected === 'safe', (verdict?.todo ?? null) === null);
    assert.equal(expected === 'unsafe', (verdict?.lost ?? null) !== null);
  });
}

test('the verdict says how each kind breaks, and a layout is offered only for sums', () => {
  const of = (kind: CountingObservation['kind'], name: string) =>
    judgeWorkload({ topology: TOPOLOGY, workload: GENERAL, clusters: [pair()], sightings: sighted(seen(kind, name)) })!;
  for (const [kind, name, lost] of [
    ['lock', 'set nx', /both nodes give the lock/],
    ['float', 'incrbyfloat', /different sums/],
    ['append', 'append', /order/],
    ['list', 'rpush', /popped on both/],
    ['stream', 'xadd', /assign IDs/],
  ] as const) {
    assert.match(of(kind, name).lost!, lost);
    assert.equal(of(kind, name).todo, 'give it one writer (writer: eu)');
  }
  for (const [kind, name] of [
    ['increment', 'incr'],
    ['rewrite', 'get, set'],
    ['script', 'eval'],
    ['window', 'zremrangebyscore'],
  ] as const)
    assert.match(of(kind, name).todo!, /conflict-free layout/);
});
