/** How much of a late event loop counts as listening. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listenedMs } from '../../../src/io/clock.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();
listenedMs();

test('while the loop turns, it is the monotonic clock', async () => {
  const from = listenedMs();
  for (const ms of [1, 99, 100, 101, 1_000, 86_400]) {
    const before = listenedMs();
    await clock.advance(ms);
    assert.equal(listenedMs() - before, ms);
  }
  assert.equal(listenedMs() - from, 87_701);
});

test('of a step that is longer than 250 ms, 250 ms count', async () => {
  for (const [late, counted] of [
    [249, 249],
    [250, 250],
    [251, 250],
    [60_000, 250],
  ]) {
    // To a tick.
    await clock.advance(100 - (clock.now % 100));
    const before = listenedMs();
    clock.jump(late);
    assert.equal(listenedMs() - before, counted, `${late} ms, before the tick`);
    await clock.advance(0);
    assert.equal(listenedMs() - before, counted, `${late} ms, after it`);
    await clock.advance(50);
    assert.equal(listenedMs() - before, counted + 50);
    clock.jump(100 - (clock.now % 100));
    await clock.advance(0);
  }
});
