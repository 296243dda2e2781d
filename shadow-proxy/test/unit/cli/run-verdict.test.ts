/** The verdict of `shadow-compare run`: holds, does not hold, inconclusive. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { judge } from '../../../src/cli/run-verdict.js';
import { list } from '../../../src/text/figures.js';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { shardSnapshot, workloadSnapshot } from '../../support/snapshots.js';

const mirror = (change: Partial<ShardSnapshot['mirror']>): Partial<ShardSnapshot> => ({
  mirror: { ...shardSnapshot().mirror, ...change },
});

test('a run holds where everything was compared and nothing differed', () => {
  const verdict = judge(shardSnapshot(), true);
  assert.deepEqual(verdict, {
    outcome: 'holds',
    reasons: ['990 pairs of replies compared, no mismatch'],
    notes: [],
    exitCode: 0,
  });
});

describe('a run does not hold', () => {
  for (const [name, change, reason] of [
    ['with one mismatch', { mismatches: { value: 1 } }, '1 mismatch: 1 value'],
    ['with several', { mismatches: { value: 1, type: 1200 } }, '1,201 mismatches: 1,200 type, 1 value'],
    [
      'with a frozen repair',
      { frozen: 'the source is another process' },
      'repairs are frozen: the source is another process',
    ],
    [
      'with a mismatch, whatever else is open',
      { mismatches: { value: 1 }, ...mirror({ connected: false }), operations: 0 },
      '1 mismatch: 1 value',
    ],
  ] as [string, Partial<ShardSnapshot>, string][]) {
    test(name, () => {
      const { outcome, reasons, exitCode } = judge(shardSnapshot(change), true);
      assert.deepEqual([outcome, reasons, exitCode], ['does not hold', [reason], 1]);
    });
  }
});

describe('a run is inconclusive', () => {
  for (const [name, change, reason] of [
    ['without a client', { operations: 0, compared: 0, matched: 0, allowed: {} }, /^no client sent a command/],
    ['without a comparison', { compared: 0, matched: 0, allowed: {} }, /^nothing was compared/],
    ['without its mirror', mirror({ connected: false }), /^the mirror is disconnected/],
    ['with effects that were given up', mirror({ dropped: 1 }), /^1 effect did not reach the mirror/],
    ['with suspects', { suspects: { total: 2, byReason: { outage: 2 } } }, /^2 suspect keys: 2 outage/],
    [
      'with a workload that is in doubt as a whole',
      { workloads: [workloadSnapshot({ clean: false })] },
      /^the mirror is not verified for sessions$/,
    ],
    [
      'and why',
      { workloads: [workloadSnapshot({ clean: false, suspect: 'a copy is missing' })] },
      /^the mirror is not verified for sessions \(a copy is missing\)$/,
    ],
    [
      'with too many pairs that could not be told',
      { inconclusive: { lost: 2 } },
      /^2 pairs of replies inconclusive: 2 lost/,
    ],
    [
      'with commands that only one server supports',
      { unsupported: { LCS: 1 } },
      /^1 command that only one server supports: 1 LCS/,
    ],
  ] as [string, Partial<ShardSnapshot>, RegExp][]) {
    test(name, () => {
      const { outcome, reasons, exitCode } = judge(shardSnapshot(change), true);
      assert.deepEqual([outcome, reasons.length, exitCode], ['inconclusive', 1, 3]);
      assert.match(reasons[0], reason);
    });
  }

  test('where the mirror had not confirmed everything in time', () => {
    const { outcome, reasons } = judge(shardSnapshot({ workloads: [workloadSnapshot({ clean: false })] }), false);
    assert.deepEqual([outcome, reasons], ['inconclusive', ['some writes were not confirmed by the mirror in time']]);
  });
});

test('few inconclusive pairs are noted, and do not decide', () => {
  const { outcome, notes } = judge(shardSnapshot({ compared: 10_000, inconclusive: { lost: 5 } }), true);
  assert.deepEqual([outcome, notes], ['holds', ['5 pairs of replies inconclusive: 5 lost']]);
});

test('what a plan can fix is noted', () => {
  const { outcome, notes } = judge(
    shardSnapshot({ crossWorkload: { split: 3, refused: 1 }, unmirroredErrors: 2 }),
    true,
  );
  assert.equal(outcome, 'holds');
  assert.equal(notes.length, 3);
  assert.match(notes[1], /put their keys into one workload/);
});

test('counts are listed with the most frequent first, and without zeros', () => {
  assert.equal(list({ a: 1, b: 1_000, c: 0 }), '1,000 b, 1 a');
});
