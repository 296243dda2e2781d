/**
 * Fields of a hash that expire (Redis 7.4): KeyDB cannot hold them as Redis does, so their key is named and not copied
 * without them.
 *
 * Needs real servers: HEXPIRE of Redis 7.4 and EXPIREMEMBER of KeyDB, and what DUMP keeps of either.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { differences } from '../../support/keyspace.js';
import { ask, ended, job } from '../../support/jobs.js';
import { startOn, withRig, type Rig } from '../../support/rig.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { clientsOf } from '../../support/clients.js';
import { lacking, needs } from '../../support/needs.js';

test('KeyDB keeps the expiry of a field that is set again, and leaves it out of DUMP', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withServers(async ({ target }) => {
    const { client, closeAll } = clientsOf(() => target.port);
    const keydb = client();
    await keydb.hset('hash', 'a', 1, 'b', 2);
    assert.equal(await keydb.call('EXPIREMEMBER', 'hash', 'a', 300, 'ms'), 1);
    await keydb.hset('hash', 'a', 'new');
    const dump = await keydb.dumpBuffer('hash');
    await keydb.call('RESTORE', 'copy', 0, dump!);
    await until(async () => (await keydb.hlen('hash')) === 1);
    assert.deepEqual([await keydb.hgetall('hash'), await keydb.hgetall('copy')], [{ b: '2' }, { a: 'new', b: '2' }]);
    closeAll();
  });
});

async function knowsFieldExpiry(
  t: TestContext,
  { client, source }: Pick<Rig, 'client' | 'source'>,
  command = 'hpexpire',
): Promise<boolean> {
  if (((await client({ of: source }).call('COMMAND', 'INFO', command)) as unknown[])[0] !== null) return true;
  t.skip(lacking('field-expiry'));
  return false;
}

test('a hash whose fields have a TTL is reported, stays suspect, and is copied once its fields have none', async (t) => {
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    if (!(await knowsFieldExpiry(t, rig))) return;
    const proxy = rig.client();
    await proxy.hset('before', 'a', 1, 'b', 2);
    await proxy.call('HPEXPIRE', 'before', 1_000_000, 'FIELDS', 1, 'a');
    await proxy.set('other', 1);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    assert.deepEqual([job(rig).state, job(rig).copied, job(rig).failed], ['done', 1, 1]);
    assert.equal(job(rig).failures[0].key, 'before');
    assert.match(job(rig).failures[0].why, /fields with a TTL/);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'shadow' });

    // While clients write: the key is not taken for equal either.
    await proxy.hset('live', 'a', 1, 'b', 2);
    await until(() => rig.shard.snapshot().mirror.queuedEffects === 0);
    await proxy.call('HEXPIRE', 'live', 1_000, 'FIELDS', 1, 'a');
    // It stays a suspect: a repair would have been tried by now.
    await sleep(500);
    assert.deepEqual(
      [rig.shard.snapshot().suspects.total, rig.shard.snapshot().unsupported],
      [2, { hpexpire: 1, hexpire: 1 }],
    );
    await assert.rejects(rig.shard.shard.changeStage({ workload: 'default', stage: 'live' }), { code: 'not-clean' });

    await proxy.call('HPERSIST', 'live', 'FIELDS', 1, 'a');
    await proxy.call('HPERSIST', 'before', 'FIELDS', 1, 'a');
    await rig.shard.settled(20_000);
    assert.deepEqual(await differences(rig.source, rig.target), []);
    assert.equal(rig.shard.snapshot().workloads[0].clean, true);
  });
});

/** Fields that end in so many ms, and one that stays. */
async function hashWith(client: Redis, key: string, ends: Readonly<Record<string, number>>): Promise<void> {
  await client.hset(key, { stays: '1', ...Object.fromEntries(Object.keys(ends).map((field) => [field, 'v'])) });
  for (const [field, ms] of Object.entries(ends)) await client.call('HPEXPIRE', key, ms, 'FIELDS', 1, field);
}

