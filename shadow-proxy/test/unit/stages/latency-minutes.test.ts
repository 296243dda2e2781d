/** The points of the gate `latency`. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Latencies } from '../../../src/io/latency.js';
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
