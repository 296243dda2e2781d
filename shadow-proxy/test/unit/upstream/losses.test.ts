/** What a server removed by itself is counted from the first look on, over restarts and CONFIG RESETSTAT. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeReply } from '../../../src/resp/decode.js';
import { KeyLosses } from '../../../src/upstream/losses.js';

test('rises are counted from the first look on, also after the counts were reset', () => {
  const losses = new KeyLosses(() => Promise.reject(new Error('nobody asks')));
  const see = (evicted: number, expired: number, at: number): void =>
    losses.see(
      new Map([
        ['evicted_keys', `${evicted}`],
        ['expired_keys', `${expired}`],
      ]),
      at,
    );
  see(500, 7, 1);
  assert.deepEqual([losses.evicted, losses.expired, losses.evictedAt], [0, 0, null]);
  see(510, 9, 2);
  see(510, 9, 3);
  assert.deepEqual([losses.evicted, losses.expired, losses.evictedAt], [10, 2, 2]);
  see(3, 0, 4);
  assert.deepEqual([losses.evicted, losses.expired, losses.evictedAt], [13, 2, 4]);
});

test('an eviction explains one loss, and those before our time explain none', async () => {
  let evicted = 5;
  const losses = new KeyLosses(async () => {
    const info = `# Stats\r\nevicted_keys:${evicted}\r\nexpired_keys:0\r\n`;
    return decodeReply(Buffer.from(`$${info.length}\r\n${info}\r\n`)).reply;
  });
  await losses.begin();
  assert.equal(await losses.hasEvicted(), false);
  evicted = 6;
  assert.equal(await losses.hasEvicted(), true);
  losses.spendEviction();
  assert.equal(await losses.hasEvicted(), false);
  // The statistics were reset.
  evicted = 1;
  assert.equal(await losses.hasEvicted(), true);
  losses.spendEviction();
  // Reset again, which a look shows; then as many as before, and none of them has explained a loss.
  evicted = 0;
  assert.equal(await losses.read(), 0);
  evicted = 1;
  assert.equal(await losses.hasEvicted(), true);
  assert.equal(await losses.read(), 1);
});

test('a server that refuses to tell has evicted nothing that is known', async () => {
  const losses = new KeyLosses(async () => decodeReply(Buffer.from('-NOPERM no\r\n')).reply);
  assert.equal(await losses.read(), null);
  assert.equal(await losses.hasEvicted(), false);
});
