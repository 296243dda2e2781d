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
  assert.deepEqual(accepted(2, [1_200, 80, 161, 160]), [false, false, false, true]);
});

test('a mirror that became slower for good is accepted behind as many tries', () => {
  assert.deepEqual(accepted(2, [80, 90, 1_000, 1_100, 1_050]), [false, false, false, false, true]);
});

test('copies that come far later now and then do not raise what is accepted', () => {
  const errors = [80, 80, 80];
  for (let i = 0; i < 20; i++) errors.push(1_000, 400, 161, 120);
  const answers = accepted(4, errors);
  for (const [i, errorMs] of errors.entries()) if (errorMs > 240) assert.equal(answers[i], false, `copy ${i}`);
});
