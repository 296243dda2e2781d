/**
 * A mirror that answers no command for a while: what it did not read is no mismatch, what it did not
 * write is copied.
 *
 * Needs real servers: BUSY of a KeyDB whose script does not end.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../support/shard.js';
import { withScene } from './scene.js';

test('A mirror that is busy with a script: no mismatch; its keys are copied, and none is for a read', async () => {
  await withScene({ default: { stage: 'shadow' } }, async (scene) => {
    const wire = await scene.wire();
    await wire.pipeline([
      ['SET', 'read', '1'],
      ['SET', 'written', '1'],
    ]);
    await scene.shard.settled();
    const [runs, ends] = [scene.client({ of: scene.target }), scene.client({ of: scene.target })];
    await runs.config('SET', 'lua-time-limit', '50');
    const script = runs.eval('while true do end', 0).catch((problem: Error) => problem.message);
    await until(() =>
      ends
        .ping()
        .then(String, String)
        .then((reply) => reply.includes('BUSY')),
    );
    await wire.pipeline([
      ['GET', 'read'],
      ['SET', 'written', '2'],
    ]);
    await until(
      () => (scene.shard.snapshot().inconclusive['mirror-busy'] ?? 0) >= 2,
      5_000,
      () => JSON.stringify(scene.shard.snapshot().inconclusive),
    );
    assert.equal(scene.shard.snapshot().suspects.total, 1);
    assert.equal(scene.shard.snapshot().workloads.at(-1)!.clean, false);
    await ends.script('KILL');
    assert.match(String(await script), /killed/);
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});
