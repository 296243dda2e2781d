/**
 * Existing data moves while clients go on.
 *
 * Needs real servers: DUMP and RESTORE of every type, OOM, and SCAN of both servers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differences } from '../../support/keyspace.js';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig, type Rig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

/** Keys of every type in three databases, before the proxy is there for them. */
async function fill(rig: Rig, count: number): Promise<void> {
  for (const db of [0, 3, 9]) {
    const source = rig.client({ of: rig.source, db });
    const pipeline = source.pipeline();
    for (let i = 0; i < count; i++) {
      pipeline.set(`s:${i}`, 'v'.repeat(i % 200));
      pipeline.hset(`h:${i}`, { a: i, b: 'x'.repeat(i % 90) });
      pipeline.rpush(`l:${i}`, 'one', i, 'three');
      pipeline.sadd(`set:${i}`, i, i + 1, 'm');
      pipeline.zadd(`z:${i}`, i / 3, 'm', -1, 'n');
      pipeline.xadd(`x:${i}`, '1-1', 'f', 'v');
      if (i % 3 === 0) for (const key of ['s', 'h', 'l', 'set', 'z', 'x']) pipeline.pexpire(`${key}:${i}`, 600_000 + i);
    }
    await pipeline.exec();
  }
}

test('a backfill copies every key of every type and database, with its TTL, removes what only the target has, and leaves no suspect', async () => {
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    await fill(rig, 60);
    await rig.client({ of: rig.target }).set('stale', 'only here');
    const consent = { overwrite: false, deleteForeign: true, confirm: 1 };
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite', consent });
    assert.match(String(rig.shard.snapshot().workloads[0].suspect), /not copied/);
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    const { state, copied, deleted, failed, seen } = job(rig);
    assert.deepEqual(
      { state, copied, deleted, failed, seen },
      { state: 'done', copied: 1080, deleted: 1, failed: 0, seen: 1080 },
    );
    await rig.assertEqual();
  });
});

test('a backfill of one workload leaves the others alone', async () => {
  await withRig(
    { workloads: [{ name: 'strings', keys: ['s:*'], stage: 'off' }], default: { stage: 'off' } },
    async (rig) => {
      await fill(rig, 5);
      await rig.shard.shard.changeStage({ workload: 'strings', stage: 'dualwrite' });
      assert.throws(() => ask(rig, { kind: 'backfill', workloads: ['default'] }), {
        code: 'nothing-to-do',
        message: /"default" is in off.*dualwrite first/,
      });
      assert.throws(() => ask(rig, { kind: 'backfill', workloads: ['string'] }), {
        code: 'unknown-workload',
        message: /the plan has strings, default/,
      });
      ask(rig, { kind: 'backfill', workloads: ['strings'] });
      await ended(rig);
      assert.equal(job(rig).copied, 15);
      // Those of the other workload were scanned, too.
      assert.deepEqual([job(rig).scanned, job(rig).total, job(rig).seen], [90, 90, 15]);
      assert.deepEqual((await rig.client({ of: rig.target }).keys('*')).sort(), ['s:0', 's:1', 's:2', 's:3', 's:4']);
    },
  );
});

test('progress counts each key once, and ends at the total, with one authority and with both', async () => {
  await withRig({ default: { stage: 'dualwrite' } }, async (rig) => {
    await fill(rig, 60);
    const progress = async (request: Parameters<typeof ask>[1]): Promise<number[]> => {
      ask(rig, request);
      for (; job(rig).state === 'running'; await new Promise(setImmediate))
        assert.ok(job(rig).scanned <= job(rig).total || job(rig).total === 0, JSON.stringify(job(rig)));
      return [job(rig).scanned, job(rig).total];
    };
    assert.deepEqual(await progress({ kind: 'backfill' }), [1080, 1080]);
    assert.deepEqual(await progress({ kind: 'verify' }), [1080, 1080]);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'shadow' });
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'live', percent: 50, force: true });
    assert.deepEqual(await progress({ kind: 'verify' }), [2160, 2160]);
  });
});

