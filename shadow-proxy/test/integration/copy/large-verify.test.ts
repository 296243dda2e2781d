/**
 * Large keys are compared in chunks: exactly, while they are written, and without reading them whole.
 *
 * Needs real servers: HSCAN, XINFO and GETRANGE of both servers, compared without a DUMP.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Redis } from 'ioredis';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig, type Rig } from '../../support/rig.js';

const COUNT = 12_000;
const KEYS = ['large:hash', 'large:list', 'large:set', 'large:stream', 'large:string', 'large:zset'];
const numbers = Array.from({ length: COUNT }, (_, i) => i);

/** A large key of every type, through the proxy, so that both servers have them. */
async function fill(client: Redis): Promise<void> {
  await client.set('large:string', 'x'.repeat(2 << 20), 'EX', 10_000);
  await client.hset('large:hash', Object.fromEntries(numbers.map((n) => [`f${n}`, n])));
  await client.sadd('large:set', ...numbers.map((n) => `m${n}`));
  await client.zadd('large:zset', ...numbers.flatMap((n) => [n / 7, `m${n}`]));
  await client.rpush('large:list', ...numbers);
  const stream = client.pipeline();
  for (const n of numbers) stream.xadd('large:stream', `${n + 1}-1`, 'n', n);
  stream
    .xgroup('CREATE', 'large:stream', 'g', '0')
    .xreadgroup('GROUP', 'g', 'c', 'COUNT', 700, 'STREAMS', 'large:stream', '>');
  await stream.exec();
}

async function verified(
  rig: Rig,
  repair = false,
): Promise<{ differences: Readonly<Record<string, number>>; unsure: number; verified: number; repaired: number }> {
  ask(rig, { kind: 'verify', repair, deletes: repair ? 1 : 0 });
  await ended(rig, 60_000);
  const { state, failed, differences, unsure, repaired, verified: compared } = job(rig);
  assert.deepEqual([state, failed], ['done', 0], JSON.stringify(job(rig)));
  return { differences, unsure, verified: compared, repaired };
}

test('what is equal is found equal while clients write to it, without a DUMP', async () => {
  await withRig({}, async (rig) => {
    const client = rig.client();
    await fill(client);
    await rig.shard.settled();
    let running = true;
    const writing = (async () => {
      for (let i = 0; running; i++) {
        await Promise.all([
          client.setrange('large:string', (i * 7919) % (2 << 20), 'written'),
          client.hincrby('large:hash', `f${(i * 31) % COUNT}`, 1),
          client.srem('large:set', `m${(i * 17) % COUNT}`),
          client.sadd('large:set', `new${i}`),
          client.zincrby('large:zset', 1, `m${(i * 13) % COUNT}`),
          client.rpush('large:list', 'new'),
          client.xadd('large:stream', '*', 'n', 'new'),
          client.xack('large:stream', 'g', `${(i % 700) + 1}-1`),
        ]);
      }
    })();
    const found = await verified(rig);
    running = false;
    await writing;
    assert.deepEqual(found, { differences: {}, unsure: 0, verified: KEYS.length, repaired: 0 });
    for (const server of [rig.source, rig.target])
      assert.doesNotMatch(await rig.client({ of: server }).info('commandstats'), /cmdstat_dump:/);
    await rig.assertEqual();
  });
});

test('one element that differs is found in each of them, and repaired', async () => {
  await withRig({}, async (rig) => {
    await fill(rig.client());
    await rig.shard.settled();
    const target = rig.client({ of: rig.target });
    await target.setrange('large:string', (2 << 20) - 5, 'y');
    await target.hset('large:hash', 'f7000', 'other');
    await target.srem('large:set', 'm11999');
    await target.sadd('large:set', 'in its place');
    await target.zadd('large:zset', 5, 'm6000');
    await target.lset('large:list', 9_000, 'other');
    await target.xack('large:stream', 'g', '650-1');
    assert.deepEqual(await verified(rig), { differences: { value: 6 }, unsure: 0, verified: 6, repaired: 0 });
    const report = readFileSync(join(rig.shard.stateDir, 'test', 'differences.jsonl'), 'utf8')
      .trim()
      .split('\n');
    const differences = report.map(
      (line) => JSON.parse(line) as { key: string; authority: { type: string; length: number } },
    );
    assert.deepEqual(differences.map(({ authority }) => `${authority.type} ${authority.length}`).sort(), [
      'hash 12000',
      'list 12000',
      'set 12000',
      'stream 12000',
      'string 2097152',
      'zset 12000',
    ]);
    assert.deepEqual(await verified(rig, true), { differences: { value: 6 }, unsure: 0, verified: 6, repaired: 6 });
    assert.deepEqual(await verified(rig), { differences: {}, unsure: 0, verified: 6, repaired: 0 });
    await rig.assertEqual();
  });
});

test('a consumer without pending entries that one server lacks is found in a large stream, and repaired', async () => {
  await withRig({}, async (rig) => {
    const client = rig.client();
    const stream = client.pipeline();
    for (const n of numbers) stream.xadd('large:stream', `${n + 1}-1`, 'n', n);
    stream
      .xgroup('CREATE', 'large:stream', 'g', '0')
      .xgroup('CREATECONSUMER', 'large:stream', 'g', 'idle')
      .xgroup('CREATE', 'large:stream', 'h', '$');
    await stream.exec();
    await rig.shard.settled();
    const target = rig.client({ of: rig.target });
    for (const change of [
      ['DELCONSUMER', 'large:stream', 'g', 'idle'],
      ['CREATECONSUMER', 'large:stream', 'h', 'only here'],
    ]) {
      await target.call('XGROUP', ...change);
      assert.deepEqual(
        await verified(rig, true),
        { differences: { value: 1 }, unsure: 0, verified: 1, repaired: 1 },
        change[0],
      );
    }
    assert.deepEqual(await verified(rig), { differences: {}, unsure: 0, verified: 1, repaired: 0 });
  });
});

test('another type, length or time to live, and a key that is not there', async () => {
  await withRig({}, async (rig) => {
    await fill(rig.client());
    await rig.shard.settled();
    const target = rig.client({ of: rig.target });
    await target.del('large:hash', 'large:set');
    await target.set('large:set', 'a string');
    await target.sadd('large:other', 1);
    await target.zadd('large:zset', 1, 'one more');
    await target.expire('large:string', 500);
    assert.deepEqual((await verified(rig, true)).differences, { missing: 1, type: 1, value: 1, ttl: 1, extra: 1 });
    await rig.assertEqual();
  });
});
