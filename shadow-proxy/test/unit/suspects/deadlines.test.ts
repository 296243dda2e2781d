/** The table of deadlines, by itself: what it may forget, and what it may not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deadlines, hashOfKey } from '../../../src/suspects/deadlines.js';

const key = Buffer.from('key:0000');
/** The hash of a key with this number; the buffer is used again, for millions are hashed. */
function hash(i: number): number {
  key.writeUInt32LE(i, 4);
  return hashOfKey(0, key);
}

test('a key expires in the span that was noted for it, and in no other', () => {
  const deadlines = new Deadlines(() => 0);
  assert.equal(deadlines.any(0), false);
  for (let i = 0; i < 5_000; i++) deadlines.note(hash(i), 1_000 + i, 1_010 + i);
  for (let i = 0; i < 5_000; i++) {
    assert.equal(deadlines.within(hash(i), 1_000 + i, 1_000 + i), true);
    assert.equal(deadlines.within(hash(i), 1_010 + i, 9_000), true);
    assert.equal(deadlines.within(hash(i), 0, 999 + i), false);
    assert.equal(deadlines.within(hash(i), 1_012 + i, 9_000), false);
  }
  assert.equal(deadlines.within(hash(5_000), 0, 9_000), false);
  assert.deepEqual([deadlines.any(6_009), deadlines.any(6_010)], [true, false]);
});

test('a key that may expire at two moments that lie far apart expires at both', () => {
  const deadlines = new Deadlines(() => 0);
  const [YEAR_MS, SINCE_1970_MS] = [31_536_000_000, 1_800_000_000_000];
  // EXPIREAT key 1, and SET key value NX PX 5.
  deadlines.note(1, -SINCE_1970_MS, -SINCE_1970_MS);
  deadlines.widen(1, 105, 110);
  assert.equal(deadlines.within(1, 107, 107), true);
  deadlines.note(2, YEAR_MS, YEAR_MS + 10);
  deadlines.widen(2, 105, 110);
  assert.deepEqual([deadlines.within(2, 107, 107), deadlines.within(2, YEAR_MS + 5, Infinity)], [true, true]);
});

test('the same name in another database is another key', () => {
  const deadlines = new Deadlines(() => 0);
  deadlines.note(hashOfKey(0, Buffer.from('k')), 100, 110);
  assert.equal(deadlines.within(hashOfKey(1, Buffer.from('k')), 0, 1_000), false);
  assert.equal(deadlines.within(hashOfKey(0, Buffer.from('..k..'), 2, 3), 0, 1_000), true);
});

test('a new time to live replaces the old one, or is added to it; a key without one has none', () => {
  const deadlines = new Deadlines(() => 0);
  assert.equal(deadlines.isEmpty, true);
  deadlines.note(1, 100, 110);
  assert.equal(deadlines.isEmpty, false);
  deadlines.note(1, 500, 510);
  assert.deepEqual([deadlines.within(1, 0, 200), deadlines.within(1, 505, 505)], [false, true]);
  deadlines.widen(1, 100, 110);
  assert.deepEqual(
    [deadlines.within(1, 105, 105), deadlines.within(1, 505, 505), deadlines.within(1, 511, 600)],
    [true, true, false],
  );
  deadlines.copy(1, 2);
  deadlines.forget(1);
  deadlines.copy(1, 3);
  assert.deepEqual(
    [1, 2, 3].map((key) => deadlines.within(key, 0, 1_000)),
    [false, true, false],
  );
});

test('what is past makes room, and nothing that is still ahead is lost', () => {
  let oldest = 0;
  const deadlines = new Deadlines(() => oldest);
  for (let i = 0; i < 1_000_000; i++) {
    oldest = i - 1_000;
    deadlines.note(hash(i), i + 50_000, i + 50_010);
  }
  assert.equal(deadlines.forgotten, 0);
  for (let i = 960_000; i < 1_000_000; i++) assert.equal(deadlines.within(hash(i), i + 50_000, i + 50_000), true);
});

test('past its bound it forgets what is farthest ahead, and says how many', (t) => {
  const deadlines = new Deadlines(() => 0);
  const count = 600_000;
  let longest = 0;
  for (let i = 0; i < count; i++) {
    const from = performance.now();
    deadlines.note(hash(i), 1_000 + i, 1_000 + i);
    longest = Math.max(longest, performance.now() - from);
  }
  t.diagnostic(`the longest pause was ${longest.toFixed(1)} ms`);
  assert.ok(deadlines.forgotten > 0 && deadlines.forgotten < count);
  for (let i = 0; i < 100_000; i++) assert.equal(deadlines.within(hash(i), 1_000 + i, 1_000 + i), true);
});

test('nothing is known of a key that was removed, whatever is noted of others', () => {
  const deadlines = new Deadlines(() => 0);
  for (let i = 0; i < 100; i++) deadlines.note(hash(i), 1_000, 1_010);
  deadlines.remove(hash(7));
  deadlines.remove(hash(5_000));
  const known = (i: number): boolean => deadlines.has(hash(i)) && deadlines.within(hash(i), 1_000, 1_010);
  assert.deepEqual([known(7), deadlines.has(hash(7)), known(6), known(8)], [false, false, true, true]);
  for (let i = 100; i < 5_000; i++) deadlines.note(hash(i), 1_000, 1_010);
  assert.deepEqual([deadlines.has(hash(7)), known(6), known(4_999)], [false, true, true]);
});
