/** Large suspects are healed in parts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertCopied, hammered, KEY, random, withScene } from './large.js';

test('a large suspect is healed in parts while it is written, and neither server is asked for all of it', async () => {
  await withScene('shadow', async (scene) => {
    const { rig, before, sequencer, authority, mirror } = scene;
    for (let at = 0; at < 12_000; at += 2000) await before.hset(KEY, ...Array.from({ length: 2000 }, (_, i) => [`e${at + i}`, 'v'.repeat(80)]).flat());
    await hammered(rig, 2, () => ['HINCRBY', KEY, `n${random(100)}`, 1], async () => {
      sequencer.doubts.key(0, Buffer.from(KEY), 'test');
      await rig.shard.settled(20_000);
    });
    await assertCopied(scene);
    for (const of of [authority, mirror]) assert.doesNotMatch(await rig.client({ of }).info('commandstats'), /cmdstat_(dump|restore)/);
    assert.equal(await rig.client({ of: mirror }).hlen(KEY), await before.hlen(KEY));
  });
});
