/** The points of the gate `latency`. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Latencies } from '../../../src/io/latency.js';
import type { Latest } from '../../../src/telemetry/series.js';
import { LatencyMinutes } from '../../../src/stages/latency-minutes.js';

function minutesOf(t: TestContext): { pass: (ms: number) => void; points: number[]; minutes: number[] } {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const [points, minutes]: number[][] = [[], []];
  const latencies = new LatencyMinutes(
    { source: new Latencies(), target: new Latencies() },
    { sampled: () => points.push(now), minute: () => minutes.push(now) },
  );
  t.after(() => latencies.close());
  return {
    points,
    minutes,
    pass(ms) {
      now += ms;
      latencies.sampleIfDue(new Date(now));
    },
  };
}

test('the end of a minute makes no second point at the same time: its rates would be 0', (t) => {
  const { pass, points, minutes } = minutesOf(t);
  for (let second = 0; second < 130; second++) pass(1_000);
  assert.deepEqual(minutes, [60_000, 120_000]);
  const gaps = points.map((at, i) => at - (points[i - 1] ?? 0));
  assert.ok(Math.min(...gaps) >= 1_000, `ms between points: ${gaps.join(', ')}`);
  assert.ok(Math.max(...gaps) <= 6_000, `ms between points: ${gaps.join(', ')}`);
});

test('each workload has its own minute, whatever the others send', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const by = { source: new Latencies(2), target: new Latencies(2) };
  const ended: (readonly Latest[])[] = [];
  const minutes = new LatencyMinutes(by, { sampled: () => undefined, minute: (...[, , each]) => ended.push(each) });
  t.after(() => minutes.close());
  const [many, few] = [0, 1];
  for (let second = 1; second <= 60; second++) {
    now = second * 1_000;
    for (const [workload, ms, replies] of [
      [many, 1, 1_000],
      [few, 40, 5],
    ]) {
      by.target.record(ms, replies);
      by.target.recordOf(workload, ms, replies);
    }
    if (second === 30) assert.equal(minutes.runningOf(few).target.count, 150, 'a minute that is not over counts');
    minutes.sampleIfDue(new Date(now));
  }
  const [of] = ended;
  assert.equal(of[many].target.count, 60_000);
  assert.ok(of[many].target.p99 < 1_020, `${of[many].target.p99} µs`);
  assert.deepEqual([of[few].target.count, of[few].source.count], [300, 0]);
  // Two digits: at most 1 % off.
  assert.ok(Math.abs(of[few].target.p99 - 40_000) < 400, `${of[few].target.p99} µs`);
  assert.ok(by.target.snapshot().p99 < 1_020, 'the p99 of all commands shows nothing of it');
  assert.equal(minutes.runningOf(few).target.count, 0, 'the next minute begins with nothing');
});