test('a hash without a field is no key, and no copy fails', async () => {
  await withRig({ default: { stage: 'dualwrite' } }, async (rig) => {
    const [source, target] = [rig.client({ of: rig.source }), rig.client({ of: rig.target })];
    // Redis 6.2 has the keys then.
    for (const key of ['neither', 'stale'])
      await assert.rejects(source.hincrbyfloat(key, 'field', 'inf' as unknown as number), /NaN or Infinity/);
    await target.hset('stale', 'field', 'value');
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    ask(rig, { kind: 'verify' });
    await ended(rig);
    await rig.shard.settled();
    assert.deepEqual(
      [job(rig).state, job(rig).failed, job(rig).differences],
      ['done', 0, {}],
      JSON.stringify(job(rig)),
    );
    assert.deepEqual(await target.keys('*'), []);
  });
});

test('a dry run counts, and changes nothing', async () => {
  await withRig({ default: { stage: 'dualwrite' } }, async (rig) => {
    await fill(rig, 20);
    ask(rig, { kind: 'backfill', dryRun: true });
    await ended(rig);
    assert.deepEqual([job(rig).state, job(rig).seen, job(rig).copied], ['done', 360, 0]);
    assert.equal(await rig.client({ of: rig.target }).dbsize(), 0);
    assert.equal(rig.shard.snapshot().workloads[0].suspect, null);
  });
});

/** 60 hashes that expire after 900 ms, among 3,000 keys that stay. @returns the names of the hashes */
async function fillWithExpiring({ client, source: of }: Rig): Promise<string[]> {
  const source = client({ of });
  const [names, others] = [60, 3_000].map((count) => Array.from({ length: count }, (_, i) => `${count}:${i}`));
  await Promise.all(others.map((name) => source.set(name, 'v')));
  await Promise.all(names.map((name) => source.hset(name, 'old', 'v')));
  await Promise.all(names.map((name) => source.pexpire(name, 900)));
  return names;
}

test('a key that expires before it is copied is not left on a target that was empty', async () => {
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    const names = await fillWithExpiring(rig);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    assert.equal(await rig.client({ of: rig.target }).dbsize(), 0);
    ask(rig, { kind: 'backfill', limits: { keysPerSecond: 1_000 } });
    await until(() => job(rig).seen > 0);
    // HSET creates the keys on the empty mirror, without the TTL that they have on the authority.
    await Promise.all(names.map((name) => rig.client().hset(name, 'new', 'v')));
    await ended(rig);
    await rig.shard.settled();
    assert.deepEqual(await differences(rig.source, rig.target), []);
  });
});

test('a key that expires before it is copied, and is written again behind the scan, is the same on both', async () => {
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    const source = rig.client({ of: rig.source });
    const names = await fillWithExpiring(rig);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    // The mirror has these without the time to live that it knows nothing of.
    await Promise.all(names.map((name) => rig.client().hset(name, 'first', 'v')));
    // On a slow machine the first time to live has ended before that.
    await Promise.all(names.map((name) => source.pexpire(name, 900)));
    ask(rig, { kind: 'backfill', limits: { keysPerSecond: 1_000 } });
    await until(() => job(rig).seen > 2_500);
    assert.equal(await source.exists(...names), 0);
    await Promise.all(names.map((name) => rig.client().hset(name, 'second', 'v')));
    await ended(rig);
    await rig.shard.settled();
    assert.deepEqual(await differences(rig.source, rig.target), []);
    assert.equal(await source.hlen(names[0]), 1);
    // No other key is copied twice.
    assert.ok(job(rig).copied <= 3_000 + 2 * names.length, `${job(rig).copied}`);
  });
});

test('the keys per second are kept to', async () => {
  await withRig({ default: { stage: 'dualwrite' } }, async (rig) => {
    await fill(rig, 20);
    const since = performance.now();
    ask(rig, { kind: 'backfill', limits: { keysPerSecond: 200 } });
    await ended(rig);
    const seconds = (performance.now() - since) / 1000;
    assert.ok(seconds > 1.5, `360 keys at 200 a second took ${seconds} s`);
    assert.equal(job(rig).copied, 360);
  });
});

