/** Hash slots, by values of the Redis cluster specification and of `CLUSTER KEYSLOT`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashSlot } from '../../../src/route/slot.js';

const slotOf = (key: string): number => hashSlot(Buffer.from(key), 0, Buffer.byteLength(key));

test('a slot is the CRC of the key modulo 16384', () => {
  assert.equal(slotOf('123456789'), 0x31c3);
  assert.equal(slotOf('foo'), 12182);
  assert.equal(slotOf('bar'), 5061);
  assert.equal(slotOf('hello'), 866);
  assert.equal(slotOf(''), 0);
});

test('of a key with a hash tag, the tag alone counts', () => {
  assert.equal(slotOf('{user1000}.following'), slotOf('user1000'));
  assert.equal(slotOf('a{user1000}'), slotOf('user1000'));
  assert.equal(slotOf('foo{bar}{zap}'), slotOf('bar'));
  assert.equal(slotOf('foo{{bar}}zap'), slotOf('{bar'));
  assert.equal(slotOf('{a}b'), slotOf('a'));
});

test('an empty or open tag is none', () => {
  assert.equal(slotOf('foo{}{bar}'), 8363);
  assert.notEqual(slotOf('foo{}{bar}'), slotOf('bar'));
  assert.notEqual(slotOf('foo{bar'), slotOf('bar'));
  assert.notEqual(slotOf('foo}bar{'), slotOf('foo'));
});

test('bytes around the key are not looked at', () => {
  const buffer = Buffer.from('{x}foo}y');
  assert.equal(hashSlot(buffer, 3, 6), 12182);
  const open = Buffer.from('foo{bar}');
  assert.notEqual(hashSlot(open, 0, 7), slotOf('bar'), 'the tag is closed after the key');
});
