/** Twelve shards of six workloads on one screen of 24 lines and 80 columns: what needs an operator is named. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderFleet } from '../../../src/cli/fleet-status.js';
import type { FleetStatus } from '../../../src/cli/fleet.js';
import { CliError } from '../../../src/cli/exit.js';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { shardSnapshot, workloadSnapshot } from '../../support/snapshots.js';

const WORKLOADS = ['sessions', 'carts', 'flags', 'limits', 'queues', 'default'];

const CALM = { allowed: {}, unsupported: {}, mismatches: {}, inconclusive: {} };

const fleet = (change: (shard: ShardSnapshot, i: number) => ShardSnapshot = (shard) => shard): FleetStatus => ({
  migration: 'moving',
  shards: Array.from({ length: 12 }, (_, i) => {
    const workloads = WORKLOADS.map((name) => workloadSnapshot({ name, operations: 1_000 }));
    return change(shardSnapshot({ ...CALM, name: `cache-${i}`, clients: 10, workloads }), i);
  }),
  starting: [],
  silent: [],
  unserved: [],
});

test('twelve shards that are well fit a screen, and say so', () => {
  const lines = renderFleet(fleet(), {}).split('\n');
  assert.ok(lines.length <= 24 && lines.every((line) => line.length <= 80), lines.join('\n'));
  assert.equal(lines[0], 'moving: 12 of 12 shards served, 6 workloads, 120 clients');
  assert.match(lines.join('\n'), /^sessions +\S+ +12,000 /m);
  assert.equal(lines.at(-2), 'Nothing needs an operator.');
});

test('what needs an operator is named by shard, the same on several shards in one line, what to act on first', () => {
  const status = fleet((shard, i) => ({
    ...shard,
    ...(i === 3 && { target: { ...shard.target, up: false } }),
    ...((i === 5 || i === 7) && { mirror: { ...shard.mirror, lagMs: 5_000 } }),
    workloads: shard.workloads.map((each) =>
      each.name === 'carts' && i < 2 ? { ...each, stage: 'live', percent: 10 } : each,
    ),
  }));
  const text = renderFleet(
    {
      ...status,
      silent: [
        {
          url: 'http://10.0.0.9:9400',
          error: new CliError('unreachable', 'no proxy answers at http://10.0.0.9:9400', 3),
        },
      ],
      unserved: ['cache-12'],
    },
    { plan: 'migration.yaml' },
  );
  const found = text.slice(text.indexOf('ACT')).replace('npx --no-install ', '');
  assert.deepEqual(found.split('\n'), [
    'ACT   no proxy answers at http://10.0.0.9:9400',
    'ACT   cache-12: No proxy serves it.',
    'ACT   cache-3: The target is down.',
    'look  cache-5, cache-7: The mirror is 5 s behind.',
    'look  carts is in live 10 % on cache-0, cache-1.',
    'One shard: shadow-compare status --shard SHARD --plan migration.yaml',
  ]);
  assert.match(text, /^carts +\S+ on 10\/12 /m);
});
