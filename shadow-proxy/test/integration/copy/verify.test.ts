/**
 * Every key of both servers is compared at one place in the order, and repaired.
 *
 * Needs real servers: each kind of difference, made in a real keyspace: types, TTLs, stream groups, databases.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig, type Rig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

const stages = ['shadow', 'live'] as const;

/** One key of every way to differ, behind the proxy's back, and one of every type that does not. */
async function plant(rig: Rig, stage: (typeof stages)[number]): Promise<void> {
  const proxy = rig.client();
  for (const key of ['missing', 'value', 'type', 'ttl', 'no-ttl', 'same']) await proxy.set(`user:${key}`, key);
  await proxy.expire('user:ttl', 1_000);
  await proxy.expire('user:no-ttl', 1_000);
  await proxy.hset('hash', { a: 1, b: 2, long: 'x'.repeat(100) });
  await proxy.zadd('zset', 1.5, 'a', -0.25, 'b');
  await proxy.rpush('list', ...Array.from({ length: 300 }, (_, i) => i));
  await proxy.sadd('set', 1, 2, 3);
  await proxy.pfadd('hll', 'a', 'b');
  await proxy.pfcount('hll');
  await proxy.xadd('stream', '1-1', 'f', 'v');
  await proxy.xgroup('CREATE', 'stream', 'g', '0');
  await proxy.xreadgroup('GROUP', 'g', 'c', 'STREAMS', 'stream', '>');
  await rig.assertEqual();
  const mirror = rig.client({ of: stage === 'live' ? rig.source : rig.target });
  await mirror.del('user:missing');
  await mirror.set('user:value', 'other');
  await mirror.del('user:type');
  await mirror.rpush('user:type', 'type');
  await mirror.expire('user:ttl', 500);
  await mirror.persist('user:no-ttl');
  await mirror.set('user:extra', 'only here');
  await mirror.xack('stream', 'g', '1-1');
}

for (const stage of stages) {
  test(`each way to differ is found, reported, and repaired, in ${stage}`, async () => {
    await withRig({ default: { stage } }, async (rig) => {
      await plant(rig, stage);
      ask(rig, { kind: 'verify' });
      await ended(rig);
      assert.deepEqual(job(rig).differences, { missing: 1, value: 2, type: 1, ttl: 2, extra: 1 });
      assert.deepEqual(
        [job(rig).state, job(rig).seen, job(rig).verified, job(rig).repaired, job(rig).failed],
        ['done', 12, 13, 0, 0],
      );
      const report = await readFile(
        join(rig.shard.stateDir, rig.shard.plan.shards[0].name, 'differences.jsonl'),
        'utf8',
      );
      const lines = report
        .trim()
        .split('\n')
        .map(
          (line) =>
            JSON.parse(line) as {
              kind: string;
              key: string;
              authority: { type: string; pttl: number } | null;
              mirror: object | null;
            },
        );
      assert.equal(lines.length, 7);
      const extra = lines.find(({ kind }) => kind === 'extra')!;
      assert.deepEqual(
        [extra.authority, extra.mirror],
        [null, { type: 'string', bytes: extra.mirror && 'bytes' in extra.mirror ? extra.mirror.bytes : 0, pttl: -1 }],
      );
      assert.equal(extra.key, 'user:extra');

      ask(rig, { kind: 'verify', repair: true, deletes: 1 });
      await ended(rig);
      assert.deepEqual([job(rig).state, job(rig).repaired, job(rig).deleted], ['done', 7, 1]);
      ask(rig, { kind: 'verify' });
      await ended(rig);
      assert.deepEqual([job(rig).differences, job(rig).verified], [{}, 12]);
      await rig.assertEqual();
    });
  });
}

test('verify with a sample compares about that percentage of the keys', async () => {
  await withRig({ default: { stage: 'shadow' } }, async (rig) => {
    const pipeline = rig.client().pipeline();
    for (let i = 0; i < 2_000; i++) pipeline.set(`k:${i}`, i);
    await pipeline.exec();
    ask(rig, { kind: 'verify', sample: 10 });
    await ended(rig);
    assert.ok(job(rig).verified > 100 && job(rig).verified < 320, String(job(rig).verified));
  });
});

test('a suspect whose repair takes seconds is waited for', async () => {
  await withRig({ default: { stage: 'shadow' } }, async (rig) => {
    const proxy = rig.client();
    const target = rig.client({ of: rig.target });
    await proxy.set('k', 'before');
    await rig.assertEqual();
    await target.acl('SETUSER', 'default', '-set', '-mset', '-restore');
    await proxy.set('k', 'after');
    await until(() => rig.shard.snapshot().suspects.total === 1);
    ask(rig, { kind: 'verify' });
    // The job must not end: it would have ended by now.
    await sleep(1_500);
    assert.deepEqual([job(rig).state, rig.shard.snapshot().suspects.total], ['running', 1]);
    await target.acl('SETUSER', 'default', '+@all');
    await ended(rig);
    const { state, verified, differences, unsure } = job(rig);
    assert.deepEqual(
      { state, verified, differences, unsure },
      { state: 'done', verified: 1, differences: {}, unsure: 0 },
    );
  });
});

test('a mirror that restarts empty, or with old data, is verified and repaired automatically', async () => {
  await withRig({ default: { stage: 'shadow' } }, async (rig) => {
    const pipeline = rig.client().pipeline();
    for (let i = 0; i < 600; i++) pipeline.set(`k:${i}`, i);
    await pipeline.exec();
    await rig.assertEqual();
    await rig.target.restart();
    await rig
      .client({ of: rig.target })
      .mset('k:1', 'old', 'k:2', 'old', 'k:3', 'old', 'k:4', 'old', 'gone', 'long ago');
    await until(() => rig.shard.snapshot().workloads[0].suspect !== null);
    await rig.client().set('k:new', 1);
    await until(
      () => rig.shard.snapshot().workloads[0].clean && job(rig).state === 'done',
      30_000,
      () => JSON.stringify(rig.shard.snapshot()),
    );
    assert.deepEqual([job(rig).automatic, job(rig).failed], [true, 0]);
    await rig.assertEqual();
  });
});
