/** The commands that a trial must have driven are judged by their shares, on a fast machine as on a slow one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import type { Comparison } from '../../integration/random/comparer.js';
import type { DriverReport } from '../../integration/random/driver.js';
import { missingIn } from '../../integration/random/meaning.js';
import type { TalkReport } from '../../integration/random/pubsub.js';

const NAMES = ['BLPOP', 'XREADGROUP', 'XACK', 'WATCH', 'EVAL', 'FCALL'];

/** A trial of so many commands, with one in a hundred of each kind but those left out. */
function driven(operations: number, leftOut = ''): Parameters<typeof missingIn> {
  const some = { ok: operations / 100, errors: 0, error: '' };
  const commands = new Map(NAMES.filter((name) => name !== leftOut).map((name) => [name, some]));
  const report: DriverReport = {
    seed: 1,
    operations,
    unanswered: 0,
    lost: 0,
    transactions: operations / 50,
    vanished: operations / 1_000,
    commands,
    violations: [],
  };
  const comparison: Comparison = {
    keys: operations / 10,
    byType: { hash: 1, list: 1, set: 1, stream: 1, string: 1, zset: 1 },
    differences: [],
  };
  const talked: TalkReport = { published: operations / 20, heard: operations, left: operations / 100, violations: [] };
  return [report, { compared: operations / 2 } as ShardSnapshot, comparison, talked];
}

test('a trial is as meaningful with fewer commands, and means nothing with hardly any', () => {
  assert.deepEqual(missingIn(...driven(100_000)), []);
  assert.deepEqual(missingIn(...driven(3_000)), []);
  assert.deepEqual(missingIn(...driven(1_000)), ['1000 operations instead of 2000 or more in 1000 commands']);
});

test('few of a kind are no finding where chance explains it', () => {
  const readings = (operations: number, ok: number): string[] => {
    const [report, ...others] = driven(operations);
    report.commands.set('XREADGROUP', { ok, errors: 0, error: '' });
    return missingIn(report, ...others);
  };
  assert.deepEqual(readings(3_000, 5), []);
  assert.deepEqual(readings(6_000, 5), ['5 readings of consumer groups instead of 6 or more in 6000 commands']);
  assert.deepEqual(readings(10_000, 19), ['19 readings of consumer groups instead of 20 or more in 10000 commands']);
});

test('a part of the mix that is missing is named', () => {
  assert.deepEqual(missingIn(...driven(30_000, 'XREADGROUP')), [
    '0 readings of consumer groups instead of 60 or more in 30000 commands',
  ]);
  const [report, snapshot, comparison, talked] = driven(30_000);
  assert.deepEqual(
    missingIn(
      report,
      snapshot,
      { ...comparison, byType: { ...comparison.byType, stream: 0 } },
      { ...talked, heard: 5_000 },
    ),
    [
      '5000 messages heard instead of 6000 or more in 30000 commands',
      '0 keys of type stream instead of 1 or more in 30000 commands',
    ],
  );
});
