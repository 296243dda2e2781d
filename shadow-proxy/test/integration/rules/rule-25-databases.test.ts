/**
 * Rule 25: databases are swapped everywhere, on every connection that stands in one.
 *
 * Needs real servers: KeyDB's own SWAPDB, which leaves connections in the swapped database.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argument } from '../../../src/resp/encode.js';
import type { Stage } from '../../../src/route/stage.js';
import { until } from '../../support/shard.js';
import { withScene, type Scene } from './scene.js';

const move = async (scene: Scene, ...stages: readonly Stage[]): Promise<void> => {
  for (const stage of stages) {
    await scene.shard.settled();
    await until(() => scene.shard.snapshot().workloads.every(({ suspect }) => suspect === null), 20_000);
    await scene.shard.shard.changeStage({ workload: 'default', stage });
  }
};

/** Writes which database each was before. */
async function name(scene: Scene): Promise<void> {
  const wire = await scene.wire();
  for (const db of [2, 3])
    await wire.pipeline([
      ['SELECT', db],
      ['SET', 'name', db],
    ]);
}

const SWAP_IN_SCRIPT = "return redis.call('SWAPDB', 2, 3)";

for (const [how, swap] of [
  ['SWAPDB', ['SWAPDB', 2, 3]],
  ['a script that calls SWAPDB', ['EVAL', SWAP_IN_SCRIPT, 0]],
  ['a script with a key that calls SWAPDB', ['EVAL', SWAP_IN_SCRIPT, 1, 'k']],
] as const) {
  test(`after ${how} in shadow, a lane to KeyDB from before is in the database that its client selected`, async () => {
    await withScene({ default: { stage: 'live' } }, async (scene) => {
      await name(scene);
      const wire = await scene.wire();
      assert.deepEqual(
        await wire.pipeline([
          ['SELECT', 2],
          ['GET', 'name'],
        ]),
        ['+OK', '$1\r\n2'],
      );
      await move(scene, 'shadow');
      assert.equal(await wire.ask(...swap), '+OK');
      assert.equal(await wire.ask('GET', 'name'), '$1\r\n3');
      await move(scene, 'live');
      assert.equal(await wire.ask('GET', 'name'), '$1\r\n3');
      await wire.ask('SET', 'written', 'in 2');
      await move(scene, 'shadow');
      assert.equal(await wire.ask('GET', 'name'), '$1\r\n3');
      await scene.assertEqual();
      assert.equal(await scene.client({ of: scene.source, db: 2 }).get('written'), 'in 2');
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  });
}

test('after SWAPDB in live, the existing mirror lane to KeyDB is in the database of the commands that it sends', async () => {
  await withScene({ default: { stage: 'shadow' } }, async (scene) => {
    await name(scene);
    const wire = await scene.wire();
    await wire.pipeline([
      ['SELECT', 2],
      ['SET', 'k', 1],
    ]);
    await move(scene, 'live');
    assert.equal(await wire.ask('SWAPDB', 2, 3), '+OK');
    await move(scene, 'shadow');
    await wire.pipeline([
      ['SET', 'written', 'in 2'],
      ['GET', 'name'],
    ]);
    await scene.assertEqual();
    assert.equal(await scene.client({ of: scene.target, db: 2 }).get('written'), 'in 2');
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a lane that is being opened while databases are swapped is in the one that its client selected', async () => {
  await withScene({ default: { stage: 'live' } }, async (scene) => {
    await name(scene);
    const [swapper, reader] = [await scene.wire(), await scene.wire()];
    await swapper.ask('PING');
    // A lane of its own.
    await reader.ask('HELLO', 3);
    scene.toTarget.delayMs = 40;
    reader.send('SELECT', 2);
    reader.send('GET', 'name');
    // It has selected the database by then, and its server and lease are being asked.
    await sleep(200);
    assert.equal(await swapper.ask('SWAPDB', 2, 3), '+OK');
    const [, read] = await reader.frames(2);
    assert.match(read, /^\$1\r\n[23]$/);
    scene.toTarget.delayMs = 0;
    assert.equal(await reader.ask('GET', 'name'), '$1\r\n3');
    await scene.assertEqual();
  });
});

for (const [how, swap] of [
  ['SWAPDB', [['SWAPDB', 2, 3]]],
  ['a script that calls SWAPDB', [['EVAL', SWAP_IN_SCRIPT, 0]]],
  ['a transaction with that script', [['MULTI'], ['EVAL', SWAP_IN_SCRIPT, 0], ['EXEC']]],
] as [string, Argument[][]][]) {
  // KeyDB 6.3.4 crashes when it unblocks a client whose database was swapped.
  test(`${how} in live leaves KeyDB and the clients that block in both databases alive`, async () => {
    await withScene({ default: { stage: 'live' } }, async (scene) => {
      const target = scene.client({ of: scene.target });
      const [writer, ...clients] = await Promise.all(Array.from({ length: 4 }, () => scene.wire()));
      for (const [i, db] of [2, 3, 3].entries()) await clients[i].ask('SELECT', db);
      clients[0].send('BLPOP', 'l', 0);
      clients[1].send('BLPOP', 'l', 0);
      clients[2].send('XREAD', 'BLOCK', 0, 'STREAMS', 's', '$');
      await until(async () => /blocked_clients:3\r/.test(await target.info('clients')), 5_000);
      assert.doesNotMatch((await writer.pipeline(swap)).at(-1)!, /^-/);
      await writer.pipeline([
        ['SELECT', 2],
        ['RPUSH', 'l', 'in 2'],
        ['SELECT', 3],
        ['RPUSH', 'l', 'in 3'],
        ['XADD', 's', '1-1', 'f', 'v'],
      ]);
      assert.equal(await clients[0].frame(), '*2\r\n$1\r\nl\r\n$4\r\nin 2');
      assert.equal(await clients[1].frame(), '*2\r\n$1\r\nl\r\n$4\r\nin 3');
      assert.match(await clients[2].frame(), /1-1/);
      await scene.assertEqual();
    });
  });
}
