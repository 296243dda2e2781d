/**
 * Authorities that die under load in every stage, in every way, and restart; and an authority whose mirror is not
 * clean, so that the proxy must not fail over to it automatically.
 *
 * Needs real processes: servers that are killed or stopped under load in each stage.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { withServers } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { dies } from './dies.js';
import { lostOn, startWriters } from './outage.js';

for (const how of ['killed', 'hangs', 'restarts empty'] as const) {
  for (const [stage, side, percent] of [
    ['shadow', 'source'],
    ['live', 'target'],
    ['rampdown', 'target'],
    ['live', 'source', 10],
    ['live', 'target', 10],
  ] as const) {
    // If both servers serve the workload, what the one that restarted empty held is unknown: the operator must decide.
    if (how === 'restarts empty' && percent !== undefined) continue;
    test(`the ${side} ${how} in ${stage} ${percent ?? 100} %: automatic`, async (t) => {
      await dies(t, { stage, side, percent, how });
    });
  }
}

for (const [stage, side] of [
  ['shadow', 'source'],
  ['live', 'target'],
] as const) {
  for (const how of ['killed', 'hangs'] as const) {
    test(`the ${side} ${how} in ${stage}: manual, clients get an error, and the operator's decision loses nothing`, async (t) => {
      await dies(t, { stage, side, how, policy: 'manual' });
    });
  }
}

test('the proxy does not fail over automatically to a mirror that is not clean', async () => {
  await withServers(async ({ source, target }) => {
    const before = new Redis(source.port);
    await before.set('k:old', 'not copied');
    before.disconnect();
    const shard = await startTestShard({ source, target, failover: 'automatic', limits: { downAfterMs: 500 } });
    const writers = await startWriters(shard.port);
    try {
      await until(() => writers.acknowledged.size > 100);
      await source.kill('SIGKILL');
      await until(() => shard.snapshot().outage !== null);
      // No failover may follow: it would have by now.
      await sleep(1_000);
      const { outage, workloads, failovers } = shard.snapshot();
      assert.deepEqual([workloads[0].stage, failovers, outage!.endedAt], ['shadow', 0, null]);
      assert.match(outage!.workloads[0].why!, /every key is a suspect/);
      const wire = await Wire.open({ port: shard.port });
      assert.match(
        await wire.ask('GET', 'k:old'),
        /^-MASTERDOWN the source redis:\/\/127\.0\.0\.1:\d+ is lost \(no answer for [\d.]+ s\): nothing was read or written/,
      );
      writers.kill();
      assert.deepEqual(await lostOn(target, writers), []);
    } finally {
      writers.kill();
      await shard.stop();
    }
  });
});
