/**
 * A mirror that has no memory left refuses what the authority took: that is no mismatch, and ends when there is room.
 *
 * Needs real servers: OOM of a full server: which commands it refuses, alone and in transactions.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/shard.js';
import { withRig, type Rig } from '../../support/rig.js';

const SCRIPT = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])";

async function writeAll({ client }: Rig, n: number): Promise<void> {
  const proxy = client();
  await proxy.set('string', n);
  await proxy.incr('counter');
  await proxy.incrbyfloat('float', 0.5);
  await proxy.hset('hash', 'f', n);
  await proxy.rpush('list', n);
  await proxy.spop('set');
  await proxy.sadd('set', n);
  await proxy.xadd('stream', '*', 'f', n);
  await proxy.eval(SCRIPT, 1, 'script', n);
  await proxy.multi().set('in-multi', n).incr('counter-in-multi').get('string').exec();
  await proxy.del('old');
  assert.equal(await proxy.get('string'), String(n));
}

for (const stage of ['shadow', 'live'] as const) {
  test(`a write that a full mirror refuses makes its keys suspect, is no mismatch, and is repaired when there is room (${stage})`, async () => {
    await withRig({ default: { stage } }, async (rig) => {
      const server = stage === 'live' ? rig.source : rig.target;
      const mirror = rig.client({ of: server });
      await rig.client().set('old', 1);
      await writeAll(rig, 1);
      await rig.assertEqual();
      await mirror.config('SET', 'maxmemory-policy', 'noeviction');
      await mirror.config('SET', 'maxmemory', 1);
      for (let n = 2; n < 12; n++) await writeAll(rig, n);
      const snapshot = (): ReturnType<typeof rig.shard.snapshot> => rig.shard.snapshot();
      const side = stage === 'live' ? 'source' : 'target';
      await until(() => snapshot().mirror.queuedEffects === 0);
      await until(() => snapshot().inconclusive['mirror-full'] >= 10 && snapshot().suspects.total >= 8);
      // Repairs are refused as well, for as long as the mirror is full: no suspect becomes a mismatch meanwhile.
      await sleep(1_500);
      assert.deepEqual(snapshot().mismatches, {}, JSON.stringify(rig.shard.findings().slice(-3)));
      assert.ok(snapshot().suspects.total >= 8, JSON.stringify(snapshot().suspects));
      assert.equal(snapshot()[side].full, true);
      assert.equal(snapshot().workloads[0].clean, false);
      await mirror.config('SET', 'maxmemory', 0);
      await rig.assertEqual();
      await until(() => !snapshot()[side].full);
    });
  });
}
