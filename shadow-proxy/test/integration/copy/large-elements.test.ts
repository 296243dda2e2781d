/**
 * Hashes, sets and sorted sets, copied by element while they are written.
 *
 * Needs real servers: HSCAN, SSCAN and ZSCAN of large keys that are written meanwhile.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  assertCopied,
  DIRECTIONS,
  hammered,
  KEY,
  oneOf,
  random,
  wayOf,
  withScene,
  type Next,
  type Scene,
} from './large.js';

const COUNT = 3000;
const some = (): string => `e${random(COUNT + 200)}`;
const number = (): string => String(random(1000) - 500);

interface Case {
  readonly fill: (scene: Scene) => Promise<unknown>;
  readonly next: Next;
}

const inBatches = async (scene: Scene, name: string, of: (i: number) => readonly string[]): Promise<void> => {
  for (let at = 0; at < COUNT; at += 500)
    await scene.before.call(name, KEY, ...Array.from({ length: 500 }, (_, i) => of(at + i)).flat());
};

const CASES: Readonly<Record<string, Case>> = {
  hash: {
    fill: (scene) => inBatches(scene, 'HSET', (i) => [`e${i}`, i % 7 === 0 ? 'x'.repeat(300) : String(i)]),
    next: () =>
      oneOf(
        ['HSET', KEY, some(), number()],
        ['HSET', KEY, some(), 'a', some(), 'b'],
        ['HSETNX', KEY, some(), 'new'],
        ['HDEL', KEY, some(), some()],
        ['HINCRBY', KEY, some(), number()],
        ['HINCRBYFLOAT', KEY, some(), '0.5'],
        ['HGET', KEY, some()],
        ['EVAL', 'return redis.call("HLEN", KEYS[1])', 1, 'another'],
      ),
  },
  set: {
    fill: (scene) => inBatches(scene, 'SADD', (i) => [i % 3 === 0 ? `e${i}` : `e${i}${'y'.repeat(i % 50)}`]),
    next: () =>
      oneOf(
        ['SADD', KEY, some(), some()],
        ['SREM', KEY, some()],
        ['SPOP', KEY],
        ['SPOP', KEY, 3],
        ['SISMEMBER', KEY, some()],
      ),
  },
  zset: {
    fill: (scene) => inBatches(scene, 'ZADD', (i) => [String(i / 3), `e${i}`]),
    next: () =>
      oneOf(
        ['ZADD', KEY, number(), some()],
        ['ZADD', KEY, oneOf('NX', 'XX', 'GT', 'LT'), number(), some()],
        ['ZADD', KEY, 'INCR', '1.25', some()],
        ['ZINCRBY', KEY, number(), some()],
        ['ZREM', KEY, some(), some()],
        ['ZPOPMIN', KEY],
        ['ZPOPMAX', KEY, 2],
        ['BZPOPMIN', KEY, 1],
        ['ZREMRANGEBYSCORE', KEY, '(40', '40.5'],
        ['ZSCORE', KEY, some()],
        ['GEOADD', KEY, 13.3, 38.1, some()],
      ),
  },
};

for (const stage of DIRECTIONS) {
  for (const [type, { fill, next }] of Object.entries(CASES)) {
    test(`a ${type} is copied by element, ${wayOf(stage)}, quietly and while it is written`, async () => {
      await withScene(stage, async (scene) => {
        const { rig, copy } = scene;
        await fill(scene);
        // What the mirror has of it is neither of its elements nor of its type.
        await rig.client({ of: scene.mirror }).rpush(KEY, 'stale');
        const quiet = await copy();
        assert.deepEqual([quiet.outcome, quiet.restarts, quiet.elements], ['copied', 0, COUNT]);
        await assertCopied(scene);
        const { result, commands } = await hammered(rig, 4, next, () => copy());
        assert.deepEqual([result.outcome, result.restarts], ['copied', 0], result.why ?? '');
        assert.ok(commands > 20, `${commands} commands`);
        await assertCopied(scene);
      });
    });
  }
}

test('members of a sorted set whose score the mirror cannot know are not cut, or kept, by it', async () => {
  await withScene('shadow', async (scene) => {
    for (let at = 0; at < COUNT; at += 500)
      await scene.before.zadd(KEY, ...Array.from({ length: 500 }, (_, i) => [at + i + 1000, `e${at + i}`]).flat());
    const client = scene.rig.client();
    let chunks = 0;
    const copied = await scene.copy({
      pace: async () => {
        if (++chunks !== 3) return;
        const count = (): Promise<unknown> =>
          Promise.all(Array.from({ length: 400 }, (_, i) => client.zincrby(KEY, 1, `e${i * 7}`)));
        await count();
        // What the mirror takes for small.
        await client.zremrangebyscore(KEY, 0, 10);
        await count();
        await client.zremrangebyscore(KEY, 2000, 2500);
      },
    });
    assert.deepEqual([copied.outcome, copied.restarts], ['copied', 0], copied.why ?? '');
    await assertCopied(scene);
  });
});

test('a client that blocks, and takes from a sorted set that is copied by element, does not disturb the copy', async () => {
  await withScene('live', async (scene) => {
    for (let at = 0; at < COUNT; at += 500)
      await scene.before.zadd(KEY, ...Array.from({ length: 500 }, (_, i) => [at + i, `e${at + i}`]).flat());
    // Who has not the right to everything blocks, also where there is something to take.
    for (const server of [scene.rig.source, scene.rig.target])
      await scene.rig.client({ of: server }).acl('SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-ping');
    const client = scene.rig.client();
    await client.auth('app', 'secret');
    await client.bzpopmin(KEY, 1);
    const { result, commands } = await hammered(
      scene.rig,
      1,
      () => ['ZADD', KEY, number(), some()],
      async () => {
        const copying = scene.copy();
        let over = false;
        const copied = copying.finally(() => (over = true));
        while (!over) await client.bzpopmax(KEY, 'nosuch', 1);
        return copied;
      },
    );
    assert.deepEqual([result.outcome, result.restarts], ['copied', 0], result.why ?? '');
    assert.ok(commands > 5, `${commands} commands`);
    await assertCopied(scene);
  });
});
