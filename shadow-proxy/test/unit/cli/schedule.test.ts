/** When a change may be made that waits for a time of the day. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidArgumentError } from 'commander';
import { minute, openingOf, windowOf } from '../../../src/cli/schedule.js';

const at = (day: number, hour: number, minutes = 0): number => new Date(2026, 10, day, hour, minutes).getTime();
const NIGHT = windowOf('22:00-05:00');

test('a time of the day is the next one', () => {
  assert.deepEqual(openingOf({ at: minute('02:00') }, at(27, 23, 10)), { from: at(28, 2), to: null });
  assert.deepEqual(openingOf({ at: minute('23:30') }, at(27, 23, 10)), { from: at(27, 23, 30), to: null });
  assert.deepEqual(openingOf({ at: minute('23:10') }, at(27, 23, 10)), { from: at(28, 23, 10), to: null });
  assert.equal(openingOf({}, at(27, 12)), null);
});

test('a window that is open is open now, until its end; another one from its next beginning', () => {
  for (const [now, from, to] of [
    [at(27, 23, 10), at(27, 23, 10), at(28, 5)],
    [at(27, 4, 59), at(27, 4, 59), at(27, 5)],
    [at(27, 5), at(27, 22), at(28, 5)],
    [at(27, 12), at(27, 22), at(28, 5)],
  ])
    assert.deepEqual(openingOf({ window: NIGHT }, now), { from, to }, new Date(now).toString());
  assert.deepEqual(openingOf({ window: windowOf('01:00-03:30') }, at(27, 12)), { from: at(28, 1), to: at(28, 3, 30) });
});

test('a time has to be in the window', () => {
  const both = { at: minute('02:00'), window: NIGHT };
  assert.deepEqual(openingOf(both, at(27, 12)), { from: at(28, 2), to: at(28, 5) });
  assert.throws(() => openingOf({ at: minute('05:00'), window: NIGHT }, at(27, 12)), /not a time within --window/);
});

test('what is no time of the day is refused', () => {
  for (const text of ['2', '24:00', '02:60', '2:5', 'now', '']) assert.throws(() => minute(text), InvalidArgumentError);
  for (const text of ['22:00', '22:00-', '22:00-22:00', '22:00-05:00-06:00'])
    assert.throws(() => windowOf(text), InvalidArgumentError, text);
});
