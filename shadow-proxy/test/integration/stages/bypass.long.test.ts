/**
 * Short connections that write to the source directly, bypassing the proxy, while others write through it.
 *
 * Needs real servers: CLIENT LIST and commandstats of short connections that bypass the proxy.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Gate } from '../../../src/stages/gates.js';
import { startWriters } from '../faults/outage.js';
import { withRig } from '../../support/rig.js';
import { until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

test('a write that bypasses the proxy closes the gate, even if its connection closes at once; load through the proxy does not', async (t) => {
  await withRig({ default: { stage: 'off' } }, async ({ source, shard }) => {
    const bypass = async (): Promise<Gate> =>
      (await shard.shard.promote({ workload: 'default', dryRun: true })).gates.find(({ name }) => name === 'bypass')!;
    const writers = await startWriters(shard.port);
    try {
      await until(async () => /source counted only the writes of the proxy/.test((await bypass()).evidence), 30_000);
      for (const before = writers.acknowledged.size; writers.acknowledged.size < before + 3_000;)
        assert.equal((await bypass()).answer, 'yes');
      for (let i = 0; i < 60; i++) {
        const wire = await Wire.open({ port: source.port });
        await wire.ask('SET', 'past', i);
        wire.destroy();
      }
      await until(async () => (await bypass()).answer === 'no', 30_000);
      const { evidence } = await bypass();
      assert.match(evidence, /at least these writes \(set \d+\), last seen/);
      const { passedWritesKnown, passedWrites } = shard.shard.scrape().watch;
      assert.deepEqual([passedWritesKnown, passedWrites > 0], [true, true]);
      t.diagnostic(evidence);
    } finally {
      writers.kill();
    }
  });
});

test('who only looks, as `assess` does, writes nothing: FUNCTION LIST is no write, though FUNCTION LOAD is', async () => {
  await withRig({ default: { stage: 'off' } }, async ({ source, shard }) => {
    const bypass = async (): Promise<Gate> =>
      (await shard.shard.promote({ workload: 'default', dryRun: true })).gates.find(({ name }) => name === 'bypass')!;
    const past = async (...command: string[]): Promise<void> => {
      const wire = await Wire.open({ port: source.port });
      await wire.ask(...command);
      wire.destroy();
    };
    const settled = async (): Promise<void> =>
      until(async () => /source counted only the writes of the proxy/.test((await bypass()).evidence), 30_000);
    await settled();
    await past('FUNCTION', 'LIST');
    await past('FUNCTION', 'STATS');
    for (let look = 0; look < 4; look++) assert.equal((await bypass()).answer, 'yes', (await bypass()).evidence);
    await past('FUNCTION', 'LOAD', "#!lua name=l\nredis.register_function('f', function() return 1 end)");
    await until(async () => (await bypass()).answer === 'no', 30_000);
    assert.match((await bypass()).evidence, /\(function 1\)/);
  });
});
