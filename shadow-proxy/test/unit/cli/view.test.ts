/** What `run`, `watch` and `status` print. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CountingKind } from '../../../src/command/counting-kind.js';
import { NOT_COPIED } from '../../../src/telemetry/snapshot.js';
import { renderShard } from '../../../src/cli/status.js';
import { rate, renderLine, renderMismatch, renderTable, renderVerdict } from '../../../src/cli/view.js';
import { Ledger } from '../../../src/telemetry/ledger.js';
import { shardSnapshot, workloadSnapshot } from '../../support/snapshots.js';

const plain = (text: string): string => text.replaceAll(/\x1b\[[0-9;]*m/g, '');

test('the table shows what a run is about', () => {
  const now = shardSnapshot({ operations: 12_345, unsupported: { LCS: 4 }, uptimeMs: 10_000 });
  const table = plain(
    renderTable({ now, before: shardSnapshot({ operations: 11_345, uptimeMs: 9_500 }), leftMs: 4_200 }),
  );
  for (const expected of [
    /source +│ redis:\/\/127\.0\.0\.1:6379 \(7\.0\.15\) /,
    /operations +│ 12,345 \(2,000 per second\), 3 clients/,
    /compared +│ 990: 980 matched, 10 allowed/,
    /allowed by +│ 8 unordered, 2 ttl/,
    /mismatches +│ 0 /,
    /source p50 \/ p99 │ 0\.10 ms \/ 0\.25 ms/,
    /target p50 \/ p99 │ 0\.12 ms \/ 0\.30 ms/,
    /mirror +│ 0 ms behind, 0 effects \(0 bytes\) queued/,
    /suspects +│ 0 /,
    /unsupported +│ 4 LCS/,
    /5 s left$/,
  ]) {
    assert.match(table, expected);
  }
  assert.doesNotMatch(table, /frozen/);
  assert.match(
    renderTable({ now: shardSnapshot({ frozen: 'why' }), before: null, leftMs: null }),
    /frozen[\s\S]*why[\s\S]*Ctrl-C/,
  );
});

test('a line has the same in short', () => {
  assert.equal(
    renderLine({ now: shardSnapshot({ mismatches: { value: 2 } }), before: null, leftMs: null }),
    '1,000 operations, 100/s, 990 compared, 10 allowed, 2 mismatches, p99 0.25 ms / 0.30 ms, lag 0 ms, 0 suspects',
  );
});

test('the rate is that since the snapshot before', () => {
  assert.equal(
    rate(shardSnapshot({ operations: 300, uptimeMs: 2_000 }), shardSnapshot({ operations: 100, uptimeMs: 1_000 })),
    200,
  );
  assert.equal(rate(shardSnapshot(), shardSnapshot()), 0);
});

test('a mismatch is shown without its key and values, or with them where the ledger is in full', () => {
  const shownBy = (redact: boolean): string => {
    const ledger = new Ledger({ shard: 'a', file: null, redact });
    ledger.record({
      workload: 'flags',
      command: 'get',
      key: Buffer.from('flag:x'),
      pattern: 'flag:*',
      db: 0,
      kind: 'value',
      authority: 'source',
      source: Buffer.from('$1\r\na\r\n'),
      target: Buffer.from('$1\r\nb\r\n'),
    });
    return renderMismatch(ledger.latest()[0]);
  };
  assert.match(
    shownBy(true),
    /^value in flags \(flag:\*\): get, key [0-9a-f]{16} \(6 bytes, redacted\)\n {4}source \$ 7 bytes [0-9a-f]{16}; target .*; first difference at byte 4$/,
  );
  assert.match(
    shownBy(false),
    /^value in flags \(flag:\*\): get, flag:x\n {4}source \$1\\x0d\\x0aa\\x0d\\x0a; target /,
  );
});

test('a verdict is a word, its reasons, and its notes', () => {
  assert.equal(
    renderVerdict({ outcome: 'does not hold', reasons: ['1 mismatch', 'frozen'], notes: ['split'], exitCode: 1 }),
    'DOES NOT HOLD: 1 mismatch\n  and frozen\n  note: split',
  );
});

test('the status of a shard fits 80 columns, has a line for each workload, and says what to do', () => {
  const workloads = [
    workloadSnapshot({
      name: 'rate-limits-of-api',
      stage: 'live',
      percent: 10,
      operations: 123_456_789,
      compared: 99_999,
    }),
    workloadSnapshot({ name: 'default', suspect: NOT_COPIED }),
  ];
  const text = plain(renderShard(shardSnapshot({ workloads, mismatches: { value: 2 } })));
  assert.match(text, /^shard cache-0\nsource +redis:/);
  assert.match(text, /\nrate-limits-of-api +live 10 % +123\.5M +99,999 +10 +0 +0 +0\n/);
  assert.match(text, /\ndefault +shadow .* all\n/);
  assert.match(text, /\nworkload +stage +cmds +compared +allowed +mismatch +incon- +suspect\n +clusive\n/);
  assert.match(text, /\nMISMATCHES +2 value\n/);
  assert.match(
    text,
    /default: every key is suspect: .*; next:\n {2}npx --no-install shadow-compare backfill --workload default$/m,
  );
  const options = { plan: 'my plan.yaml' };
  assert.match(
    plain(renderShard(shardSnapshot({ workloads }), options)),
    /; next:\n {2}npx --no-install shadow-compare backfill --workload default --plan 'my plan.yaml'$/m,
  );
  const reached = plain(renderShard(shardSnapshot({ workloads, frozen: 'lost keys' }), options));
  assert.match(reached, /not copied yet$/m, 'while repairs are frozen, a backfill is refused');
  const table = text.split('\n').filter((line) => !/^(default:| {2}npx )/.test(line));
  assert.deepEqual(
    table.filter((line) => line.length > 80),
    [],
  );
  assert.doesNotMatch(text, /Ctrl-C/);
});

test('a command in the status has a line of its own, whole, however long it is', () => {
  const options = { plan: '/srv/a-folder-with-a-long-name/migrations/of-this-year/migration.yaml' };
  const program = 'npx --no-install shadow-compare';
  const outage = {
    side: 'source',
    url: 'redis://a:6379',
    since: 'now',
    endedAt: null,
    workloads: [
      {
        name: 'sessions',
        policy: 'manual',
        from: { stage: 'shadow', percent: 100 },
        movedTo: null,
        why: 'failover is manual',
        next: 'start the source again',
        instead: { text: 'continue on the target', command: 'promote sessions --to live --percent 100 --force' },
        unanswered: 0,
        keys: [],
      },
    ],
  } as const;
  const text = plain(renderShard(shardSnapshot({ frozen: 'the source restarted', outage }), options));
  const lines = text.split('\n');
  for (const command of [
    'accept --dry-run',
    'rollback WORKLOAD --force --reason REASON',
    outage.workloads[0].instead.command,
  ])
    assert.ok(lines.includes(`  ${program} ${command} --plan ${options.plan}`), text);
  assert.ok(lines.includes('next, sessions: start the source again'), text);
  assert.ok(lines.includes('or continue on the target:'), text);
});

test('status lists as counters what counts, and says what lists, streams and locks need', () => {
  const seen = (kind: CountingKind, prefix: string, command: string, calls: number) =>
    ({ workload: 'sessions', kind, prefix, commands: { [command]: calls }, perSecond: 0 }) as const;
  const counting = [
    seen('increment', 'hits:*', 'incr', 7),
    seen('stream', 'events:*', 'xadd', 5),
    seen('list', 'queue:*', 'lpush', 4),
    seen('list', 'queue:*', 'rpop', 3),
    seen('lock', 'lock:*', 'set nx', 2),
  ];
  const text = plain(renderShard(shardSnapshot({ counting }), { plan: 'plan.yaml' })).replace(/\s+/g, ' ');
  assert.match(
    text,
    /counters hits:\* incr 7 the plan does not class these as counters To check them: .* guard --plan plan\.yaml one writer/,
  );
  assert.match(
    text,
    /one writer events:\* xadd 5, queue:\* lpush 4, queue:\* rpop 3, lock:\* set nx 2 lists, streams, locks, APPEND and scripts, no counters: correct while one node of the target accepts writes/,
  );
  assert.equal(text.match(/guard --plan/g)?.length, 1);
  const lists = plain(renderShard(shardSnapshot({ counting: counting.slice(1) }), { plan: 'plan.yaml' }));
  assert.doesNotMatch(lists, /^counters/m);
  assert.match(lists, /guard --plan plan\.yaml/);
});

test('the status of one shard says why a workload waits for an operator, and what to type', () => {
  const held = workloadSnapshot({
    name: 'sessions',
    automatic: {
      ...{ guard: true, rollout: true, exceeds: [] },
      hold: { why: 'stopped', at: '2026-11-20T02:00:00.000Z', reason: 'p99 40 ms, at most 20', by: null },
    },
  });
  assert.match(
    renderShard(shardSnapshot({ workloads: [held] })),
    /Since 2026-11-20T02:00:00.000Z: the guard has stopped the rollout of sessions, p99 40 ms, at most 20; next:\n {2}.*resume sessions/,
  );
  assert.doesNotMatch(renderShard(shardSnapshot()), /Since/);
});
