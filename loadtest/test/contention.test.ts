/** When the bench says that a machine was not quiet, and refuses an answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentionOf, MAX_LOAD, MAX_SPREAD, MAX_STEAL } from '../figures/contention.js';
import type { Machine, Results, Sample } from '../figures/results.js';
import { summarise } from '../figures/summary.js';
import { asText } from '../report/text.js';
import { verdicts } from '../report/story.js';
import { loadProfile } from '../workload/load.js';

const point = { connections: 8, pipeline: 1 };
const QUIET: Machine = { cores: 2, loadBefore: 0.2, steal: 0 };

/** Six rounds: the source at these speeds, the target at half of them. */
function results(machine: Machine | undefined, speeds = [1000, 1010, 990, 1005, 995, 1000]): Results {
  const sample = (side: string, round: number, operations: number): Sample => ({
    ...{ side, round, point, hosts: 1, work: {}, startedAt: 0, durationMs: 1000, doubtful: false, operations },
    ...{ counts: {}, histogram: null, percentiles: null, series: [], cpu: null },
  });
  const side = { title: 'KeyDB 6.3.4, server-threads 2', where: 'here' };
  return {
    ...{ format: 1, startedAt: '2026-11-21T12:00:00.000Z', hosts: ['host'], driver: 'memtier', prefix: 'p:' },
    ...{ rounds: 6, seconds: 1, warmUp: 0, rate: null, loopback: true, points: [point], counters: [] },
    profile: loadProfile('cache'),
    sides: [
      { id: 'source', role: 'source', ...side, title: 'Redis 7.0.15, io-threads 1' },
      { id: 'target', role: 'target', ...side },
    ],
    samples: speeds.flatMap((speed, i) => [sample('source', i, speed), sample('target', i, speed / 2)]),
    ...(machine !== undefined && { machine }),
  };
}

const wordOf = (of: Results): string => verdicts(of, summarise(of))[0].word;

test('on a quiet machine the answer stands; so it does where the machine did not tell', () => {
  assert.equal(wordOf(results(QUIET)), 'No, slower');
  assert.equal(wordOf(results(undefined)), 'No, slower');
});

test('each bound is named: at it the machine is quiet, above it contended', () => {
  const reasons = (machine: Partial<Machine>, speeds?: number[]): readonly string[] =>
    contentionOf(results({ ...QUIET, ...machine }, speeds));
  assert.deepEqual(reasons({ loadBefore: MAX_LOAD * 2, steal: MAX_STEAL }), []);
  assert.deepEqual(reasons({ loadBefore: 1.5 }), ['before the test its load average was 0.75 per core (at most 0.50)']);
  assert.deepEqual(reasons({ steal: 0.05 }), ['the hypervisor took 5.0 % of the processor time (at most 2.0 %)']);
  assert.deepEqual(reasons({ steal: null }), []);
  const around = (width: number): number[] => [100, 1000 - width / 2, 1000, 1000, 1000 + width / 2, 9000];
  assert.deepEqual(reasons({}, around(MAX_SPREAD * 1000)), []);
  assert.deepEqual(reasons({}, around(400)), ['the rounds of the source lie 40 % apart (at most 30 %)']);
});

test('contended, the report says inconclusive and why, and neither slower nor a probability', () => {
  const contended = results({ ...QUIET, steal: 0.05 });
  const summary = summarise(contended);
  const [{ word, kind, sentence }] = verdicts(contended, summary);
  assert.equal(word, 'Inconclusive');
  assert.equal(kind, 'unknown');
  assert.match(sentence, /the machine was contended: the hypervisor took 5\.0 % .* Repeat the test on a quiet machine/);
  const text = asText(contended, summary);
  assert.match(text, /inconclusive/);
  assert.doesNotMatch(text, /slower|p [=<]/);
});
