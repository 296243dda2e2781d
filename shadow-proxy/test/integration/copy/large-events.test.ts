/**
 * What may happen to a large key as a whole while it is copied.
 *
 * Needs real servers: large keys that expire, change type or are swapped during a chunked copy.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { CopyError } from '../../../src/copy/key/copier.js';
import { isLarge, sizeOf } from '../../../src/copy/large/size.js';
import { isTemporary, temporaryKey } from '../../../src/copy/large/temporary.js';
import { decodeReply, type Reply } from '../../../src/resp/decode.js';
import { assertCopied, KEY, SMALL_CHUNKS, withScene, type Scene } from './large.js';

const TYPES = ['hash', 'set', 'zset', 'string', 'list', 'stream'] as const;
type Type = (typeof TYPES)[number];

async function fill(client: Redis, type: Type, count = 800): Promise<void> {
  const pipeline = client.pipeline();
  for (let i = 0; i < count; i++) {
    if (type === 'hash') pipeline.hset(KEY, `f${i}`, i);
    if (type === 'set') pipeline.sadd(KEY, `m${i}`);
    if (type === 'zset') pipeline.zadd(KEY, i, `m${i}`);
    if (type === 'list') pipeline.rpush(KEY, `item ${i}`);
    if (type === 'stream') pipeline.xadd(KEY, `${i + 1}-1`, 'a', i);
  }
  if (type === 'string') pipeline.set(KEY, Buffer.alloc(count * 60, 'abc'));
  await pipeline.exec();
}

/** What is tried with every type. */
const EVERYWHERE = new Set(['is removed', 'expires and is made anew', 'is given a time to live']);

/** Does it once, when so many chunks are copied. */
function after(chunks: number, act: () => Promise<unknown>): () => Promise<void> {
  let done = 0;
  return async () => void (++done === chunks && (await act()));
}

for (const type of TYPES) {
  test(`a ${type} that ends, or becomes another one, while it is copied`, async () => {
    await withScene('shadow', async (scene) => {
      const { rig, copy, before } = scene;
      const client = rig.client();
      const other: Type = type === 'hash' ? 'set' : 'hash';
      const acts: Readonly<Record<string, readonly [act: () => Promise<unknown>, outcome: string]>> = {
        'is removed': [() => client.del(KEY), 'small'],
        'is removed and made anew as another type': [
          () =>
            client
              .multi()
              .del(KEY)
              .hset(KEY, 'a', 1)
              .exec()
              .then(() => client.rename(KEY, 'moved')),
          'small',
        ],
        expires: [() => client.pexpire(KEY, 20).then(() => sleep(25)), 'small'],
        'expires and is made anew': [
          async () => {
            await client.pexpire(KEY, 20);
            await sleep(25);
            await fill(client, type, 700);
          },
          'copied',
        ],
        'becomes another type, as large': [
          async () => {
            await client.del(KEY);
            await fill(client, other);
          },
          'copied',
        ],
        'is given a time to live': [() => client.pexpire(KEY, 60_000), 'copied'],
        'has one taken away': [() => client.persist(KEY), 'copied'],
        'goes with everything': [() => client.flushall(), 'small'],
      };
      for (const [what, [act, outcome]] of Object.entries(acts)) {
        if (type !== 'hash' && type !== 'list' && !EVERYWHERE.has(what)) continue;
        await before.del(KEY);
        await fill(before, type);
        if (what === 'has one taken away') await before.pexpire(KEY, 60_000);
        const done = await copy({ pace: after(6, act) });
        assert.equal(done.outcome, outcome, `${type} ${what}: ${done.why}`);
        await assertCopied(scene);
        await client.del(KEY);
      }
    });
  });
}

test('databases that are swapped while a key is copied', async () => {
  await withScene('shadow', async (scene) => {
    const { rig, copy, before } = scene;
    for (const type of ['hash', 'list'] as const) {
      await fill(before, type);
      await assert.rejects(copy({ pace: after(8, () => rig.client().swapdb(0, 3)) }), { code: 'swapped' });
      await assertCopied(scene);
      await rig.client().flushall();
    }
  });
});

test('a write that reads the key, and is therefore not replicated as it is, makes the copy start again', async () => {
  await withScene('shadow', async (scene) => {
    const { rig, copy, before } = scene;
    const client = rig.client();
    await fill(before, 'set');
    await client.sadd('other', 'o1', 'o2');
    const inDb3 = rig.client({ db: 3 });
    await inDb3.sadd('other', ...Array.from({ length: 800 }, (_, i) => `o${i}`));
    for (const act of [
      () => inDb3.call('COPY', 'other', KEY, 'DB', 0, 'REPLACE'),
      () => client.smove('other', KEY, 'o1'),
      () => client.smove(KEY, 'other', 'm799'),
      () => client.sunionstore(KEY, KEY, 'other'),
      () => client.eval('return redis.call("SADD", KEYS[1], ARGV[1])', 1, KEY, 'scripted'),
      () => client.multi().sadd(KEY, 'x').smove(KEY, 'other', 'm7').exec(),
    ]) {
      const done = await copy({ pace: after(10, act) });
      assert.deepEqual([done.outcome, done.restarts], ['copied', 1], act.toString());
      await assertCopied(scene);
    }
  });
});

