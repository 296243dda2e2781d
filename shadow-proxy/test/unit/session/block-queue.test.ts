/** Which keys blocked clients wait for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BlockQueue } from '../../../src/session/block-queue.js';

test('a key is waited for from the first client that waits for it until the last one has left', () => {
  const queue = new BlockQueue();
  assert.equal(queue.has(0, ['a']), false);
  queue.add(0, ['a', 'b']);
  queue.add(0, ['a']);
  assert.deepEqual([queue.has(0, ['a']), queue.has(0, ['b']), queue.has(0, ['c'])], [true, true, false]);
  assert.equal(queue.has(0, ['c', 'b']), true, 'one of the keys is enough');
  assert.equal(queue.has(0, []), false);
  queue.remove(0, ['a', 'b']);
  assert.deepEqual([queue.has(0, ['a']), queue.has(0, ['b'])], [true, false]);
  queue.remove(0, ['a']);
  assert.equal(queue.has(0, ['a']), false);
  queue.add(0, ['a']);
  assert.equal(queue.has(0, ['a']), true, 'nothing is left of those that have gone');
});

test('the same name in another database is another key', () => {
  const queue = new BlockQueue();
  queue.add(1, ['a']);
  assert.deepEqual([queue.has(0, ['a']), queue.has(1, ['a'])], [false, true]);
  queue.remove(0, ['a']);
  assert.equal(queue.has(1, ['a']), true);
});
