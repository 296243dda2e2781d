/**
 * What guard says of active-active KeyDB is what KeyDB does: each kind of counting command, lost or diverged, on two
 * real nodes.
 *
 * Needs real servers: what two active KeyDB nodes lose and keep after partial and full resyncs.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Redis } from 'ioredis';
import { ActivePair, RESYNCS, SIDES, type Side } from '../../../src/local/active-pair.js';
import { needs } from '../../support/needs.js';

const onBoth = async <T>(pair: ActivePair, work: (client: Redis, side: Side) => Promise<T>): Promise<T[]> =>
  Promise.all(SIDES.map((side) => work(pair.clients[side], side)));

test('what two nodes write while their link is cut, after a partial resync', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const pair = await ActivePair.start();
  t.after(() => pair.stop());
  await pair.cut();
  const locks = await onBoth(pair, (client, side) => client.set('lock', side, 'NX'));
  const admitted = (
    await onBoth(pair, async (client, side) => {
      let passed = 0;
      for (let i = 0; i < 150; i++)
        passed +=
          Number((await client.multi().zadd('window', i, `${side}-${i}`).zcard('window').exec())![1][1]) <= 100 ? 1 : 0;
      await client.incrby('sum', 10);
      await client.set('rewritten', Number((await client.get('rewritten')) ?? 0) + 10 + side.charCodeAt(0));
      await client.incrbyfloat('float', 0.1);
      await client.append('log', side);
      await client.rpush('queue', side);
      await client.xadd('events', '*', 'from', side);
      return passed;
    })
  ).reduce((a, b) => a + b);
  assert.deepEqual(await pair.rejoin(RESYNCS.partial), RESYNCS.partial);

  assert.deepEqual(locks, ['OK', 'OK'], 'lock: both have it');
  assert.equal(admitted, 200, 'window: each node admits up to the limit');
  assert.deepEqual(await onBoth(pair, (client) => client.get('sum')), ['20', '20'], 'increment: exact');
  const [rewrittenA, rewrittenB] = await onBoth(pair, (client) => client.get('rewritten'));
  assert.notEqual(rewrittenA, rewrittenB, 'rewrite: each has the other’s');
  assert.deepEqual(await onBoth(pair, (client) => client.get('log')), ['ab', 'ba'], 'append: another order');
  assert.deepEqual(
    await onBoth(pair, (client) => client.lrange('queue', 0, -1)),
    [
      ['a', 'b'],
      ['b', 'a'],
    ],
    'list: another order',
  );
  const streams = await onBoth(pair, async (client) => JSON.stringify(await client.xrange('events', '-', '+')));
  assert.ok(
    new Set(streams).size === 2 || streams[0].split('from').length < 3,
    `stream: diverged, or lost: ${streams.join(' and ')}`,
  );
});

test('fractions that two nodes add at once differ, with the link up', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const pair = await ActivePair.start();
  t.after(() => pair.stop());
  pair.delay(40);
  await onBoth(pair, async (client) => {
    for (let i = 0; i < 500; i++) await client.incrbyfloat('float', 0.1);
  });
  pair.delay(0);
  await pair.settle();
  const sums = await onBoth(pair, async (client) => Number(await client.get('float')));
  assert.ok(
    sums.some((sum) => Math.abs(sum - 100) > 0.01),
    `float: ${sums.join(' and ')} instead of 100`,
  );
});

test('a full resync keeps one node’s increments', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const pair = await ActivePair.start();
  t.after(() => pair.stop());
  await pair.cut();
  await onBoth(pair, (client, side) => client.incrby('sum', side === 'a' ? 1000 : 1500));
  assert.deepEqual(await pair.rejoin(RESYNCS.full), RESYNCS.full);
  for (const sum of await onBoth(pair, async (client) => Number(await client.get('sum'))))
    assert.ok(sum === 1000 || sum === 1500, `${sum}`);
});

/** A writes a counter on; B gives other keys the number that it had. */
async function olderNumberWins(policy: string): Promise<boolean> {
  const pair = await ActivePair.start({ config: { maxmemory: '200mb', 'maxmemory-policy': policy } });
  try {
    await pair.clients.a.set('n', 5);
    await pair.settle();
    await pair.cut();
    await pair.clients.a.incrby('n', 10);
    await pair.clients.b.set('other', 5);
    await pair.rejoin(RESYNCS.full);
    return (await onBoth(pair, (client) => client.get('n'))).some((value) => value !== '15');
  } finally {
    await pair.stop();
  }
}

test('a single writer’s small number falls back in a full resync, unless keys have times of their own', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  assert.equal(await olderNumberWins('noeviction'), true);
  assert.equal(await olderNumberWins('volatile-ttl'), true);
  assert.equal(await olderNumberWins('volatile-lru'), false);
  assert.equal(await olderNumberWins('allkeys-lfu'), false);
});

test('an active replica that restarts from its AOF lacks what its peer had sent', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const pair = await ActivePair.start({ appendonly: true });
  t.after(() => pair.stop());
  await pair.clients.a.set('from-a', 1);
  await pair.clients.b.set('from-b', 1);
  await pair.settle();
  assert.equal(await pair.clients.b.exists('from-a', 'from-b'), 2);
  await pair.cut();
  await pair.restart('b', 'aof');
  assert.deepEqual([await pair.clients.b.exists('from-a'), await pair.clients.b.exists('from-b')], [0, 1]);
});