test('a target without memory stops it, before it begins or in the middle, and with more memory it goes on', async () => {
  await withRig({ default: { stage: 'dualwrite' } }, async (rig) => {
    const [source, target] = [rig.client({ of: rig.source }), rig.client({ of: rig.target })];
    const pipeline = source.pipeline();
    for (let i = 0; i < 1_000; i++) pipeline.set(`big:${i}`, 'v'.repeat(16_384));
    await pipeline.exec();
    await target.config('SET', 'maxmemory', '8mb');
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    assert.equal(job(rig).state, 'stopped');
    assert.match(String(job(rig).reason), /would need about \d+ MiB, and its maxmemory is 8 MiB: raise it/);
    assert.equal(await target.dbsize(), 0);
    // Room for what was looked at, and then there is less.
    await target.config('SET', 'maxmemory', '100mb');
    ask(rig, { kind: 'backfill', limits: { keysPerSecond: 500 } });
    await until(() => job(rig).copied > 100);
    await target.config('SET', 'maxmemory', '6mb');
    await ended(rig);
    assert.equal(job(rig).state, 'stopped', JSON.stringify(job(rig)));
    assert.match(String(job(rig).reason), /memory|full/);
    const before = job(rig).copied;
    assert.ok(before < 1_000);
    await target.config('SET', 'maxmemory', '0');
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    assert.deepEqual([job(rig).state, job(rig).failed], ['done', 0]);
    await rig.assertEqual();
  });
});

test('large keys of every type are copied in chunks, while clients write to them', async () => {
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    const source = rig.client({ of: rig.source });
    const numbers = Array.from({ length: 15_000 }, (_, i) => i);
    await source.set('large:string', 'x'.repeat(3 << 20));
    await source.hset('large:hash', Object.fromEntries(numbers.map((n) => [`f${n}`, n])));
    await source.sadd('large:set', ...numbers.map((n) => `m${n}`));
    await source.zadd('large:zset', ...numbers.flatMap((n) => [n / 7, `m${n}`]));
    await source.rpush('large:list', ...numbers);
    const stream = source.pipeline();
    for (const n of numbers) stream.xadd('large:stream', `${n + 1}-1`, 'n', n);
    await stream.exec();
    await source.set('small', 'x');
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    const proxy = rig.client();
    ask(rig, { kind: 'backfill' });
    for (let i = 0; job(rig).state === 'running'; i++) {
      await Promise.all([
        proxy.setrange('large:string', (i * 7919) % (3 << 20), 'written'),
        proxy.hincrby('large:hash', `f${(i * 31) % 15_000}`, 1),
        proxy.srem('large:set', `m${(i * 17) % 15_000}`),
        proxy.zincrby('large:zset', 1, `m${(i * 13) % 15_000}`),
        proxy.rpush('large:list', 'new'),
        proxy.xadd('large:stream', '*', 'n', 'new'),
      ]);
    }
    await rig.shard.settled(20_000);
    assert.deepEqual([job(rig).state, job(rig).failed, job(rig).copied], ['done', 0, 7], JSON.stringify(job(rig)));
    await rig.assertEqual();
    const commands = await rig.client({ of: rig.target }).info('commandstats');
    assert.doesNotMatch(commands, /cmdstat_restore:/, 'one was copied whole');
  });
});

test('limits.largeKeyElements of the plan sets the size from which a key is copied in chunks', async () => {
  await withRig({ default: { stage: 'dualwrite' }, limits: { largeKeyElements: 2_000 } }, async (rig) => {
    const source = rig.client({ of: rig.source });
    for (const count of [1_900, 2_100])
      await source.sadd(`set:${count}`, ...Array.from({ length: count }, (_, i) => `m${i}`));
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    await rig.assertEqual();
    const commands = await rig.client({ of: rig.target }).info('commandstats');
    assert.match(commands, /cmdstat_restore:calls=1,/);
    assert.match(commands, /cmdstat_sadd:/);
  });
});