test('a key that fits into one chunk is copied whole; one that the authority does not have is removed', async () => {
  await withScene('live', async (scene) => {
    const { rig, copy, before } = scene;
    await rig.client({ of: scene.mirror }).set(KEY, 'stale');
    assert.equal((await copy()).outcome, 'small');
    await assertCopied(scene);
    await before.hset(KEY, 'a', 1);
    await before.pexpire(KEY, 50_000);
    assert.equal((await copy()).outcome, 'small');
    await assertCopied(scene);
  });
});

test('a copy that is aborted says why, leaves the key suspect, and leaves no temporary key behind', async () => {
  await withScene('shadow', async (scene) => {
    const { rig, copy, before, sequencer } = scene;
    await fill(before, 'list');
    const aborter = new AbortController();
    await assert.rejects(
      copy({ signal: aborter.signal, pace: after(8, async () => aborter.abort()) }),
      (problem) => problem instanceof CopyError && /the copy was stopped/.test(problem.message),
    );
    assert.equal(await rig.client({ of: scene.mirror }).exists(temporaryKey(0, Buffer.from(KEY))), 0);
    await assertCopied(scene);
    const twice = copy();
    await assert.rejects(copy(), /already/);
    await twice;
    // The mirror is killed during the copy, and restarts empty.
    const lost = copy({ pace: after(8, () => scene.mirror.kill('SIGKILL').then(() => scene.mirror.start())) });
    await assert.rejects(lost, CopyError);
    assert.equal(sequencer.suspects.chunked.size, 0);
    assert.equal(scene.suspects.has(0, Buffer.from(KEY)), true);
    await rig.shard.settled();
    assert.equal(await rig.client({ of: scene.mirror }).llen(KEY), 800);
  });
});

test('a key is large by its bytes or by its elements', async () => {
  await withScene('shadow', async ({ before }: Scene) => {
    const server = {
      ask: async (...args: readonly unknown[]): Promise<Reply> => {
        const answer: unknown = await before
          .call(args[0] as string, args.slice(1) as string[])
          .catch((problem: Error) => problem);
        const line =
          answer instanceof Error
            ? `-${answer.message}`
            : typeof answer === 'number'
              ? `:${answer}`
              : answer === null
                ? '$-1'
                : `+${answer as string}`;
        return decodeReply(Buffer.from(`${line}\r\n`)).reply;
      },
    };
    const thresholds = { bytes: 30_000, elements: 1000 };
    for (const [type, count, large] of [
      ['hash', 999, true],
      ['hash', 100, false],
      ['zset', 1000, true],
      ['set', 1000, true],
      ['list', 999, false],
      ['stream', 1000, true],
      ['string', 400, false],
      ['string', 500, true],
    ] as const) {
      await before.del(KEY);
      await fill(before, type, count);
      const size = await sizeOf(server, Buffer.from(KEY));
      assert.deepEqual([size.type, size.length], [type, type === 'string' ? count * 60 : count]);
      assert.equal(isLarge(size, thresholds), large, `${type} of ${count}: ${size.bytes} bytes`);
    }
    assert.deepEqual(await sizeOf(server, Buffer.from('nosuch')), { type: 'none', length: 0, bytes: 0 });
    assert.equal(isTemporary(temporaryKey(3, Buffer.from('a'))), true);
    assert.equal(isTemporary(Buffer.from('a')), false);
    assert.ok(SMALL_CHUNKS.chunkElements < 1000);
  });
});

test('while a lost connection may still write, no part is copied', async () => {
  await withScene('shadow', async (scene) => {
    const { copy, before, sequencer } = scene;
    await fill(before, 'hash');
    let allClosed = true;
    Object.defineProperty(sequencer, 'allClosed', { get: () => allClosed });
    const reads = async (): Promise<number> =>
      Number(/cmdstat_hmget:calls=(\d+)/.exec(await before.info('commandstats'))?.[1] ?? 0);
    let done: ReturnType<typeof copy> | undefined;
    await new Promise<void>((resolve) => {
      const stop = async (): Promise<void> => {
        allClosed = false;
        resolve();
      };
      done = copy({ pace: after(6, stop) });
    });
    const read = await reads();
    // What it writes comes between two parts.
    await before.hset(KEY, 'f2', 'late');
    sequencer.suspects.key(0, Buffer.from(KEY), 'reply-lost');
    // No part may be read: many would have been by now.
    await sleep(100);
    assert.equal(await reads(), read);
    allClosed = true;
    const copied = await done!;
    assert.deepEqual([copied.outcome, copied.restarts], ['copied', 1], copied.why ?? '');
    await assertCopied(scene);
  });
});
