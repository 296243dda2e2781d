/** Gates at, just below and just above each of their limits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CONSENT, type GateFacts } from '../../../src/stages/gate-facts.js';
import type { GateName } from '../../../src/route/transitions.js';
import { judgeGates, judgeTarget } from '../../../src/stages/gates.js';
import type { WorkloadEvidence } from '../../../src/storage/evidence.js';

const SAME_SETTINGS = { visible: [], tuning: [], unread: [], refusals: { source: null, target: null } };
const NOW = Date.parse('2026-03-04T12:00:00Z');
const [MINUTE, HOUR] = [60_000, 3_600_000];
const ago = (ms: number): string => new Date(NOW - ms).toISOString();

const evidence: WorkloadEvidence = {
  stage: 'shadow',
  percent: 100,
  since: ago(3 * HOUR),
  compared: 200_000,
  allowed: {},
  mismatches: {},
  inconclusive: 0,
  inconclusiveByScript: {},
  minutes: 90,
  hours: [9],
  verified: { endedAt: ago(HOUR), keys: 5_000, differences: 0, failed: 0, unsure: 0 },
  drill: null,
  unsupported: {},
};
const facts: GateFacts = {
  workload: 'sessions',
  comparedPerSecond: null,
  evidence,
  target: null,
  consent: NO_CONSENT,
  gates: {
    minCompared: 100_000,
    minMinutes: 60,
    maxMismatches: 2,
    maxP99Ratio: 1.2,
    maxAllowedShare: 0.25,
    maxInconclusiveShare: 0.001,
    maxVerifyHours: 24,
    unsupportedHours: 24,
    allowUnsupported: {},
    acceptSettings: [],
    acceptRights: [],
    drill: false,
    steps: true,
  },
  counters: 'none',
  writtenIn: null,
  spanning: 0,
  suspects: 0,
  suspect: null,
  frozen: null,
  down: false,
  servers: [],
  newer: [],
  settings: SAME_SETTINGS,
  users: { differences: [], unknown: null, same: 1, unproven: [], wider: [], onlyTarget: [] },
  refusedLogins: null,
  latencies: [],
  bypassing: [],
  passed: { since: null, last: null },
  evicted: 0,
  sourceEvicted: 0,
  fence: null,
  checks: null,
};

const answers = (
  gate: GateName,
  ...cases: readonly (Partial<GateFacts> | { evidence: WorkloadEvidence })[]
): string[] =>
  cases.map(
    (changes) =>
      judgeGates(
        { ...facts, ...changes },
        { stage: 'shadow', percent: 100 },
        { stage: 'live', percent: 1 },
        new Date(NOW),
      ).find(({ name }) => name === gate)!.answer,
  );
const seen = (changes: Partial<WorkloadEvidence>): { evidence: WorkloadEvidence } => ({
  evidence: { ...evidence, ...changes },
});

test('compared: 99,999 pairs are too few, 100,000 are enough', () => {
  const cases = [99_999, 100_000, 100_001].map((compared) => seen({ compared }));
  assert.deepEqual(answers('compared', ...cases), ['no', 'yes', 'yes']);
});

test('time: 59 minutes are too few, 60 are enough', () => {
  const cases = [59, 60, 61].map((minutes) => seen({ minutes }));
  assert.deepEqual(answers('time', ...cases), ['no', 'yes', 'yes']);
});

test('mismatches: as many as are allowed, all kinds together, and no more', () => {
  const found: readonly Record<string, number>[] = [{ value: 1 }, { value: 1, error: 1 }, { value: 2, error: 1 }];
  const cases = found.map((mismatches) => seen({ mismatches }));
  assert.deepEqual(answers('mismatches', ...cases), ['yes', 'yes', 'no']);
});

test('allowed: a quarter of the pairs, and no more', () => {
  const cases = [49_999, 50_000, 50_001].map((unordered) => seen({ allowed: { unordered } }));
  assert.deepEqual(answers('allowed', ...cases), ['yes', 'yes', 'no']);
});

test('inconclusive: a thousandth of all, those themselves among them', () => {
  const cases = [99, 100, 101].map((inconclusive) => seen({ compared: 100_000 - inconclusive, inconclusive }));
  assert.deepEqual(answers('inconclusive', ...cases), ['yes', 'yes', 'no']);
});

test('suspects: none', () => {
  assert.deepEqual(answers('suspects', { suspects: 0 }, { suspects: 1 }), ['yes', 'no']);
});

test('verify: 24 hours ago, and not a ms more; no key that differed, failed or was unsure', () => {
  const verified = (changes: Partial<NonNullable<WorkloadEvidence['verified']>>): { evidence: WorkloadEvidence } =>
    seen({ verified: { ...evidence.verified!, ...changes } });
  const at = [24 * HOUR - 1, 24 * HOUR, 24 * HOUR + 1].map((ms) => verified({ endedAt: ago(ms) }));
  assert.deepEqual(answers('verify', ...at), ['yes', 'yes', 'no']);
  const keys = [{ keys: 0 }, { keys: 1 }, { differences: 1 }, { failed: 1 }, { unsure: 1 }].map(verified);
  assert.deepEqual(answers('verify', ...keys), ['unknown', 'yes', 'no', 'no', 'no']);
});

test('latency: 1,000 replies of each server, ratio 1.2, both counted as 1 ms at least', () => {
  const window = (source: number, target: number, [ofSource, ofTarget] = [1_000, 1_000]): Partial<GateFacts> => {
    const times = (p99: number, count: number) => ({ p50: p99, p99, p999: p99, count });
    return { latencies: [{ at: ago(0), source: times(source, ofSource), target: times(target, ofTarget) }] };
  };
  assert.deepEqual(
    answers(
      'latency',
      window(1, 1, [999, 1_000]),
      window(1, 1, [1_000, 999]),
      window(1, 1),
      window(1, 1, [1_001, 1_001]),
    ),
    ['unknown', 'unknown', 'yes', 'yes'],
  );
  assert.deepEqual(answers('latency', window(10_000, 11_999), window(10_000, 12_000), window(10_000, 12_001)), [
    'yes',
    'yes',
    'no',
  ]);
  assert.deepEqual(answers('latency', window(1, 1_200), window(999, 1_201), window(1_001, 1_201)), [
    'yes',
    'no',
    'yes',
  ]);
});

test('latency: where fewer pairs are asked for, fewer replies are enough, but at least 100', () => {
  const few = (count: number, minCompared: number): Partial<GateFacts> => {
    const of = { p50: 1, p99: 1, p999: 1, count };
    return { latencies: [{ at: ago(0), source: of, target: of }], gates: { ...facts.gates, minCompared } };
  };
  assert.deepEqual(answers('latency', few(99, 0), few(100, 0), few(499, 500), few(500, 500), few(999, 1_001)), [
    'unknown',
    'yes',
    'unknown',
    'yes',
    'unknown',
  ]);
});

test('unsupported: a form blocks for 24 hours after it was seen last, to the ms', () => {
  const cases = [24 * HOUR - 1, 24 * HOUR, 24 * HOUR + 1].map((ms) =>
    seen({ unsupported: { lmpop: { lacks: 'target', calls: 1, first: ago(48 * HOUR), last: ago(ms) } } }),
  );
  assert.deepEqual(answers('unsupported', ...cases), ['no', 'no', 'yes']);
});

test('bypass: writes that bypass the proxy block for minMinutes, and for one minute where that is 0', () => {
  const wrote = (ms: number, minMinutes: number): Partial<GateFacts> => ({
    passed: { since: null, last: { at: ago(ms), writes: { set: 1 } } },
    gates: { ...facts.gates, minMinutes },
  });
  const cases = [wrote(60 * MINUTE - 1, 60), wrote(60 * MINUTE, 60), wrote(MINUTE - 1, 0), wrote(MINUTE, 0)];
  assert.deepEqual(answers('bypass', ...cases), ['no', 'yes', 'no', 'yes']);
  assert.deepEqual(answers('bypass', { bypassing: [] }, { bypassing: ['a'] }), ['yes', 'no']);
});

test('evictions: none', () => {
  assert.deepEqual(answers('evictions', { evicted: 0 }, { evicted: 1 }), ['yes', 'no']);
});

test('target: the number that is confirmed is that of the keys found, or more', () => {
  const keys = { found: 1_200, onSource: 200, examples: [], looked: 3_000, of: 3_000, complete: true };
  const target = { ownSince: null, keys, of: 3_000, problem: null };
  assert.deepEqual(
    [1_199, 1_200, 1_201].map(
      (confirm) => judgeTarget(target, { overwrite: true, deleteForeign: true, confirm }).answer,
    ),
    ['no', 'yes', 'yes'],
  );
});

test('what is cut is said: six users differ, five are named; six clients pass by, five are named', () => {
  const named = (gate: GateName, changes: Partial<GateFacts>): string =>
    judgeGates(
      { ...facts, ...changes },
      { stage: 'shadow', percent: 100 },
      { stage: 'live', percent: 1 },
      new Date(NOW),
    )
      .find(({ name }) => name === gate)!
      .evidence.split(' (')[0];
  const users = (differences: string[]): Partial<GateFacts> => ({ users: { ...facts.users!, differences } });
  const [five, six] = [['a', 'b', 'c', 'd', 'e'], [...'abcdef']];
  assert.equal(named('users', users(five)), 'a; b; c; d; e');
  assert.equal(named('users', users(six)), 'a; b; c; d; e; and 1 more');
  assert.equal(
    named('bypass', { bypassing: five }),
    'connected to the source directly, bypassing the proxy: a, b, c, d, e',
  );
  assert.equal(
    named('bypass', { bypassing: six }),
    'connected to the source directly, bypassing the proxy: a, b, c, d, e and 1 more',
  );
});
