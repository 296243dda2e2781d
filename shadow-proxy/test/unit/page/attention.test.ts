import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attentionOf } from '../../../src/page/attention.js';
import { jobSnapshot, shardSnapshot, workloadSnapshot } from '../../support/snapshots.js';

const texts = (change: Parameters<typeof shardSnapshot>[0]): string[] =>
  attentionOf(shardSnapshot(change)).map(({ level, text }) => `${level}: ${text}`);

test('a shard at rest asks for nothing', () => {
  assert.deepEqual(texts({}), []);
  assert.deepEqual(texts({ job: jobSnapshot() }), []);
});

test('what is wrong comes before what should not stay so', () => {
  const down = { ...shardSnapshot().target, up: false };
  assert.deepEqual(
    texts({
      target: down,
      suspects: { total: 1, byReason: { 'reply-lost': 1 } },
      mismatches: { value: 2 },
      clockAheadMs: 900,
    }),
    [
      'act: the target is down',
      'act: 2 mismatches since the process started: 2 value',
      'look: 1 key in doubt: 1 reply-lost',
      "look: the target's clock is ahead of the source's by 900 ms",
    ],
  );
});

test('keys that have been reserved for too long are something to act on', () => {
  const reservations = { byAge: { 'under-1s': 3, 'under-10s': 1, older: 1 }, oldestMs: 63_000, longestWaitMs: 40_000 };
  assert.deepEqual(texts({ reservations }), [
    'act: keys have been reserved for 1 min 3 s: commands on them wait; next: runbooks/KeysReserved.md',
  ]);
  assert.deepEqual(texts({ reservations: { ...reservations, oldestMs: 9_000 } }), []);
});

test('a server that no workload uses is not down, and a mirror that nobody writes to need not be connected', () => {
  const target = { ...shardSnapshot().target, up: null, runId: null };
  const mirror = { ...shardSnapshot().mirror, connected: false };
  assert.deepEqual(texts({ target, mirror, workloads: [workloadSnapshot({ stage: 'off' })] }), []);
  assert.match(texts({ target, mirror }).join(), /act: the mirror is not connected/);
});

test('each says what to do about it, where there is one thing to do', () => {
  assert.match(
    texts({ frozen: 'the source came back empty' })[0],
    /frozen: the source came back empty; next: shadow-compare accept --dry-run/,
  );
  assert.match(texts({ source: { ...shardSnapshot().source, full: true } })[0], /raise maxmemory/);
  assert.match(
    texts({ job: jobSnapshot({ state: 'failed', reason: 'no memory' }) })[0],
    /act: the last verify failed: no memory/,
  );
  assert.match(
    texts({ job: jobSnapshot({ reason: 'a stage changes' }) })[0],
    /look: the verify waits: a stage changes/,
  );
  assert.match(
    texts({ workloads: [workloadSnapshot({ suspect: 'not copied' })] })[0],
    /look: every key of sessions is in doubt: not copied/,
  );
});
