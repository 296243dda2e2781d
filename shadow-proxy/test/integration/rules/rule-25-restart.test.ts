/**
 * Rule 25 after a crash: what a client deleted is deleted on the target, and of foreign keys no more than an operator
 * confirmed.
 *
 * Not simulated yet: deletes that an operator confirmed by number, over an end of the process.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, ended, job } from '../../support/jobs.js';
import { until } from '../../support/shard.js';
import { withScene } from './scene.js';

const FOREIGN = 'foreign';

test('after a crash, a key that a client deleted is deleted on a target with foreign keys; a foreign key that was only read is kept', async () => {
  await withScene({ default: { stage: 'off' } }, async (scene) => {
    const { shard } = scene.shard;
    const there = scene.client({ of: scene.target });
    await there.set(FOREIGN, 'other');
    const consent = { overwrite: true, deleteForeign: false, confirm: 1 };
    await shard.changeStage({ workload: 'default', stage: 'dualwrite', consent });
    ask(scene, { kind: 'backfill' });
    await ended(scene);
    await shard.changeStage({ workload: 'default', stage: 'shadow' });
    const proxy = scene.client();
    await proxy.set('mine', 'v');
    await scene.shard.settled();
    scene.toTarget.hold('up');
    assert.equal(await proxy.del('mine'), 1);
    await scene.stopShard('at once');
    scene.toTarget.release();
    await scene.startShard();
    await scene.shard.settled();
    assert.deepEqual(await there.keys('*'), [FOREIGN]);
    // Suspect by a read, and still so when the next process ends.
    const again = scene.client();
    await again.set('mine', 'v');
    scene.toTarget.hold('up');
    assert.equal(await again.get(FOREIGN), null);
    await scene.stopShard('at once');
    scene.toTarget.release();
    await scene.startShard();
    await scene.shard.settled();
    assert.deepEqual((await there.keys('*')).sort(), [FOREIGN, 'mine']);
  });
});

const CONFIRMED = 10;
const FOREIGN_KEYS = 30;

for (const how of ['drained', 'at once'] as const) {
  test(`a repair that goes on after the proxy has ended ${how} deletes no more foreign keys than were confirmed`, async () => {
    await withScene({ default: { stage: 'off' } }, async (scene) => {
      const there = scene.client({ of: scene.target });
      await there.mset(...Array.from({ length: FOREIGN_KEYS }, (_, n) => [`${FOREIGN}:${n}`, 'other']).flat());
      const consent = { overwrite: true, deleteForeign: false, confirm: FOREIGN_KEYS };
      await scene.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite', consent });
      ask(scene, { kind: 'backfill' });
      await ended(scene);
      ask(scene, { kind: 'verify', repair: true, deletes: CONFIRMED, limits: { keysPerSecond: 30 } });
      await until(() => job(scene).deleted > 0);
      await scene.stopShard(how);
      await scene.startShard();
      await until(() => scene.shard.snapshot().job?.state === 'done');
      assert.equal(job(scene).kind, 'verify');
      const left = await there.dbsize();
      assert.ok(left >= FOREIGN_KEYS - CONFIRMED && left < FOREIGN_KEYS, `${left} are left`);
    });
  });
}
