/** How long a gate will take at the present rate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { about, Pace } from '../../../src/stages/pace.js';

test('the rate is that of the last minute, and there is none before 5 s of it', () => {
  const pace = new Pace();
  assert.equal(pace.perSecond('a'), null);
  for (let second = 0; second <= 4; second++) pace.add('a', second * 1_000, second * 100);
  assert.equal(pace.perSecond('a'), null, '4 s');
  pace.add('a', 5_000, 500);
  assert.equal(pace.perSecond('a'), 100);
  assert.equal(pace.perSecond('b'), null, 'of another workload, nothing is known');
  for (let second = 6; second <= 30; second++) pace.add('a', second * 1_000, 500);
  assert.equal(pace.perSecond('a'), 500 / 30, 'it falls while nothing is compared');
  for (let second = 31; second <= 90; second++) pace.add('a', second * 1_000, 500);
  assert.equal(pace.perSecond('a'), 0, 'what is a minute old no longer counts');
});

test('another stage begins at zero, and its rate is measured from the start', () => {
  const pace = new Pace();
  for (let second = 0; second <= 10; second++) pace.add('a', second * 1_000, second * 100);
  pace.add('a', 10_500, 3);
  assert.equal(pace.perSecond('a'), null);
  pace.add('a', 16_500, 63);
  assert.equal(pace.perSecond('a'), 10);
});

test('looks in quick succession give no rate of a moment', () => {
  const pace = new Pace();
  for (let at = 0; at <= 6_000; at += 10) pace.add('a', at, at);
  assert.equal(pace.perSecond('a'), 1_000);
});

test('a time is no more exact than an estimate', () => {
  const minutes = [0.001, 0.1, 0.2, 1, 1.1, 11.98, 59.5, 90, 47 * 60, 72 * 60];
  assert.deepEqual(
    minutes.map((each) => about(each * 60_000)),
    [
      'about 1 s',
      'about 6 s',
      'about 15 s',
      'about 1 min',
      'about 2 min',
      'about 12 min',
      'about 1 h 0 min',
      'about 1 h 30 min',
      'about 47 h 0 min',
      'about 3 days',
    ],
  );
});
