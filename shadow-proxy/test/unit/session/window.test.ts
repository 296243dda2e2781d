/** How much one client may have in flight: at, below and above each limit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Window } from '../../../src/session/window.js';

const sending = (count: number, isWrite: boolean, window = new Window()): Window => {
  for (let i = 0; i < count; i++) window.sent(isWrite);
  return window;
};

test('256 commands in flight are enough', () => {
  assert.deepEqual(
    [255, 256, 257].map((count) => sending(count, true).isFull),
    [false, true, true],
  );
});

test('reads whose replies are not known yet are taken for 32 KiB each, up to 1 MiB', () => {
  assert.deepEqual(
    [31, 32].map((count) => sending(count, false).isFull),
    [false, true],
  );
});

test('replies that are coming fill it from 1 MiB on, to the byte', () => {
  const coming = (bytes: number): boolean => {
    const window = sending(1, false);
    window.answered(false, bytes);
    window.settled();
    return sending(2, false, window).isFull;
  };
  assert.deepEqual([coming((1 << 19) - 1), coming(1 << 19)], [false, true]);
});

test('reads and writes are remembered apart', () => {
  const window = sending(1, false);
  window.answered(false, 1 << 20);
  window.settled();
  assert.equal(window.largestReply, 1 << 20);
  assert.equal(sending(200, true, window).isFull, false);
  window.sent(false);
  assert.equal(window.isFull, true);
});

test('a large reply is remembered for some replies, less each time', () => {
  const window = sending(1, false);
  window.answered(false, 1 << 20);
  window.settled();
  let replies = 0;
  for (; window.largestReply > 1 << 19; replies++) {
    window.sent(false);
    window.answered(false, 10);
    window.settled();
  }
  assert.equal(replies, 11);
});

test('what is lost is in flight no more, and was not answered', () => {
  const window = sending(2, true);
  assert.deepEqual([window.settled(), window.settled(), window.inFlight], [1, 0, 0]);
  assert.equal(sending(32, false, window).isFull, true, 'no write is counted any more');
});

test('replies to writes that are coming fill it, too', () => {
  const window = sending(1, true);
  window.answered(true, 1 << 18);
  window.settled();
  assert.deepEqual(
    [3, 1].map((count) => sending(count, true, window).isFull),
    [false, true],
  );
});

test('a write that was answered is a write in flight no more', () => {
  const window = sending(3, true);
  window.answered(true, 10);
  window.settled();
  // The replies of writes are small, those of reads are taken for 32 KiB: 31 reads and two writes fit.
  assert.equal(sending(31, false, window).isFull, false);
  assert.equal(sending(1, false, window).isFull, true);
});

test('of commands in flight, the writes stay counted until they are answered or all are lost', () => {
  const window = sending(200, true);
  window.settled();
  // 199 writes take 1 KiB each; as reads they would take far more than 1 MiB.
  assert.equal(window.isFull, false);
});

test('a reply as large as the largest changes nothing, and a smaller one lowers it by a 16th of the difference', () => {
  const window = sending(1, false);
  window.answered(false, 1 << 20);
  window.settled();
  const next = (bytes: number): number => {
    window.sent(false);
    window.answered(false, bytes);
    window.settled();
    return window.largestReply;
  };
  assert.equal(next(1 << 20), 1 << 20);
  assert.equal(next(0), (1 << 20) - (1 << 16));
});
