/** The snapshot of a shard: its sums, and when a workload is clean. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Router } from '../../../src/route/router.js';
import { Counters } from '../../../src/telemetry/workload-counters.js';
import {
  conditionOf,
  snapshotOf,
  type MirrorFacts,
  type ServerFacts,
  type ShardFacts,
  type WorkloadFacts,
} from '../../../src/shard/snapshot.js';

const NOW = Date.parse('2024-05-01T12:00:00Z');
const latency = { p50: 0, p99: 0, p999: 0, count: 0 };

const server = (change: Partial<ServerFacts> = {}): ServerFacts => ({
  url: 'redis://127.0.0.1:6379',
  runId: 'aaaa',
  replId: 'bbbb',
  role: 'master',
  version: '7.0.15',
  up: true,
  isUsed: true,
  problem: null,
  full: false,
  evicted: 0,
  expired: 0,
  evictedAt: null,
  silentMs: 0,
  silentConnections: 0,
  refusedDatabases: [],
  ...change,
});

const mirror = (change: Partial<MirrorFacts> = {}): MirrorFacts => ({
  lagMs: 0,
  queuedBytes: 0,
  queuedEffects: 0,
  gates: 0,
  isEmpty: true,
  connected: false,
  isNeeded: false,
  ...change,
});

const router = new Router([{ name: 'sessions', keys: ['session:*'], stage: 'shadow', percent: 100 }], {
  stage: 'off',
  percent: 100,
});
const countersOf = new Counters(router);

const workload = (index: number, change: Partial<WorkloadFacts> = {}): WorkloadFacts => {
  const {
    name,
    position: { stage, percent },
  } = router.workloads[index];
  const counters = countersOf.of(router.workloads[index]);
  const workloadClass = index === 0 ? 'read-mostly' : 'general';
  const plain = {
    name,
    workloadClass,
    stage,
    percent,
    counters,
    suspect: null,
    secondWriterWrites: 0,
    shadowReads: 100,
  } as const;
  return {
    ...plain,
    mirrors: ['target'],
    suspects: { total: 0, acknowledged: 0 },
    asked: false,
    byCommand: {},
    automatic: { guard: false, rollout: false, exceeds: [], hold: null },
    ...change,
  };
};

const facts = (change: Partial<ShardFacts> = {}): ShardFacts => ({
  plain: {
    name: 'cache-0',
    clients: 3,
    clientBytes: 0,
    clientsClosed: {},
    replyFailures: 0,
    operations: 17,
    crossWorkload: { split: 0, refused: 0 },
    replicaReads: 0,
    otherShardCommands: 0,
    clientErrors: { source: {}, target: {} },
    clientErrorOrigins: [],
    latency: { source: latency, target: latency },
    clockAheadMs: 0,
    reservations: { byAge: { 'under-1s': 0, 'under-10s': 0, older: 0 }, oldestMs: 0, longestWaitMs: 0 },
    flips: 0,
    frozen: null,
    fence: null,
    movedSlots: '',
    fieldTtls: null,
    counting: [],
    outage: null,
    failovers: 0,
    job: null,
    earlierJobs: [],
    uptimeMs: 1,
  },
  now: NOW,
  servers: { source: server(), target: server() },
  mirrors: { source: mirror(), target: mirror({ connected: true, isNeeded: true }) },
  dropped: 0,
  asked: 0,
  suspects: { total: 0, byReason: {} },
  workloads: [workload(0), workload(1)],
  ...change,
});

test('the counts of the workloads are added up, by name where they have names', () => {
  const [sessions, rest] = router.workloads.map((each) => countersOf.of(each));
  Object.assign(sessions, { compared: 10, matched: 7, refused: 1, reads: 9, writes: 4 });
  Object.assign(rest, { compared: 5, matched: 5, refused: 2 });
  sessions.allowed.set('order', 2);
  sessions.mismatches.set('value', 1);
  rest.mismatches.set('value', 3).set('ttl', 1);
  sessions.unsupported.set('lmpop', { lacks: 'target', calls: 4 }).set('command docs', { lacks: 'target', calls: 9 });
  rest.unsupported.set('lmpop', { lacks: 'target', calls: 1 });

  const snapshot = snapshotOf(facts());
  const { compared, matched, unmirroredErrors, allowed, mismatches, unsupported } = snapshot;
  assert.deepEqual([compared, matched, unmirroredErrors], [15, 12, 3]);
  assert.deepEqual([allowed, mismatches], [{ order: 2 }, { value: 4, ttl: 1 }]);
  assert.deepEqual(unsupported, { lmpop: 5 }, 'a form that breaks no client is not among them');
  const [first] = snapshot.workloads;
  assert.deepEqual([first.operations, first.allowed, first.mismatches], [13, 2, 1]);
  assert.deepEqual(first.unsupported, { lmpop: 4, 'command docs': 9 });
  assert.deepEqual(
    [snapshot.name, snapshot.clients, snapshot.operations],
    ['cache-0', 3, 17],
    'the rest is taken over',
  );
});

test('a workload is clean only without acknowledged suspects or open questions, not suspect as a whole, and with an empty mirror', () => {
  const clean = (change: Partial<WorkloadFacts>, isEmpty = true): boolean =>
    snapshotOf(facts({ workloads: [workload(0, change)], mirrors: { source: mirror(), target: mirror({ isEmpty }) } }))
      .workloads[0].clean;
  assert.equal(clean({ suspects: { total: 2, acknowledged: 0 } }), true, 'only replies were lost');
  assert.equal(clean({ suspects: { total: 2, acknowledged: 1 } }), false);
  assert.equal(clean({ suspect: 'the target restarted' }), false);
  assert.equal(clean({ asked: true }), false);
  assert.equal(clean({}, false), false);
});

test('a workload is judged by its own mirror', () => {
  const mirrors = { source: mirror({ isEmpty: false }), target: mirror() };
  const both = snapshotOf(facts({ mirrors, workloads: [workload(0), workload(1, { mirrors: ['source'] })] })).workloads;
  assert.deepEqual(
    both.map(({ clean }) => clean),
    [true, false],
  );
  const partly = facts({ mirrors, workloads: [workload(0, { mirrors: ['source', 'target'] })] });
  assert.equal(snapshotOf(partly).workloads[0].clean, false, 'a part of its keys is live');
});

test('both mirrors are reported as one: the longer lag, both queues, and connected where all needed mirrors are', () => {
  const one = mirror({ lagMs: 5, queuedBytes: 10, queuedEffects: 1, gates: 2, connected: true, isNeeded: true });
  const other = mirror({ lagMs: 9, queuedBytes: 30, queuedEffects: 3, gates: 1 });
  const { mirror: shown, undecided } = snapshotOf(
    facts({ mirrors: { source: other, target: one }, dropped: 4, asked: 1 }),
  );
  assert.deepEqual(shown, { lagMs: 9, queuedBytes: 40, queuedEffects: 4, dropped: 4, connected: true });
  assert.equal(undecided, 4, 'questions under way, and what waits for a verdict in both lanes');
  const away = facts({ mirrors: { source: mirror({ isNeeded: true }), target: one } });
  assert.equal(snapshotOf(away).mirror.connected, false);
});

test('the condition of a shard is the part of its snapshot that says whether it is clean', () => {
  const some = facts({ mirrors: { source: mirror({ lagMs: 3 }), target: mirror({ isEmpty: false }) }, asked: 1 });
  const { workloads: conditions, ...condition } = conditionOf(some);
  assert.deepEqual({ ...snapshotOf(some), ...condition }, snapshotOf(some));
  for (const [at, each] of snapshotOf(some).workloads.entries()) assert.deepEqual({ ...each, ...conditions[at] }, each);
  assert.deepEqual([condition.mirror.lagMs, condition.undecided, conditions[0].clean], [3, 1, false]);
});

test('a server that nothing uses is neither up nor down', () => {
  const { source, target } = snapshotOf(
    facts({ servers: { source: server({ up: false }), target: server({ up: false, isUsed: false }) } }),
  );
  assert.deepEqual([source.up, target.up], [false, null]);
});

test('a server counts as evicting for less than a minute after its last eviction', () => {
  const evicting = (agoMs: number | null): readonly [boolean, string | null] => {
    const evictedAt = agoMs === null ? null : NOW - agoMs;
    const { source } = snapshotOf(facts({ servers: { source: server({ evictedAt }), target: server() } }));
    return [source.evicting, source.evictedAt];
  };
  assert.deepEqual(evicting(null), [false, null]);
  assert.deepEqual(evicting(59_999), [true, '2024-05-01T11:59:00.001Z']);
  assert.deepEqual(evicting(60_000), [false, '2024-05-01T11:59:00.000Z']);
});
