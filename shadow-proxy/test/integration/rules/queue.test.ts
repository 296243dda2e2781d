/**
 * Rule 16: what waits for a mirror that does not answer is bounded, no client notices, and nothing is lost.
 *
 * Needs real processes: SIGSTOP of a KeyDB, and the memory that the process then takes.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Argument } from '../../../src/resp/encode.js';
import { until } from '../../support/shard.js';
import { withRig } from '../../support/rig.js';
import { patienceMs } from '../../support/patience.js';

const QUEUE_BYTES = 300_000;
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes that buffers take now. */
function bufferBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

const random = (n: number): number => Math.floor(Math.random() * n);

/** Commands of every kind: scripts, transactions, times to live, large values. */
const batch = (): Argument[][] => [
  ['SET', `k:${random(50)}`, 'x'.repeat(random(2000))],
  ['APPEND', `k:${random(50)}`, 'y'],
  ['SET', `e:${random(20)}`, 'v', 'EX', 1000 + random(1000)],
  ['INCR', `n:${random(20)}`],
  ['LPUSH', `l:${random(10)}`, random(1000)],
  ['LTRIM', `l:${random(10)}`, 0, 50],
  ['SPOP', 's'],
  ['SADD', 's', random(1000), random(1000)],
  ['RENAME', `k:${random(50)}`, `k:${random(50)}`],
  ['SUNIONSTORE', `u:${random(5)}`, 's', `u:${random(5)}`],
  [
    'EVAL',
    "redis.call('HINCRBY', KEYS[1], ARGV[1], 1) return redis.call('HLEN', KEYS[1])",
    1,
    `h:${random(5)}`,
    random(5),
  ],
  ['MULTI'],
  ['INCR', 'inside'],
  ['XADD', 'x', 'MAXLEN', '~', 100, '*', 'f', random(100)],
  ['EXEC'],
  ['DEL', `k:${random(50)}`],
  ['GET', `k:${random(50)}`],
];

test('a mirror that stops answering does not slow down clients, its queue is bounded, and it is repaired until both servers are equal', async () => {
  await withRig({ limits: { queueBytes: QUEUE_BYTES } }, async ({ wire, target, shard, assertEqual }) => {
    const clients = await Promise.all(Array.from({ length: 6 }, wire));
    for (const [i, client] of clients.entries()) {
      if (i % 2) await client.ask('HELLO', 3);
      if (i % 3 === 0) await client.ask('SELECT', 1);
    }
    let longest = 0;
    let most = 0;
    const work = async (ms: number): Promise<void> => {
      const end = performance.now() + ms;
      await Promise.all(
        clients.map(async (client) => {
          while (performance.now() < end) {
            const since = performance.now();
            const commands = batch();
            await client.pipeline(commands);
            longest = Math.max(longest, performance.now() - since);
            most = Math.max(most, shard.snapshot().mirror.queuedBytes);
            await sleep(5);
          }
        }),
      );
    };
    await work(200);
    await target.kill('SIGSTOP');
    await work(1200);
    const { mirror, suspects } = shard.snapshot();
    assert.ok(mirror.dropped > 100 && suspects.total > 20, JSON.stringify({ mirror, suspects }));
    assert.ok(most < QUEUE_BYTES * 1.2, `${most} bytes were queued`);
    assert.ok(longest < patienceMs(5_000), `a client waited ${longest} ms`);
    await target.kill('SIGCONT');
    await work(300);
    await assertEqual();
  });
});

test('again and again', async () => {
  await withRig({ limits: { queueBytes: 60_000 } }, async ({ wire, target, assertEqual }) => {
    const clients = await Promise.all(Array.from({ length: 4 }, wire));
    let stop = false;
    const loads = clients.map(async (client, i) => {
      await client.ask('HELLO', 2 + (i % 2));
      while (!stop) await client.pipeline(batch());
    });
    for (let i = 0; i < 8; i++) {
      await target.kill('SIGSTOP');
      await sleep(60);
      await target.kill('SIGCONT');
      await sleep(60);
    }
    stop = true;
    await Promise.all(loads);
    await assertEqual();
  });
});

test('what waits keeps no more memory than is counted', async () => {
  await withRig(
    { default: { stage: 'dualwrite' }, limits: { queueBytes: 50_000_000 } },
    async ({ wire, target, shard, assertEqual }) => {
      const client = await wire();
      await client.ask('SET', 'large', 'x'.repeat(60_000));
      await shard.settled();
      await target.kill('SIGSTOP');
      const before = bufferBytes();
      // Each small write comes, and is answered, in the same bytes as a large read.
      for (let i = 0; i < 40; i++) {
        const replies = await client.pipeline(
          Array.from({ length: 100 }, (_, n) => (n % 2 ? ['GET', 'large'] : ['SET', `k:${random(100)}`, i])),
        );
        assert.equal(replies.length, 100);
      }
      const { mirror } = shard.snapshot();
      assert.equal(mirror.queuedEffects, 40 * 50);
      const grown = (): number => bufferBytes() - before;
      await until(
        () => grown() < 10_000_000,
        3_000,
        () => `${grown()} bytes for ${mirror.queuedBytes} that are counted`,
      );
      await target.kill('SIGCONT');
      await until(() => shard.snapshot().mirror.queuedEffects === 0);
      await assertEqual();
    },
  );
});

test('what is confirmed late is copied only if it has a time to live', async () => {
  await withRig({}, async ({ wire, source, target, client, assertEqual }) => {
    const proxy = await wire();
    const copied = async (): Promise<number> =>
      Number(/cmdstat_dump:calls=(\d+)/.exec(await client({ of: source }).info('commandstats'))?.[1] ?? 0);
    const stalled = async (...commands: Argument[][]): Promise<void> => {
      await target.kill('SIGSTOP');
      await proxy.pipeline(commands);
      // The confirmation is late by this much.
      await sleep(120);
      await target.kill('SIGCONT');
      await assertEqual();
    };
    await stalled(['SET', 'a', 1], ['SET', 'b', 1, 'NX'], ['GETEX', 'a'], ['APPEND', 'a', 'x']);
    assert.equal(await copied(), 0);
    await stalled(['SET', 'c', 1, 'EX', 100], ['SET', 'a', 2]);
    assert.equal(await copied(), 1);
  });
});

test('one mirror has one connection, however many workloads there are', async () => {
  const workloads = Array.from({ length: 5 }, (_, i) => ({
    name: `w${i}`,
    keys: [`w${i}:*`],
    stage: 'shadow' as const,
  }));
  await withRig({ workloads }, async ({ client, target, shard, wire, assertEqual }) => {
    await (await wire()).pipeline(workloads.map(({ name }) => ['SET', `${name}:k`, 1]));
    await shard.settled();
    const list = (await client({ of: target }).client('LIST')) as string;
    // The other one asks questions.
    assert.equal(list.split('\n').filter((line) => line.includes('name=shadow-proxy:test')).length, 2, list);
    await assertEqual();
  });
});
