/** The series of the status page: points, rates, how many are kept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Series } from '../../../src/telemetry/series.js';
import { shardSnapshot } from '../../support/snapshots.js';

const quiet = { p50: 0, p99: 0, p999: 0, count: 0 };
const busy = { p50: 100, p99: 1234.567, p999: 2000, count: 50 };

test('a point has the latencies of its own time, and rates since the one before', () => {
  const series = new Series();
  series.add(1_000, shardSnapshot({ uptimeMs: 10_000, operations: 100, mismatches: { value: 1 } }), {
    source: busy,
    target: quiet,
  });
  series.add(6_000, shardSnapshot({ uptimeMs: 15_000, operations: 1_100, mismatches: { value: 11 } }), {
    source: busy,
    target: busy,
  });
  const { at, columns } = series.since(0);
  assert.deepEqual(at, [1_000, 6_000]);
  assert.deepEqual(columns.sourceP99, [1230, 1230]);
  assert.deepEqual(columns.targetP99, [null, 1230], 'nothing was answered, so nothing is told');
  assert.deepEqual(columns.targetReplies, [0, 50]);
  assert.deepEqual(columns.operations, [null, 200]);
  assert.deepEqual(columns.mismatches, [null, 2]);
});

test('only new points are returned, and only so many points are kept', () => {
  const series = new Series(3);
  for (let at = 1; at <= 7; at++)
    series.add(at, shardSnapshot({ uptimeMs: at * 5_000 }), { source: quiet, target: quiet });
  assert.deepEqual(series.since(0).at, [5, 6, 7]);
  assert.deepEqual(series.since(6).at, [7]);
  assert.deepEqual(series.since(7).at, []);
});

test('a rate needs time between two points, and counts that were reset give none', () => {
  const series = new Series();
  const add = (uptimeMs: number, operations: number, compared: number): void =>
    series.add(series.since(0).at.length + 1, shardSnapshot({ uptimeMs, operations, compared }), {
      source: quiet,
      target: quiet,
    });
  add(1_000, 10, 5);
  add(1_000, 20, 5);
  add(500, 30, 5);
  add(2_500, 10, 105);
  assert.deepEqual(series.since(0).columns.operations, [null, null, null, 0]);
  assert.deepEqual(series.since(0).columns.compared, [null, null, null, 50]);
});
