/**
 * A mirror that refuses writes for a while, as after a failover: the keys of refused writes are suspect, and no
 * mismatch.
 *
 * Needs real servers: READONLY of a replica: which commands it refuses, alone and in transactions.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../support/shard.js';
import { withScene } from './scene.js';

for (const stage of ['shadow', 'live'] as const) {
  test(`what a mirror refuses as a replica is copied when it is none any more (${stage})`, async () => {
    await withScene({ default: { stage } }, async (scene) => {
      const wire = await scene.wire();
      const mirror = scene.client({ of: stage === 'live' ? scene.source : scene.target });
      await wire.pipeline([
        ['SET', 's', 'before'],
        ['RPUSH', 'l', 'a'],
        ['SET', 'kept', 1],
      ]);
      await scene.shard.settled();
      // Of a server that is not there: it keeps what it has.
      await mirror.replicaof('127.0.0.1', 1);
      await wire.pipeline([
        ['SET', 's', 'after', 'EX', 1000],
        ['INCR', 'n'],
        ['INCRBYFLOAT', 'f', '1.5'],
        ['RPUSH', 'l', 'b'],
        ['GETSET', 'g', 'x'],
        ['SPOP', 'nosuch'],
        ['XADD', 'x', '*', 'f', 'v'],
        ['EVAL', "return redis.call('INCR', KEYS[1])", 1, 'n'],
        ['MULTI'],
        ['SET', 'm', 1],
        ['INCR', 'n'],
        ['EXEC'],
        ['GET', 'kept'],
      ]);
      await until(
        () => (scene.shard.snapshot().inconclusive['mirror-read-only'] ?? 0) >= 6,
        5_000,
        () => JSON.stringify(scene.shard.snapshot().inconclusive),
      );
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
      assert.ok(scene.shard.snapshot().suspects.total >= 6);
      await mirror.call('REPLICAOF', 'NO', 'ONE');
      await scene.assertEqual();
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  });
}
