/**
 * Strings and lists, copied in chunks while they are written.
 *
 * Needs real servers: GETRANGE, SETRANGE and LRANGE of large strings and lists.
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
  SMALL_CHUNKS,
  wayOf,
  withScene,
  type Next,
  type Scene,
} from './large.js';

const BYTES = 120_000;
const bytes = (n: number): Buffer => Buffer.from(Array.from({ length: n }, () => random(256)));

const strings: Next = () =>
  oneOf<readonly (string | Buffer | number)[]>(
    ['SETRANGE', KEY, random(BYTES + 50), bytes(1 + random(40))],
    ['APPEND', KEY, bytes(1 + random(30))],
    ['SETBIT', KEY, random(BYTES * 8), random(2)],
    ['BITFIELD', KEY, 'INCRBY', 'u32', random(BYTES * 8 - 64), random(1 << 30)],
    ['BITFIELD', KEY, 'OVERFLOW', 'SAT', 'INCRBY', 'i17', random(BYTES * 8 - 64), 999],
    ['GETRANGE', KEY, random(BYTES), random(BYTES)],
  );

const fillList = async (scene: Scene, count: number): Promise<void> => {
  for (let at = 0; at < count; at += 500)
    await scene.before.rpush(
      KEY,
      ...Array.from({ length: 500 }, (_, i) => `item ${at + i} ${'z'.repeat((at + i) % 40)}`),
    );
};

for (const stage of DIRECTIONS) {
  test(`a string is copied in pieces, ${wayOf(stage)}, quietly and while bits and bytes of it are written`, async () => {
    await withScene(stage, async (scene) => {
      const { rig, copy } = scene;
      await scene.before.set(KEY, bytes(BYTES));
      const quiet = await copy();
      assert.deepEqual([quiet.outcome, quiet.restarts], ['copied', 0]);
      assert.ok(quiet.bytes < BYTES * 1.1, 'a string that nobody writes is sent once');
      await assertCopied(scene);
      const { result, commands } = await hammered(rig, 4, strings, () => copy());
      assert.deepEqual([result.outcome, result.restarts], ['copied', 0], result.why ?? '');
      assert.ok(commands > 20, `${commands} commands`);
      await assertCopied(scene);
    });
  });

  test(`a list is copied from its head, ${wayOf(stage)}, quietly and while its tail grows`, async () => {
    await withScene(stage, async (scene) => {
      const { rig, copy } = scene;
      await fillList(scene, 1500);
      const quiet = await copy();
      assert.deepEqual([quiet.outcome, quiet.restarts, quiet.elements], ['copied', 0, 1500]);
      await assertCopied(scene);
      const { result } = await hammered(
        rig,
        3,
        (i) =>
          oneOf(
            ['RPUSH', KEY, `new ${i}`],
            ['RPUSHX', KEY, 'a', 'b'],
            ['LLEN', KEY],
            ['EXPIRE', KEY, 1000 + random(10)],
          ),
        () => copy(),
      );
      assert.deepEqual([result.outcome, result.restarts], ['copied', 0], result.why ?? '');
      await assertCopied(scene);
    });
  });
}

test('a list whose elements move is begun again; where they move all the time, the copy says so, and leaves nothing behind', async () => {
  await withScene('shadow', async (scene) => {
    const { rig, copy } = scene;
    await fillList(scene, 1000);
    const client = rig.client();
    let chunks = 0;
    const once = await copy({ pace: async () => void (++chunks === 12 && (await client.lpush(KEY, 'shift'))) });
    assert.deepEqual([once.outcome, once.restarts], ['copied', 1]);
    assert.match(once.why!, /LPUSH/);
    await assertCopied(scene);

    const moves: readonly (readonly string[])[] = [
      ['LPOP', KEY],
      ['LINSERT', KEY, 'BEFORE', 'shift', 'x'],
      ['LSET', KEY, '7', 'other'],
      ['LREM', KEY, '1', 'other'],
      ['LTRIM', KEY, '1', '-1'],
      ['RPOP', KEY],
      ['RPOPLPUSH', KEY, KEY],
      ['EVAL', 'return redis.call("LPUSH", KEYS[1], "s")', '1', KEY],
    ];
    for (const [name, ...args] of moves) {
      chunks = 0;
      const moved = await copy({ pace: async () => void (++chunks === 10 && (await client.call(name, args))) });
      assert.deepEqual([moved.outcome, moved.restarts], ['copied', 1], name);
      await assertCopied(scene);
    }
    chunks = 0;
    const transaction = await copy({
      pace: async () => void (++chunks === 10 && (await client.multi().set('other', 1).lpush(KEY, 'm').exec())),
    });
    assert.equal(transaction.restarts, 1);
    await assertCopied(scene);

    const { result } = await hammered(
      rig,
      2,
      (i) => (i % 2 === 0 ? ['LPUSH', KEY, 'in'] : ['RPOP', KEY]),
      () => copy(),
    );
    assert.deepEqual([result.outcome, result.restarts], ['moving', 3]);
    assert.match(result.why!, /moved its elements/);
    await assertCopied(scene);
  });
});

test('a counter that lies across the end of a piece, and carries, is copied as it is', async () => {
  await withScene('shadow', async (scene) => {
    await scene.before.set(KEY, bytes(BYTES));
    const client = scene.rig.client();
    const count = async (): Promise<void> => {
      const pipeline = client.pipeline();
      for (let at = SMALL_CHUNKS.chunkBytes; at < BYTES; at += SMALL_CHUNKS.chunkBytes)
        pipeline.call('BITFIELD', KEY, 'INCRBY', 'u16', (at - 1) * 8, 200);
      await pipeline.exec();
    };
    let pieces = 0;
    const copied = await scene.copy({ pace: async () => void (++pieces < 45 && (await count())) });
    assert.deepEqual([copied.outcome, copied.restarts], ['copied', 0], copied.why ?? '');
    await assertCopied(scene);
  });
});
