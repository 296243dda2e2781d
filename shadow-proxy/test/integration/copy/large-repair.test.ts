/** Large suspects are repaired in chunks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
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
