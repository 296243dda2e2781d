/** What the status page asks an operator to do, from the snapshot of a shard. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { attentionOf, type Attention } from '../../../src/page/attention.js';
import { NOT_COPIED } from '../../../src/telemetry/snapshot.js';
import { jobSnapshot, shardSnapshot, workloadSnapshot } from '../../support/snapshots.js';

type Change = Parameters<typeof shardSnapshot>[0];
const needs = (change: Change): readonly Attention[] => attentionOf(shardSnapshot(change));
const texts = (change: Change): string[] => needs(change).map(({ level, text }) => `${level}: ${text}`);
const server = (change: object): ReturnType<typeof shardSnapshot>['source'] => ({
  ...shardSnapshot().source,
  ...change,
});

test('a shard at rest asks for nothing', () => {
  assert.deepEqual(texts({}), []);
  assert.deepEqual(texts({ job: jobSnapshot() }), []);
});

test('what is wrong comes before what should not stay so', () => {
  assert.deepEqual(
    texts({
      target: server({ up: false }),
      suspects: { total: 1, byReason: { 'reply-lost': 1 } },
      mismatches: { value: 2 },
      clockAheadMs: -900,
    }),
    [
      'act: The target is down. Clients are not affected. Keys that are written now become suspect. Start the server again: the proxy reconnects by itself.',
      'act: 2 mismatches since the proxy started: 2 value.',
      'look: 1 suspect key: 1 reply-lost. The proxy repairs them from the authority.',
      'look: The clock of the target is 900 ms behind the clock of the source. Correct the clocks of both hosts.',
    ],
  );
});

test('a server that is down concerns clients only where it is their authority', () => {
  const live = [workloadSnapshot({ stage: 'live', percent: 100 })];
  assert.match(texts({ target: server({ up: false }), workloads: live })[0], /target is down\. Clients get errors/);
  assert.match(
    texts({ source: server({ up: false }), workloads: live })[0],
    /source is down\. Clients are not affected/,
  );
  const part = [workloadSnapshot({ stage: 'live', percent: 10 })];
  assert.match(texts({ source: server({ up: false }), workloads: part })[0], /source is down\. Clients get errors/);
});

test('keys that have been reserved for too long are something to act on', () => {
  const reservations = { byAge: { 'under-1s': 3, 'under-10s': 1, older: 1 }, oldestMs: 63_000, longestWaitMs: 40_000 };
  assert.deepEqual(texts({ reservations }), [
    'act: One command has held its keys for 1 min 3 s. Other commands on these keys wait.',
  ]);
  assert.deepEqual(texts({ reservations: { ...reservations, oldestMs: 9_000 } }), []);
});

test('a server that no workload uses is not down, and a mirror that nobody writes to need not be connected', () => {
  const target = server({ up: null, runId: null });
  const mirror = { ...shardSnapshot().mirror, connected: false };
  assert.deepEqual(texts({ target, mirror, workloads: [workloadSnapshot({ stage: 'off' })] }), []);
  assert.match(texts({ target, mirror }).join(), /act: The proxy is not connected to the mirror/);
});

test('a mismatch of a live workload leads back, any other to the keys', () => {
  const [shadow, live] = [
    workloadSnapshot({ mismatches: 2 }),
    workloadSnapshot({ name: 'flags', stage: 'live', mismatches: 1 }),
  ];
  const command = (workloads: (typeof shadow)[]): string | undefined =>
    needs({ mismatches: { value: 3 }, workloads })[0].command;
  assert.equal(command([shadow]), 'verify --workload sessions');
  assert.equal(command([shadow, live]), 'rollback flags');
});

test('each says what to run and which runbook to read', () => {
  const first = (change: Change): Attention => needs(change)[0];
  assert.deepEqual(first({ frozen: 'the source is empty after a restart' }), {
    level: 'act',
    text: 'Repairs are frozen: the source is empty after a restart.',
    command: 'accept --dry-run',
    runbook: 'RepairsFrozen',
  });
  assert.match(first({ source: server({ full: true }) }).text, /refuses writes: its memory is full\. Raise maxmemory/);
  assert.deepEqual(first({ job: jobSnapshot({ state: 'failed', repair: true, reason: 'no memory' }) }), {
    level: 'act',
    text: 'The last verify failed: no memory.',
    command: 'verify --workload sessions --repair',
    runbook: 'JobFailed',
  });
  assert.match(first({ job: jobSnapshot({ reason: 'a stage changes' }) }).text, /The verify waits: a stage changes/);
  assert.equal(
    first({ workloads: [workloadSnapshot({ suspect: NOT_COPIED })] }).command,
    'backfill --workload sessions',
  );
  assert.deepEqual(first({ workloads: [workloadSnapshot({ stage: 'live', newErrors: { lmpop: 3 } })] }), {
    level: 'act',
    text: 'Clients of sessions get errors from the target that the source would not give: 3 lmpop.',
    command: 'rollback sessions',
    runbook: 'ErrorsAfterCutover',
  });
  assert.match(
    first({
      outage: {
        side: 'source',
        url: 'redis://127.0.0.1:6379',
        since: '2026-11-21T12:00:00.000Z',
        endedAt: null,
        workloads: [
          {
            name: 'sessions',
            policy: 'manual',
            from: { stage: 'shadow', percent: 100 },
            movedTo: null,
            why: 'its policy is manual',
            next: 'bring the source back',
            instead: { text: 'continue on the target', command: 'promote sessions --to live' },
            unanswered: 0,
            keys: [],
          },
        ],
      },
    }).text,
    /Clients of sessions get errors: .*does not fail over to the target \(its policy is manual\)\. Next: bring the source back; or continue on the target\.$/,
  );
});

test('while a server is down, no command is named that would wait for it', () => {
  const down = { target: server({ up: false }), job: jobSnapshot({ state: 'failed', repair: true }) };
  const workloads = [workloadSnapshot({ suspect: NOT_COPIED, mismatches: 1 })];
  const commands = needs({ ...down, mismatches: { value: 1 }, workloads }).flatMap(({ command }) => command ?? []);
  assert.deepEqual([...new Set(commands)], ['status']);
});

test('what needs an operator has a runbook, and that runbook exists', () => {
  const mirror = { ...shardSnapshot().mirror, connected: false, dropped: 2, lagMs: 9_000 };
  const all = needs({
    source: server({ up: true, full: true, evicting: true, evicted: 1, evictedAt: '2026-11-21T12:00:00.000Z' }),
    target: server({ problem: 'it is a replica', evicting: true, evicted: 1, evictedAt: '2026-11-21T12:00:00.000Z' }),
    mirror,
    frozen: 'why',
    mismatches: { value: 1 },
    reservations: { ...shardSnapshot().reservations, oldestMs: 60_000 },
    clientErrors: { source: { NOAUTH: 1 }, target: { NOPERM: 2 } },
    clientsClosed: { idle: 1 },
    clockAheadMs: 5,
    suspects: { total: 2, byReason: { bypass: 2 } },
    job: jobSnapshot({ state: 'failed' }),
    workloads: [workloadSnapshot({ newErrors: { lmpop: 1 }, suspect: NOT_COPIED })],
  });
  assert.ok(all.length >= 15, `${all.length} of at least 15`);
  assert.deepEqual(
    all.filter(({ runbook }) => runbook === undefined).map(({ text }) => text),
    [],
  );
  for (const { runbook } of all) assert.ok(existsSync(`runbooks/${runbook}.md`), `runbooks/${runbook}.md`);
  assert.deepEqual(
    all.filter(({ text }) => !/^[A-Z0-9].*\.$/s.test(text)),
    [],
    'whole sentences',
  );
});

test('no command is named that the proxy would refuse in this state', () => {
  const commands = (change: Change): (string | undefined)[] => needs(change).map(({ command }) => command);
  const off = { stage: 'off', mismatches: 2 } as const;
  assert.deepEqual(commands({ mismatches: { value: 2 }, workloads: [workloadSnapshot(off)] }), [undefined]);
  for (const stage of ['shadow', 'complete'] as const)
    assert.deepEqual(commands({ workloads: [workloadSnapshot({ stage, newErrors: { lmpop: 3 } })] }), [undefined]);
  const failed = jobSnapshot({ state: 'failed', kind: 'backfill', reason: 'no memory' });
  assert.deepEqual(commands({ job: failed }), ['backfill --workload sessions']);
  assert.deepEqual(commands({ job: failed, workloads: [workloadSnapshot({ stage: 'complete' })] }), [undefined]);
  assert.deepEqual(commands({ job: failed, frozen: 'lost' }), ['accept --dry-run', 'accept --dry-run']);
  assert.deepEqual(commands({ frozen: 'lost', workloads: [workloadSnapshot({ suspect: NOT_COPIED })] }), [
    'accept --dry-run',
    undefined,
  ]);
});
