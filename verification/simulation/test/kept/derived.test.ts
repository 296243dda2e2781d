/** Found in profile `journals`, seed 603: a write read a key that is equal, and that key became a suspect. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const OOM = "OOM command not allowed when used memory > 'maxmemory'.";

for (const [how, refused] of [
  ['answers differently', ['sadd', 'restore']],
  ['refuses it', ['sadd', 'restore', 'sunionstore']],
] as const)
  test(`A write whose mirror ${how} makes what it wrote a suspect, and not what it only read`, () =>
    KeptWorld.run(async (kept) => {
      const client = await kept.client();
      await client.ask('SADD read a');
      await kept.until(() => kept.target.entry('0 read') !== undefined, 'both servers have the key');
      const seen = new Set<string>();
      const look = (): void => {
        for (const { key } of kept.proxy.parts!.suspects.all()) seen.add(key.toString());
      };
      let refuses = true;
      kept.target.model.refuse((_, name) => (refuses && (refused as readonly string[]).includes(name) ? OOM : null));
      // Both are on their way before the mirror refuses the first.
      kept.target.pause(100);
      await client.ask('SADD written b');
      assert.equal(await client.ask('SUNIONSTORE written read written'), 2);
      const until = kept.world.events.now + 3_000;
      await kept.until(() => {
        look();
        if (kept.world.events.now > until) refuses = false;
        return kept.isClean;
      }, 'the workload is clean');
      assert.deepEqual([...seen], ['written']);
    }));
