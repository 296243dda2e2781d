/** Which keys are known to have no time to live: the newest of many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashOfKey } from '../../../src/suspects/deadlines.js';
import { KnownKeys } from '../../../src/suspects/known-keys.js';

/** Three quarters of the largest table. */
const FULL = (1 << 19) * 0.75;

const key = Buffer.alloc(4);
/** The hash of a key with this number; the buffer is used again, for there are many. */
function hash(number: number): number {
  key.writeUInt32LE(number);
  return hashOfKey(0, key);
}

const missing = (keys: KnownKeys, from: number, to: number): number => {
  let count = 0;
  for (let number = from; number <= to; number++) if (!keys.has(hash(number))) count++;
  return count;
};

test('a key is known once it was added, whatever else its slot holds', () => {
  const keys = new KnownKeys();
  assert.equal(keys.has(5), false);
  // The second one belongs into the slot of the first.
  keys.add(5);
  keys.add(5 + 2 ** 40);
  keys.add(5);
  assert.deepEqual(
    [5, 5 + 2 ** 40, 5 + 2 ** 41].map((hash) => keys.has(hash)),
    [true, true, false],
  );
});

test('as many as fit are all known; past that, the older half is forgotten at once', () => {
  const keys = new KnownKeys();
  for (let number = 1; number < 2 * FULL; number++) keys.add(hash(number));
  assert.deepEqual([missing(keys, 1, 2 * FULL - 1), keys.has(hash(2 * FULL))], [0, false]);
  keys.add(hash(2 * FULL));
  assert.deepEqual([missing(keys, 1, FULL), missing(keys, FULL + 1, 2 * FULL)], [FULL, 0]);
  keys.add(hash(1));
  assert.equal(keys.has(hash(1)), true);
});

test('a key that is added again takes no room', () => {
  const keys = new KnownKeys();
  for (let number = 1; number < FULL; number++) keys.add(hash(number));
  for (let i = 0; i < 2 * FULL; i++) keys.add(hash(1));
  assert.equal(missing(keys, 1, FULL - 1), 0);
});

test('a key that was removed is not known, and those behind its slot are', () => {
  const keys = new KnownKeys();
  const [first, second, third] = [5, 5 + 2 ** 40, 5 + 2 ** 41];
  for (const each of [first, second, third]) keys.add(each);
  keys.remove(first);
  keys.remove(7);
  assert.deepEqual(
    [first, second, third, 7].map((each) => keys.has(each)),
    [false, true, true, false],
  );
  keys.add(first);
  assert.equal(keys.has(first), true);
});

test('a removed key stays removed when the tables grow, and when one becomes the older', () => {
  const keys = new KnownKeys();
  keys.add(hash(1));
  keys.remove(hash(1));
  for (let number = 2; number <= FULL; number++) keys.add(hash(number));
  keys.remove(hash(2));
  assert.deepEqual([keys.has(hash(1)), keys.has(hash(2)), missing(keys, 3, FULL)], [false, false, 0]);
});
