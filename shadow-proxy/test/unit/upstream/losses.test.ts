/** What a server removed by itself is counted from the first look on, over restarts and CONFIG RESETSTAT. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyLosses } from '../../../src/upstream/losses.js';

test('rises are counted from the first look on, also after the counts began anew', () => {
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
