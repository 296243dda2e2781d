/** Which late copy of a key is accepted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Lateness } from '../../../src/suspects/lateness.js';

const accepted = (tries: number, errors: readonly number[]): readonly boolean[] => {
  const lateness = new Lateness(tries);
  return errors.map((errorMs) => lateness.accepts(errorMs));
};

test('a mirror that is always equally late is accepted behind the tries', () => {
  assert.deepEqual(accepted(2, [80, 85, 82]), [false, false, true]);
});

test('a copy that came far later than the best is not accepted, and the next good one is', () => {
  assert.deepEqual(accepted(2, [80, 1_200, 1_200, 90]), [false, false, false, true]);
  assert.deepEqual(accepted(2, [1_200, 80, 161, 160]), [false, false, true, true]);
});

test('a mirror that became slower for good is accepted in the end', () => {
  const errors = [80, ...Array<number>(12).fill(1_000)];
  assert.equal(accepted(2, errors).indexOf(true), 9);
});
