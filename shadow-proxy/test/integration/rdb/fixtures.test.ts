/**
 * Payloads of every version of Redis are restored by real servers as the version that wrote them showed them.
 *
 * Needs real servers: payloads of Redis 2.8 to 8.6, as KeyDB and Redis 7 restore them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { transcode } from '../../../src/copy/rdb/transcode.js';
import { withServers } from '../../support/servers.js';
import { SERVERS } from './fixtures/all.js';
import { connected, observe, restore } from './observe.js';
import { needs } from '../../support/needs.js';

test('payloads of Redis 2.8 to 8.6 are restored by KeyDB and by Redis 7 as the server that wrote them showed them', async (t) => {
  if (!(await needs(t, 'redis>=7.0'))) return;
  const config = { 'sanitize-dump-payload': 'yes' };
  await withServers(
    async ({ source, target }) => {
      await connected(source, (redis) =>
        connected(target, async (keydb) => {
          for (const [version, fixtures] of Object.entries(SERVERS)) {
            for (const { name, payload, observed, expiry } of fixtures) {
              if (expiry) continue;
              const bytes = Buffer.from(payload, 'base64');
              await restore(redis, 'key', transcode(bytes, 10));
              await restore(keydb, 'key', transcode(bytes, 9));
              const copy = await observe(redis, 'key');
              // Where the old server could not tell enough, Redis 7 reads its payload without our help.
              if (observed === null) await restore(redis, 'original', bytes);
              const expected = observed ?? (await observe(redis, 'original'));
              assert.deepEqual(copy, expected, `${name} of ${version} on Redis`);
              assert.deepEqual(await observe(keydb, 'key'), expected, `${name} of ${version} on KeyDB`);
            }
          }
        }),
      );
    },
    { source: { config }, target: { config } },
  );
});
