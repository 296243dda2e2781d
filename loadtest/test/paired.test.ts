/** The statistics of paired rounds: sign test, interval of the median, merged histograms. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { build } from 'hdr-histogram-js';
import { encode, merge, percentile } from '../figures/histogram.js';
import { LEAST_ROUNDS, paired, signTest } from '../figures/paired.js';
import { answerOf } from '../figures/summary.js';

/** Rounds with these ratios of `a` to `b`. */
const pairs = (...ratios: number[]) =>
  paired(
    new Map(ratios.map((ratio, i) => [i, 100 * (i + 1) * ratio])),
    new Map(ratios.map((_, i) => [i, 100 * (i + 1)])),
  )!;

test('the sign test is exact', () => {
  assert.equal(signTest(6, 0), 2 / 64);
  assert.equal(signTest(0, 6), 2 / 64);
  assert.equal(signTest(9, 2), (2 * (1 + 11 + 55)) / 2048);
  assert.equal(signTest(5, 5), 1);
  assert.equal(signTest(0, 0), 1);
});

test('of eleven rounds the second and the tenth ratio hold the median with 98.8 %; the third and ninth would not with 95', () => {
  const { median, interval, confidence, more, less } = pairs(
    1.11,
    1.05,
    1.01,
    1.03,
    1.04,
    1.02,
    1.06,
    1.07,
    1.08,
    1.09,
    0.9,
  );
  assert.deepEqual(
    interval!.map((value) => value.toFixed(2)),
    ['1.01', '1.09'],
  );
  assert.equal(confidence, 1 - (2 * (1 + 11)) / 2048);
  assert.equal(median.toFixed(2), '1.05');
  assert.deepEqual([more, less], [10, 1]);
});

test('five rounds can carry no statement, six can', () => {
  assert.equal(pairs(2, 2, 2, 2, 2).interval, null);
  assert.deepEqual(pairs(2, 3, 2, 2, 2, 2).interval, [2, 3]);
  assert.equal(LEAST_ROUNDS, 6);
});

test('the answer follows the interval, and knows that a low latency is good', () => {
  const higher = pairs(1.2, 1.2, 1.3, 1.1, 1.2, 1.4);
  assert.equal(answerOf(higher, 'throughput', []), 'faster');
  assert.equal(answerOf(higher, 'p99', []), 'slower');
  assert.equal(answerOf(pairs(0.8, 0.9, 0.7, 0.8, 0.8, 0.8), 'throughput', []), 'slower');
  assert.equal(answerOf(pairs(1.5, 1.5, 1.5, 1.5, 1.5, 0.9), 'throughput', []), 'no difference shown');
  assert.equal(answerOf(pairs(9, 9, 9), 'throughput', []), 'too few rounds');
});

test('rounds that one side did not have are no pairs, and none at all is null', () => {
  assert.equal(paired(new Map([[0, 1]]), new Map([[1, 1]])), null);
  assert.deepEqual(
    paired(
      new Map([
        [0, 4],
        [1, 9],
      ]),
      new Map([
        [1, 3],
        [2, 5],
      ]),
    )!.ratios,
    [3],
  );
});

test('merged histograms give the percentiles of all values together, which no average of percentiles does', () => {
  const of = (values: readonly number[]): string => {
    const histogram = build({ highestTrackableValue: 10_000_000, numberOfSignificantValueDigits: 3 });
    for (const value of values) histogram.recordValue(value);
    return encode(histogram);
  };
  const fast = Array.from({ length: 9_900 }, (_, i) => 100 + (i % 100));
  const slow = Array.from({ length: 100 }, () => 50_000);
  const all = merge([of(fast), of(slow)])!;
  assert.equal(all.totalCount, 10_000);
  assert.ok(percentile(all, 99) < 0.21, 'the hundredth part is slow: p99 is still fast');
  assert.ok(percentile(all, 99.5) > 49);
  assert.equal(merge([]), null);
});
