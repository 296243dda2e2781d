/**
 * Backfill and verification of shards that keep their keys on one target.
 *
 * Needs real servers: SCAN of a KeyDB that several sources share, and DUMP of keys that two of them hold.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { direct, withSharedTarget, type Reported, type Shared } from '../../support/shared.js';
import { until } from '../../support/shard.js';

const kinds = (lines: readonly Reported[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { kind } of lines) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
};

/** Three sources with a hundred keys each, two that more than one of them holds, and some that only the target has. */
async function plant({ sources, target }: Shared): Promise<void> {
  for (const [i, source] of sources.entries()) {
    const own = Array.from({ length: 100 }, (_, n) => ['SET', `${'abc'[i]}:${n}`, `secret ${n}`]);
    await direct(source, ...own);
  }
  const [a, b] = sources;
  await direct(a, ['SET', 'b:both', 'from a'], ['HSET', 'a:same', 'f', 'secret', 'g', 2], ['SET', 'x:1', 'from a']);
  await direct(
    b,
    ['SET', 'b:both', 'from b'],
    ['CONFIG', 'SET', 'hash-max-listpack-entries', 0],
    ['HSET', 'a:same', 'g', 2, 'f', 'secret'],
    ['SET', 'x:2', 'from b'],
  );
  await direct(target, ['SET', 'b:stray', 1], ['SET', 'y:stray', 1], ['SELECT', 2], ['RPUSH', 'y:list', 1]);
}

const FROM_THE_TARGET = ['GET', 'b:both'];

test('a key that two sources hold is reported with both values, and not overwritten until one shard owns it', async () => {
  await withSharedTarget({ owns: [undefined, undefined, undefined], stage: 'off' }, async (shared) => {
    await plant(shared);
    await shared.moveAll('dualwrite');
    const counted = await shared.job(0, { kind: 'backfill', dryRun: true });
    assert.deepEqual([counted.seen, counted.differences], [101, { contested: 2, unowned: 3 }]);
    for (const [i, seen] of [101, 101, 100].entries()) {
      const job = await shared.job(i, { kind: 'backfill' });
      // Each shard reports the keys that only the target has: they may belong to any shard.
      assert.deepEqual(
        [job.state, job.seen, job.copied, job.failed, job.differences],
        ['done', seen, seen, 0, { ...(i < 2 && { contested: 2 }), unowned: 3 }],
      );
    }
    assert.deepEqual(await direct(shared.target, FROM_THE_TARGET, ['EXISTS', 'a:same']), ['$-1', ':0']);
    const contested = shared.report(0).filter(({ kind }) => kind === 'contested');
    assert.doesNotMatch(JSON.stringify(shared.report(0)), /secret|from a|both/);
    assert.deepEqual(
      contested.map(({ holders }) => Object.keys(holders!)),
      [1, 2].map(() => ['the source of shard s0', 'the source of shard s1']),
    );
    for (const { key, holders } of contested) {
      const [one, other] = Object.values(holders!);
      assert.equal(one!.digest === other!.digest, key.startsWith('a:'), key);
      assert.deepEqual([one!.type, one!.pttl, one!.digest.length], [key.startsWith('a:') ? 'hash' : 'string', -1, 16]);
    }

    for (const i of [0, 1, 2]) {
      const job = await shared.job(i, { kind: 'verify', repair: true });
      assert.deepEqual([job.differences, job.repaired], [{ ...(i < 2 && { contested: 2 }), unowned: 3 }, 0]);
    }
    // The keys stay suspect until the operator sets `owns`; meanwhile the proxy does not verify them again and again.
    const reasons = (): (string | null)[] => shared.shards.map(({ shard }) => shard.snapshot().workloads[0].suspect);
    assert.deepEqual(
      reasons().map((why) => why !== null && /set `owns` so that each key has one shard/.test(why)),
      [true, true, false],
    );
    // None may begin: one would have begun by now.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    assert.deepEqual(
      shared.shards.map(({ shard }) => shard.snapshot().job!.automatic),
      [false, false, false],
    );

    await shared.start([['a:*'], ['b:*'], ['c:*']]);
    assert.match(reasons()[2]!, /`owns` of this shard changed in the plan/);
    await until(
      () => shared.shards[2].shard.snapshot().job?.state === 'done' && reasons()[2] === null,
      10_000,
      () => JSON.stringify(shared.shards[2].shard.snapshot().job),
    );
    const first = await shared.job(0, { kind: 'verify', repair: true });
    assert.deepEqual(
      [first.differences, first.listed],
      [{ missing: 1, undeclared: 1, unowned: 2 }, { 'other-shard': 1 }],
      JSON.stringify(shared.report(0)),
    );
    // It owns other keys than before: what only the target has of them may be anybody's.
    const second = await shared.job(1, { kind: 'backfill', deletes: 1 });
    assert.deepEqual(
      [second.differences, second.listed, second.copied, second.deleted],
      [{ undeclared: 1, unowned: 2 }, { 'other-shard': 1 }, 101, 1],
    );
    assert.deepEqual(
      await direct(
        shared.target,
        FROM_THE_TARGET,
        ['HGET', 'a:same', 'g'],
        ['EXISTS', 'b:stray'],
        ['EXISTS', 'y:stray'],
        ['GET', 'x:1'],
      ),
      ['$6\r\nfrom b', '$1\r\n2', ':0', ':1', '$6\r\nfrom a'],
    );
    assert.deepEqual(reasons(), [null, null, null]);
  });
});

