/**
 * Values that one real server dumped are restored by the other.
 *
 * Needs real servers: DUMP of each server, restored by the other.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { decodeDump, encodeDump, transcode } from '../../../src/copy/rdb/transcode.js';
import { LAST_SHARED_VERSION, NEWEST_WRITTEN, VALKEY_VERSIONS } from '../../../src/copy/rdb/types.js';
import { sourceHas, withServers } from '../../support/servers.js';
import { connected, dump, observe, observeCounters, restore } from './observe.js';
import { byType, cook, type Command, type Recipe } from './recipes.js';

/** The first RDB version whose streams count. */
const STREAM_COUNTERS = 10;

/** The newest RDB version that the server reads and the kit writes: its own, unless that is Valkey's. */
async function versionOf(client: Redis): Promise<number> {
  await client.set('probe', '');
  const payload = await dump(client, 'probe');
  const version = payload.readUInt16LE(payload.length - 10);
  return VALKEY_VERSIONS.includes(version) ? LAST_SHARED_VERSION : Math.min(version, NEWEST_WRITTEN);
}

const full = await sourceHas('valkey', '9.1');

/** Redis → KeyDB → Redis, each copy observed through commands. */
async function thereAndBack(redis: Redis, keydb: Redis, recipe: Recipe): Promise<void> {
  const [redisVersion, keydbVersion] = [await versionOf(redis), await versionOf(keydb)];
  await redis.del('key', 'back');
  await cook(redis, recipe);
  const original = await observe(redis, 'key');
  const payload = await dump(redis, 'key');

  await restore(keydb, 'key', transcode(payload, keydbVersion));
  assert.deepEqual(await observe(keydb, 'key'), original, 'Redis to KeyDB');

  await restore(redis, 'back', transcode(await dump(keydb, 'key'), redisVersion, undefined, full));
  assert.deepEqual(await observe(redis, 'back'), original, 'KeyDB to Redis');

  await restore(redis, 'back', encodeDump(decodeDump(payload), redisVersion, full));
  assert.deepEqual(await observe(redis, 'back'), original, 'Redis to Redis, in plain encodings');
  if (recipe.type !== 'stream' || redisVersion < STREAM_COUNTERS) return;
  assert.deepEqual(await observeCounters(redis, 'back'), await observeCounters(redis, 'key'), 'counters');
}

/** The reverse: built by KeyDB's own commands, so in KeyDB's own encodings. */
async function backAndThere(redis: Redis, keydb: Redis, recipe: Recipe): Promise<void> {
  const [redisVersion, keydbVersion] = [await versionOf(redis), await versionOf(keydb)];
  await keydb.del('key');
  await cook(keydb, recipe);
  const original = await observe(keydb, 'key');
  await restore(redis, 'back', transcode(await dump(keydb, 'key'), redisVersion, undefined, full));
  assert.deepEqual(await observe(redis, 'back'), original, 'KeyDB to Redis');
  await restore(keydb, 'back', transcode(await dump(redis, 'back'), keydbVersion));
  assert.deepEqual(await observe(keydb, 'back'), original, 'Redis to KeyDB');
  await restore(keydb, 'back', encodeDump(decodeDump(await dump(keydb, 'key')), keydbVersion));
  assert.deepEqual(await observe(keydb, 'back'), original, 'KeyDB to KeyDB, in plain encodings');
}

const config = { 'sanitize-dump-payload': 'yes' };
const servers = { source: { config }, target: { config } };
/** Raise it for a long search: `RDB_RUNS=1000`. */
const runs = Number(process.env.RDB_RUNS ?? 40);

test('every value that Redis 7 or KeyDB builds is restored by the other as it was', async (t) => {
  await withServers(async ({ source, target }) => {
    await connected(source, (redis) =>
      connected(target, async (keydb) => {
        for (const [type, arbitrary] of Object.entries(byType)) {
          await t.test(type, async () => {
            await fc.assert(
              fc.asyncProperty(arbitrary, async (recipe) => {
                await thereAndBack(redis, keydb, recipe);
                await backAndThere(redis, keydb, recipe);
              }),
              { numRuns: runs, interruptAfterTimeLimit: 60_000, includeErrorInReport: true },
            );
          });
        }
      }),
    );
  }, servers);
});

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const BIG: Record<string, Command[]> = {
  'a string of 3 MB': [['SET', 'key', Buffer.alloc(3_000_000, 'abcdefghijklmnopqrstuvwxyz0123456789')]],
  'a string that does not compress': [
    ['SET', 'key', Buffer.from(range(70_000).map((i) => (i * i * 2654435761) >>> 24))],
  ],
  'a list of many nodes': [['RPUSH', 'key', ...range(8_000).map((i) => `item ${i}`)]],
  'a list with an element that has a node of its own': [
    ['RPUSH', 'key', 'before', Buffer.alloc(1_000_000, 'x'), 'after'],
  ],
  'a listpack of more than 65535 elements': [
    ['CONFIG', 'SET', 'list-max-ziplist-size', '80000'],
    ['RPUSH', 'key', ...range(70_000)],
  ],
  'a set of 8000 integers': [['SADD', 'key', ...range(8_000).map((i) => i * 3)]],
  'a set of 8000 strings': [['SADD', 'key', ...range(8_000).map((i) => `member ${i}`)]],
  'a hash of 8000 fields': [['HSET', 'key', ...range(8_000).flatMap((i) => [`field ${i}`, i])]],
  'a sorted set of 8000 members': [['ZADD', 'key', ...range(8_000).flatMap((i) => [i / 7, `member ${i}`])]],
  'a stream of 8000 entries, half of them pending': [
    ...range(8_000).map((i): Command => ['XADD', 'key', `${1000 + i}-${i % 3}`, 'field', i, 'text', `value ${i}`]),
    ['XGROUP', 'CREATE', 'key', 'group', '0'],
    ['XREADGROUP', 'GROUP', 'group', 'alice', 'COUNT', 4_000, 'STREAMS', 'key', '>'],
  ],
  'a stream without entries': [
    ['XGROUP', 'CREATE', 'key', 'group', '$', 'MKSTREAM'],
    ['XGROUP', 'CREATECONSUMER', 'key', 'group', 'alice'],
  ],
};

test('big values and rare shapes are restored as they were', async (t) => {
  await withServers(async ({ source, target }) => {
    await connected(source, (redis) =>
      connected(target, async (keydb) => {
        for (const [name, commands] of Object.entries(BIG)) {
          await t.test(name, async () => {
            const type = commands.at(-1)![0] === 'XADD' || String(commands[0][0]).startsWith('X') ? 'stream' : 'other';
            await thereAndBack(redis, keydb, { type, commands });
            await backAndThere(redis, keydb, { type, commands });
          });
        }
      }),
    );
  }, servers);
});
