/**
 * Rare encodings become what real servers read from them.
 *
 * Needs real servers: ancient encodings, as the servers themselves read them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeDump, encodeDump, transcode } from '../../../src/copy/rdb/transcode.js';
import { withServers } from '../../support/servers.js';
import { ANCIENT } from './ancient.js';
import { connected, observe, restore } from './observe.js';

test('ancient and unusual encodings become what the servers themselves read from them', async () => {
  await withServers(async ({ source, target }) => {
    await connected(source, (redis) =>
      connected(target, async (keydb) => {
        for (const [name, payload] of Object.entries(ANCIENT)) {
          await restore(redis, 'original', payload);
          const original = await observe(redis, 'original');
          await restore(keydb, 'key', transcode(payload, 9));
          assert.deepEqual(await observe(keydb, 'key'), original, name);
          await restore(keydb, 'key', encodeDump(decodeDump(payload), 6));
          assert.deepEqual(await observe(keydb, 'key'), original, `${name}, as RDB 6`);
        }
      }),
    );
  });
});
