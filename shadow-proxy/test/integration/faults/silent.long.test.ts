/**
 * Rule 20: a subscriber sends nothing, so that its connection is asked for a sign of life.
 *
 * Needs real sockets: a subscriber's connection that is silent, and one without messages, for minutes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { withScene } from '../rules/scene.js';

/** It is asked after 15 s. */
const LONG_MS = 25_000;

for (const protocol of [2, 3]) {
  test(`a subscriber in RESP${protocol} whose connection goes silent is closed, and one that just gets no message stays connected`, async () => {
    await withScene({}, async (scene) => {
      const [patient, unlucky] = [await scene.wire(), await scene.wire()];
      await Promise.all([patient, unlucky].map((wire) => wire.ask('HELLO', protocol)));
      await patient.ask('SUBSCRIBE', 'a');
      const before = new Set(scene.toSource.links);
      await unlucky.ask('SUBSCRIBE', 'a');
      for (const link of scene.toSource.links) if (!before.has(link)) link.hold('up', 'down');
      assert.equal(await Promise.race([unlucky.closed.then(() => 'told'), sleep(LONG_MS, 'not told')]), 'told');
      assert.equal(await (await scene.wire()).ask('PUBLISH', 'a', 'x'), ':1');
      assert.match(await patient.frame(), /x$/);
      assert.equal(scene.shard.snapshot().source.silentConnections, 1);
    });
  });
}
