/**
 * Authorities that die under load in every stage, in every way, and come back; and those from which there is no way to
 * go by itself.
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
    // Of a workload that both answer, nobody knows what a server held that came back empty: it waits for the operator.
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
    test(`the ${side} ${how} in ${stage}: manual, clients are told, and the operator's word loses nothing`, async (t) => {
      await dies(t, { stage, side, how, policy: 'manual' });
    });
  }
}

test('a mirror that is not clean is not gone to by itself', async () => {
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