test('hashFieldTtl: strip copies such a hash without the TTLs, and each field that expires is removed from the mirror', async (t) => {
  await withRig({ default: { stage: 'off' }, plan: { hashFieldTtl: 'strip' } }, async (rig) => {
    if (!(await knowsFieldExpiry(t, rig))) return;
    const proxy = rig.client();
    await hashWith(proxy, 'before', { soon: 1_500, later: 1_000_000 });
    await hashWith(proxy, 'all', { soon: 1_500 });
    await proxy.hdel('all', 'stays');
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    assert.deepEqual([job(rig).state, job(rig).copied, job(rig).failed], ['done', 2, 0]);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'shadow' });

    await hashWith(proxy, 'live', { soon: 1_200, later: 1_000_000 });
    await proxy.rename('live', 'renamed');
    await hashWith(proxy, 'swapped', { soon: 1_300 });
    await proxy.call('SWAPDB', 0, 1);
    await proxy.call('SWAPDB', 0, 1);
    await proxy.call('COPY', 'renamed', 'copied');
    await proxy.eval("return redis.call('RENAME', KEYS[1], KEYS[2])", 2, 'copied', 'by-script');
    await proxy
      .multi()
      .hset('transaction', 'a', 1, 'b', 2)
      .call('HPEXPIRE', 'transaction', '900', 'FIELDS', '1', 'a')
      .exec();
    const many = Object.fromEntries(Array.from({ length: 12_000 }, (_, i) => [`f${i}`, i]));
    await proxy.hset('large', many);
    await proxy.call('HPEXPIRE', 'large', 1_500, 'FIELDS', 2, 'f1', 'f2');
    await rig.shard.settled(20_000);
    const ended1 = Date.now() + 2_500;
    // Meanwhile clients read, and no reply differs that is not explained.
    while (Date.now() < ended1) {
      await Promise.all(['before', 'renamed', 'transaction', 'by-script'].map((key) => proxy.hgetall(key)));
      await sleep(5);
    }
    await rig.shard.settled(20_000);
    assert.deepEqual(await differences(rig.source, rig.target), []);
    assert.deepEqual(rig.shard.snapshot().mismatches, {}, JSON.stringify(rig.shard.findings().slice(0, 3)));
    const mirror = rig.client({ of: rig.target });
    assert.deepEqual(
      [await mirror.hgetall('before'), await mirror.hgetall('renamed'), await mirror.exists('all')],
      [{ stays: '1', later: 'v' }, { stays: '1', later: 'v' }, 0],
    );
    assert.ok(rig.shard.snapshot().fieldTtls!.stripped >= 6);
    ask(rig, { kind: 'verify' });
    await ended(rig);
    assert.deepEqual([job(rig).differences, job(rig).failed], [{}, 0]);
  });
});

test('hashFieldTtl: strip, once the target answers: the source is given the fields without their TTLs, too', async (t) => {
  await withRig({ default: { stage: 'shadow' }, plan: { hashFieldTtl: 'strip' } }, async (rig) => {
    if (!(await knowsFieldExpiry(t, rig))) return;
    const proxy = rig.client();
    await hashWith(proxy, 'hash', { soon: 2_000 });
    await rig.shard.settled();
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    await rig.shard.settled();
    // The field would have ended by now, had it a TTL.
    await sleep(2_500);
    assert.deepEqual(await proxy.hgetall('hash'), { stays: '1', soon: 'v' });
    assert.deepEqual(await differences(rig.source, rig.target), []);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'shadow' });
    assert.deepEqual(await proxy.hgetall('hash'), { stays: '1', soon: 'v' });
  });
});

test('hashFieldTtl: strip, and the proxy starts again: what expires meanwhile, or later, is removed from the mirror', async (t) => {
  const stateDir = await mkdtemp(join(tmpdir(), 'field-ttl-'));
  try {
    await withServers(async ({ source, target }) => {
      for (const clean of [true, false]) {
        const options = { source, target, stateDir, plan: { hashFieldTtl: 'strip' } };
        const first = await startOn(options);
        if (!(await knowsFieldExpiry(t, first))) return void (await first.stop());
        const proxy = first.client();
        await proxy.flushall();
        await hashWith(proxy, 'meanwhile', { soon: 700 });
        await hashWith(proxy, 'later', { soon: 3_000 });
        await first.shard.settled();
        if (clean) await first.shard.shard.drain(5_000);
        await first.stop();
        // A field ends while no proxy is there.
        await sleep(1_000);
        const second = await startOn({ ...options, firstStart: false });
        // The other field ends, too.
        await sleep(3_000);
        await second.shard.settled();
        assert.deepEqual(await differences(source, target), [], clean ? 'drained' : 'killed');
        await second.stop();
      }
    });
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
});

test('HGETDEL, HGETEX and HSETEX without a TTL are replicated by what they did', async (t) => {
  await withRig({ default: { stage: 'shadow' } }, async (rig) => {
    if (!(await knowsFieldExpiry(t, rig, 'hgetdel'))) return;
    const proxy = rig.client();
    await proxy.call('HSETEX', 'h', 'FIELDS', 3, 'a', 1, 'b', 2, 'c', 3);
    await proxy.call('HSETEX', 'h', 'FNX', 'FIELDS', 1, 'a', 9);
    await proxy.call('HGETEX', 'h', 'FIELDS', 1, 'b');
    await proxy.call('HGETDEL', 'h', 'FIELDS', 2, 'a', 'none');
    await proxy.call('HEXPIRE', 'h', 100, 'FIELDS', 1, 'none');
    await rig.assertEqual();
    assert.equal(rig.shard.snapshot().suspects.total, 0);
  });
});
