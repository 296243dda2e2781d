/** What shards have seen of counters, put together, and who is judged by it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CountingKind } from '../../../src/command/counting-kind.js';
import type { CountingObservation } from '../../../src/guard/judge.js';
import { judgeAll, sightingsOf } from '../../../src/stages/counters-gate.js';
import type { Plan, WorkloadClass } from '../../../src/plan/plan.js';
import type { ShardSnapshot, WorkloadSnapshot } from '../../../src/telemetry/snapshot.js';

const seen = (workload: string, kind: CountingKind, prefix: string, commands: Record<string, number>, perSecond = 1) =>
  ({ workload, kind, prefix, commands, perSecond }) satisfies CountingObservation;

type Shard = Pick<ShardSnapshot, 'counting' | 'workloads'>;
const shard = (
  counting: readonly CountingObservation[],
  workloads: readonly Partial<Pick<WorkloadSnapshot, 'name' | 'secondWriterWrites' | 'byCommand'>>[] = [],
): Shard =>
  ({
    counting,
    workloads: workloads.map((each) => ({ name: 'rl', secondWriterWrites: 0, ...each })),
  }) as unknown as Shard;

test('what several shards have seen of the same keys is added up', () => {
  const { counting } = sightingsOf([
    shard([
      seen('rl', 'increment', 'rl:*', { incr: 2, decr: 1 }, 3),
      seen('rl', 'increment', 'other:*', { incr: 9 }),
      seen('rl', 'float', 'rl:*', { incrbyfloat: 4 }),
      seen('jobs', 'increment', 'rl:*', { incr: 7 }),
    ]),
    shard([seen('rl', 'increment', 'rl:*', { incr: 5, incrby: 6 }, 4)]),
  ]);
  assert.deepEqual(counting, [
    seen('rl', 'increment', 'rl:*', { incr: 7, decr: 1, incrby: 6 }, 7),
    seen('rl', 'increment', 'other:*', { incr: 9 }),
    seen('rl', 'float', 'rl:*', { incrbyfloat: 4 }),
    seen('jobs', 'increment', 'rl:*', { incr: 7 }),
  ]);
});

test('commands count where no key was looked at, but not for a kind that has prefixes, nor scripts', () => {
  const { counting } = sightingsOf([
    shard(
      [seen('rl', 'increment', 'rl:*', { incr: 2 })],
      [
        { name: 'rl', byCommand: { incr: 20, incrbyfloat: 3, eval: 4, get: 5, decr: 0 } },
        { name: 'jobs', byCommand: { incr: 6 } },
        { name: 'idle' },
      ],
    ),
  ]);
  assert.deepEqual(counting, [
    seen('rl', 'increment', 'rl:*', { incr: 2 }),
    { workload: 'rl', kind: 'float', prefix: null, commands: { incrbyfloat: 3 }, perSecond: 0 },
    { workload: 'jobs', kind: 'increment', prefix: null, commands: { incr: 6 }, perSecond: 0 },
  ]);
});

test('writes through a proxy of another region are added up by workload', () => {
  const { secondWriter } = sightingsOf([
    shard([], [{ secondWriterWrites: 2 }, { name: 'jobs', secondWriterWrites: 0 }]),
    shard([], [{ secondWriterWrites: 5 }]),
  ]);
  assert.deepEqual(secondWriter, { rl: 7, jobs: 0 });
  assert.deepEqual(sightingsOf([]), { counting: [], secondWriter: {} });
});

test('workloads are judged that are counters, or were seen to count', () => {
  const workload = (name: string, kind: WorkloadClass) => ({
    name,
    class: kind,
    writer: null,
    counterLayout: 'plain',
  });
  const plan = {
    topology: { mode: 'primary-replica' },
    workloads: [workload('rl', 'counter'), workload('sessions', 'general')],
    default: workload('default', 'general'),
  } as unknown as Plan;
  const judged = (sightings: Parameters<typeof judgeAll>[2]) =>
    judgeAll(plan, [], sightings).map(({ workload, verdict }) => [workload, verdict]);
  assert.deepEqual(judged(null), [['rl', 'unknown']]);
  assert.deepEqual(judged({ counting: [seen('sessions', 'increment', 's:*', { incr: 1 })], secondWriter: {} }), [
    ['rl', 'unknown'],
    ['sessions', 'unknown'],
  ]);
});
