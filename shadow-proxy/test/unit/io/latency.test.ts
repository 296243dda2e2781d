/** Which reply is counted with which time, and to which workload. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Latencies, LatencyRecorder, NO_WORKLOAD } from '../../../src/io/latency.js';

/** By workload: how many replies took so many ms. */
function recorded(workloads: number): { recorder: LatencyRecorder; all: string[]; of: string[] } {
  const [all, of]: string[][] = [[], []];
  const latencies = new Latencies(workloads);
  latencies.record = (ms, count) => void all.push(`${count} in ${ms} ms`);
  latencies.recordOf = (workload, ms, count) => void of.push(`${workload}: ${count} in ${ms} ms`);
  return { recorder: new LatencyRecorder(latencies), all, of };
}

test('replies of one turn are recorded once for the shard, and once for each workload', () => {
  const { recorder, all, of } = recorded(2);
  for (const workload of [0, 1, 0, NO_WORKLOAD, 1, 0, 2]) recorder.sent(10, workload);
  recorder.sent(12, 1);
  recorder.answered(8, 15);
  assert.deepEqual(all, ['7 in 5 ms', '1 in 3 ms']);
  assert.deepEqual(of, ['0: 3 in 5 ms', '1: 2 in 5 ms', '1: 1 in 3 ms']);
});

test('what is answered bit by bit is recorded bit by bit, in the order of sending', () => {
  const { recorder, of } = recorded(2);
  for (const workload of [0, 0, 1]) recorder.sent(10, workload);
  recorder.answered(1, 11);
  recorder.answered(2, 14);
  recorder.answered(1, 15);
  assert.deepEqual(of, ['0: 1 in 1 ms', '0: 1 in 4 ms', '1: 1 in 4 ms']);
});

test('more than the first room holds is kept in its order', () => {
  const { recorder, of } = recorded(300);
  for (let workload = 0; workload < 40; workload++) recorder.sent(0, workload);
  recorder.answered(40, 1);
  of.length = 0;
  for (let workload = 0; workload < 300; workload++) recorder.sent(workload, workload);
  recorder.answered(300, 300);
  assert.deepEqual(
    of,
    Array.from({ length: 300 }, (_, workload) => `${workload}: 1 in ${300 - workload} ms`),
  );
});

test('nothing of a connection that was lost is recorded', () => {
  const { recorder, all } = recorded(1);
  recorder.sent(1, 0);
  recorder.reset();
  recorder.sent(2, 0);
  recorder.answered(2, 3);
  assert.deepEqual(all, ['1 in 1 ms']);
});
