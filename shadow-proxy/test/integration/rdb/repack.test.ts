/**
 * Small hashes of a real server are translated without being taken apart, and KeyDB takes them as they are.
 *
 * Needs real servers: ziplists and listpacks, in which KeyDB finds and changes fields.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkFooter } from '../../../src/copy/rdb/footer.js';
import { MAX_REPACKED, repackHash } from '../../../src/copy/rdb/repack.js';
import { withServers } from '../../support/servers.js';
import { connected, dump, restore } from './observe.js';
import { needs } from '../../support/needs.js';

const out = Buffer.alloc(MAX_REPACKED);
const long = 'x'.repeat(60);
const HASHES: Readonly<Record<string, Record<string, string>>> = {
  plain: { id: '12', name: 'some name', at: '1700000000000', frac: '1.5', empty: '' },
  compressed: { a: long, b: long, c: '' },
  numbers: Object.fromEntries(
    [
      0,
      12,
      13,
      127,
      128,
      -1,
      -4096,
      -4097,
      32_767,
      -32_769,
      8_388_607,
      -8_388_609,
      2 ** 31 - 1,
      -(2 ** 31),
      2 ** 53 - 1,
    ]
      .map(String)
      .flatMap((n) => [
        [n, n],
        [`f${n}`, n],
      ]),
  ),
  lookalikes: { '007': '1', '-0': '2', '+1': '3', '1e3': '4', '9223372036854775807': '5' },
};

test('KeyDB takes a small hash of Redis 7 as a ziplist, and finds and changes its fields', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  await withServers(({ source, target }) =>
    connected(source, (redis) =>
      connected(target, async (keydb) => {
        for (const [name, fields] of Object.entries(HASHES)) {
          await redis.hset(name, fields);
          const payload = await dump(redis, name);
          const size = repackHash(payload, checkFooter(payload), 9, out);
          assert.ok(size > 0, name);
          await restore(keydb, name, Buffer.from(out.subarray(0, size)));
          assert.equal(await keydb.object('ENCODING', name), 'ziplist');
          assert.deepEqual(await keydb.hgetall(name), fields);
          for (const field of Object.keys(fields)) {
            assert.equal(await keydb.hget(name, field), fields[field], `${name} ${field}`);
            assert.equal(await keydb.hset(name, field, 'changed'), 0, `${name} ${field}`);
          }
          assert.equal(await keydb.hset(name, 'another', long.repeat(5)), 1);
          assert.equal(await keydb.object('ENCODING', name), 'hashtable');
          assert.equal(await keydb.hlen(name), Object.keys(fields).length + 1);
        }
      }),
    ),
  );
});
