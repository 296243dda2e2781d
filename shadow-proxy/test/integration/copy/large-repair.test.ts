/**
 * Large suspects are repaired in chunks.
 *
 * Needs real servers: MEMORY USAGE and SCAN replies of large keys, and which commands the servers get.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { TTL_TOLERANCE_MS } from '../../../src/pipeline/operation.js';
import { needs } from '../../support/needs.js';
import { assertCopied, hammered, KEY, random, withScene } from './large.js';

test('a large suspect is repaired in chunks while clients write to it, and no server gets a command that reads or writes all of it', async () => {
  await withScene('shadow', async (scene) => {
    const { rig, before, sequencer, authority, mirror } = scene;
    for (let at = 0; at < 12_000; at += 2000)
      await before.hset(KEY, ...Array.from({ length: 2000 }, (_, i) => [`e${at + i}`, 'v'.repeat(80)]).flat());
    await hammered(
      rig,
      2,
      () => ['HINCRBY', KEY, `n${random(100)}`, 1],
      async () => {
        sequencer.suspects.key(0, Buffer.from(KEY), 'test');
        await rig.shard.settled(20_000);
      },
    );
    await assertCopied(scene);
    for (const of of [authority, mirror])
      assert.doesNotMatch(await rig.client({ of }).info('commandstats'), /cmdstat_(dump|restore)/);
    assert.equal(await rig.client({ of: mirror }).hlen(KEY), await before.hlen(KEY));
  });
});

test('a log that scripts write to without declaring it, just above the size of a large key, is right soon after they end', async () => {
  await withScene('shadow', async (scene) => {
    const { rig, before } = scene;
    for (let at = 0; at < 10_050; at += 2010) {
      const pipeline = before.pipeline();
      for (let i = at; i < at + 2010; i++) pipeline.xadd(KEY, '*', 'event', 'completed', 'job', i);
      await pipeline.exec();
    }
    const script =
      "return redis.call('XADD', ARGV[1], 'MAXLEN', '~', 10000, '*', 'event', 'completed', 'job', ARGV[2])";
    let job = 0;
    await hammered(
      rig,
      2,
      () => ['EVAL', script, 1, 'parent', KEY, (job += 1)],
      () => sleep(3_000),
    );
    // After a chunked copy, the next repair of the key would wait for half a minute.
    await rig.shard.settled(10_000);
    await assertCopied(scene);
  });
});

test('the TTL of a large key is right although the mirror was late with each of its last chunks', async (t) => {
  if (!(await needs(t, 'target<7.0'))) return;
  await withScene('shadow', async (scene) => {
    const { rig, before, mirror } = scene;
    await before.hset(KEY, ...Array.from({ length: 100 }, (_, i) => [`e${i}`, 'v'.repeat(80)]).flat());
    await before.pexpire(KEY, 600_000);
    const target = rig.client({ of: mirror });
    const sleeping = (async () => {
      for (let i = 0; i < 15; i++) await target.call('DEBUG', 'SLEEP', '0.15');
    })();
    assert.equal((await scene.copy()).outcome, 'copied');
    await sleeping;
    await assertCopied(scene);
    const asked = performance.now();
    const left = await before.pttl(KEY);
    const behind = (await target.pttl(KEY)) - left;
    const took = performance.now() - asked;
    assert.ok(behind <= TTL_TOLERANCE_MS + 1, `the mirror's key lives ${behind} ms longer`);
    assert.ok(
      behind + took >= -TTL_TOLERANCE_MS - 1,
      `the mirror's key lives ${-behind} ms less, read within ${took} ms`,
    );
  });
});
