/** Small hashes of a real server are translated without being taken apart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkFooter } from '../../../src/copy/rdb/footer.js';
import { repackHash } from '../../../src/copy/rdb/repack.js';
import { decodeDump, encodeDump, type HashValue } from '../../../src/copy/rdb/transcode.js';
import { withServers } from '../../support/servers.js';
import { connected, dump } from './observe.js';

test('hashes that Redis 7 packs, compressed or not, come to what they hold', async () => {
  await withServers(({ source }) =>
    connected(source, async (redis) => {
      for (const [name, fields] of Object.entries({
        plain: {
          id: '12',
          name: 'some name',
          at: '1700000000000',
          small: '-4096',
          neg: '-8388608',
          int: '2147483647',
          frac: '1.5',
        },
        compressed: { a: 'x'.repeat(60), b: 'x'.repeat(60), c: '' },
      })) {
        await redis.hset(name, fields);
        const payload = await dump(redis, name);
        const value = decodeDump(payload);
        const repacked = repackHash(payload, checkFooter(payload), 9);
        assert.ok(repacked !== null, name);
        const held = Object.fromEntries(
          (decodeDump(repacked) as HashValue).fields.map(({ field, value }) => [field.toString(), value.toString()]),
        );
        assert.deepEqual([held, repacked.equals(encodeDump(value, 9))], [fields, true]);
      }
    }),
  );
});
