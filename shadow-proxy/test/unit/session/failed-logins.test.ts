/** A client that guesses passwords waits for its answers; one whose password has changed does not wait for long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FailedLogins } from '../../../src/session/failed-logins.js';

const [ANN, BOB] = ['ann', 'bob'];

test('ten failed logins of a user at an address are answered at once, the next ones a second late, for a minute', () => {
  const logins = new FailedLogins();
  const failures = (count: number, now: number): number[] =>
    Array.from({ length: count }, () => logins.failed('10.0.0.1', ANN, now));
  assert.deepEqual(failures(12, 0), [...Array<number>(10).fill(0), 1_000, 1_000]);
  assert.equal(logins.failed('10.0.0.2', ANN, 0), 0, 'each address by itself');
  assert.equal(logins.failed('10.0.0.1', BOB, 0), 0, 'each user by itself');
  assert.deepEqual(failures(1, 60_000), [1_000]);
  assert.deepEqual(failures(1, 60_001), [0]);
});

test('a user that has logged in has ten more', () => {
  const logins = new FailedLogins();
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 10; i++) assert.equal(logins.failed('10.0.0.1', ANN, 0), 0, `round ${round}, failure ${i}`);
    logins.succeeded('10.0.0.1', ANN);
  }
  for (let i = 0; i < 10; i++) logins.failed('10.0.0.1', ANN, 0);
  logins.succeeded('10.0.0.1', BOB);
  assert.equal(logins.failed('10.0.0.1', ANN, 0), 1_000, 'another user has logged in');
});

test('fifty failed logins from an address are answered at once, also where users log in', () => {
  const logins = new FailedLogins();
  for (let i = 0; i < 50; i++) {
    assert.equal(logins.failed('10.0.0.1', `user ${i}`, 0), 0);
    logins.succeeded('10.0.0.1', `user ${i}`);
  }
  assert.equal(logins.failed('10.0.0.1', 'one more', 0), 1_000);
  assert.equal(logins.failed('10.0.0.2', 'one more', 0), 0);
});

test('ten thousand users are remembered: of more, the oldest is forgotten', () => {
  const logins = new FailedLogins();
  const failed = (address: number): number => logins.failed(`${address}`, ANN, 0);
  for (const address of [0, 1]) for (let i = 0; i < 10; i++) failed(address);
  for (let address = 2; address < 10_000; address++) failed(address);
  assert.equal(failed(0), 1_000, '10,000 are kept');
  failed(10_000);
  assert.deepEqual([failed(1), failed(0)], [1_000, 0]);
});

test('names of users that differ behind 64 characters share a count', () => {
  const logins = new FailedLogins();
  const name = 'u'.repeat(64);
  for (let i = 0; i < 10; i++) logins.failed('10.0.0.1', `${name}${i}`, 0);
  assert.equal(logins.failed('10.0.0.1', `${name}x`, 0), 1_000);
});