test('what only the target has is a difference of the shard that owns it, and is never deleted where none does', async () => {
  for (const stage of ['shadow', 'live'] as const) {
    await withSharedTarget({ owns: [['a:*'], ['b:*']] }, async (shared) => {
      for (const i of [0, 1])
        await shared.wire(i).pipeline(Array.from({ length: 50 }, (_, n) => ['SET', `${'ab'[i]}:${n}`, n]));
      await shared.settled();
      if (stage === 'live') await shared.moveAll('live');
      const mirrorOf = (i: number): Shared['target'] => (stage === 'live' ? shared.sources[i] : shared.target);
      await direct(mirrorOf(0), ['SET', 'a:stray', 1]);
      await direct(mirrorOf(1), ['SET', 'b:stray', 1]);
      await direct(shared.target, ['SET', 'y:stray', 1], ['SET', 'shadow-proxy:copying:0:b:1', 'on its way']);
      const before = await shared.keys();
      for (const i of [0, 1]) {
        const found = await shared.job(i, { kind: 'verify' });
        assert.deepEqual(
          [found.differences, found.seen, found.listed],
          [{ extra: 1, unowned: 1 }, 50, {}],
          `${stage} ${i}: ${JSON.stringify(shared.report(i))}`,
        );
        assert.deepEqual(kinds(shared.report(i)), { extra: 1, unowned: 1 });
      }
      assert.deepEqual(await shared.keys(), before);
      for (const i of [0, 1])
        assert.equal((await shared.job(i, { kind: 'verify', repair: true, deletes: 1 })).repaired, 1);
      const foreignKeys = ['0:shadow-proxy:copying:0:b:1', '0:y:stray'];
      const { sources, target } = await shared.keys();
      assert.deepEqual(target, [...sources.flat(), ...foreignKeys].sort());
      assert.deepEqual(
        sources.map((keys) => keys.length),
        [50, 50],
      );
    });
  }
});

const VERIFIES = 8;

test('under load, no key is reported that is not contested or unowned', async () => {
  for (const owns of [
    [undefined, undefined],
    [['a:*'], undefined],
  ]) {
    await withSharedTarget({ owns }, async (shared) => {
      let over = false;
      const writers = [0, 1].map(async (i) => {
        for (let n = 0; !over; n++) {
          // They come and go, and each is one source's at a time.
          const keys = Array.from({ length: 50 }, (_, k) => `${'ab'[i]}:${(n * 50 + k) % 700}`);
          await shared
            .wire(i)
            .pipeline(
              keys.flatMap((key) => [
                ['SET', key, n],
                ['SET', `${key}:short`, n, 'PX', 30],
                ...(n % 3 === 0 ? [['DEL', key]] : []),
              ]),
            );
        }
      });
      const found: unknown[] = [];
      for (let round = 0; round < VERIFIES; round++) {
        const job = await shared.job(round % 2, { kind: 'verify' });
        if (job.state !== 'done' || Object.keys(job.differences).length > 0 || job.failed > 0)
          found.push(job, shared.report(round % 2));
      }
      over = true;
      await Promise.all(writers);
      assert.deepEqual(found, []);
    });
  }
});

test('a source of another shard that cannot be asked is waited for', async () => {
  await withSharedTarget({ owns: [undefined, undefined], stage: 'off' }, async (shared) => {
    await plant(shared);
    await shared.shards[0].shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    await shared.sources[1].kill('SIGKILL');
    const job = shared.job(0, { kind: 'backfill' });
    const { shard } = shared.shards[0];
    await until(
      () => /the source of shard s1 cannot be read/.test(shard.snapshot().job?.reason ?? ''),
      5_000,
      () => JSON.stringify(shard.snapshot().job),
    );
    assert.equal(shard.snapshot().job!.copied, 0);
    await shared.sources[1].restart();
    const { state, copied } = await job;
    assert.deepEqual([state, copied], ['done', 103]);
  });
});

test('keys of no workload are counted, and listed as far as there is room', async () => {
  await withSharedTarget(
    { owns: [undefined], stage: 'off', workloads: [{ name: 'sessions', keys: ['session:*'], stage: 'shadow' }] },
    async (shared) => {
      const keys = (name: string, count: number): (string | number)[][] =>
        Array.from({ length: count }, (_, n) => ['SET', `${name}:${n}`, n]);
      await shared.wire(0).pipeline([...keys('session', 30), ...keys('forgotten', 1_200)]);
      await shared.settled();
      const all = await shared.job(0, { kind: 'verify' });
      assert.deepEqual([all.differences, all.verified, all.listed], [{}, 30, { 'no-workload': 1_200 }]);
      const report = shared.report(0);
      assert.deepEqual(kinds(report), { 'no-workload': 1_000 });
      assert.match(
        JSON.stringify(report[0]),
        /^\{"kind":"no-workload","workload":"default","db":0,"key":"forgotten:<\d+ bytes, [0-9a-f]{16}>"\}$/,
      );
      assert.deepEqual((await shared.job(0, { kind: 'verify', workloads: ['sessions'] })).listed, {});
    },
  );
});

test('a source with fewer databases has nothing in the others', async () => {
  await withSharedTarget({ owns: [undefined, undefined], databases: 2 }, async (shared) => {
    await direct(shared.sources[1], ['SET', 'k', 'other']);
    await shared.wire(0).pipeline([
      ['SET', 'k', 1],
      ['SELECT', 7],
      ['SET', 'k', 7],
    ]);
    await shared.settled();
    await direct(shared.target, ['SELECT', 9], ['SET', 'stray', 1]);
    const { state, differences, verified } = await shared.job(0, { kind: 'verify' });
    assert.deepEqual([state, differences, verified], ['done', { contested: 1, unowned: 1 }, 1]);
  });
});
