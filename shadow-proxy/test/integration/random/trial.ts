/** One trial of the proxy: random traffic from all sides, and then everything must be equal on both servers. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { LedgerEntry } from '../../../src/telemetry/ledger.js';
import { sum, type ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { redisSince, withServers } from '../../support/servers.js';
import { startTestShard, until, type TestShard, type TestShardOptions } from '../../support/shard.js';
import { compareKeyspaces, type Comparison } from './comparer.js';
import { loadLibrary } from './commands/functions.js';
import { APP_USER, drive, type DriverOptions, type DriverReport } from './driver.js';
import { missingIn } from './meaning.js';
import { talk, type TalkReport } from './pubsub.js';
import { startTrace } from './trace.js';

export interface TrialOptions
  extends Pick<TestShardOptions, 'workloads' | 'default'>, Omit<DriverOptions, 'port' | 'seed'> {
  readonly seed?: number;
}

/** A large key that moved all the time is tried again 30 s later. */
const SETTLE_MS = 45_000;

/** `RANDOM_SEED` repeats a trial's commands; how the connections interleave, no seed repeats. */
const chosenSeed = (): number => Number(process.env.RANDOM_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Drives a shard between Redis and KeyDB and compares all that can be compared. */
export async function trial(t: TestContext, options: TrialOptions): Promise<void> {
  const { workloads, default: otherwise, seed = chosenSeed(), ...driving } = options;
  t.diagnostic(`seed ${seed}: RANDOM_SEED=${seed} repeats it`);
  const config = { user: [APP_USER.acl] };
  await withServers(
    async ({ source, target }) => {
      const trace = startTrace();
      const shard = await startTestShard({ source, target, workloads, default: otherwise });
      try {
        const prefixes = driving.prefixes ?? [''];
        // KeyDB has none, nor has Redis before 7.0.
        const hasFunctions = await redisSince(7, 0);
        const functions = prefixes.filter(
          (prefix) =>
            hasFunctions && !workloads?.some(({ stage, keys }) => stage === 'live' && keys.includes(`${prefix}*`)),
        );
        if (hasFunctions) await loadLibrary(shard.port);
        const [report, talked] = await Promise.all([
          drive({ vanishing: 0.02, ...driving, functions, port: shard.port, seed }),
          talk({ port: shard.port, seed, durationMs: driving.durationMs }),
        ]);
        const drivenAt = performance.now();
        const settled = await settle(shard).then(
          () => null,
          (error: Error) => error.message,
        );
        const settledMs = Math.round(performance.now() - drivenAt);
        const snapshot = shard.snapshot();
        const comparison = await compareKeyspaces(source, target);
        t.diagnostic(summary(report, snapshot, comparison, talked, settledMs));
        for (const each of trace.found) t.diagnostic(each);
        assert.deepEqual(
          {
            'replies of the wrong form or to the wrong client': report.violations,
            'messages lost, doubled or out of order': talked.violations,
            'not settled': settled,
            frozen: snapshot.frozen,
            mismatches: await describeMismatches(shard, snapshot),
            'differences of the keyspaces': comparison.differences.slice(0, 20),
          },
          {
            'replies of the wrong form or to the wrong client': [],
            'messages lost, doubled or out of order': [],
            'not settled': null,
            frozen: null,
            mismatches: [],
            'differences of the keyspaces': [],
          },
          `seed ${seed}`,
        );
        assert.deepEqual(missingIn(report, snapshot, comparison, talked, hasFunctions), []);
      } finally {
        await shard.stop();
        trace.stop();
      }
    },
    { source: { config }, target: { config } },
  );
}

/**
 * Waits until all is confirmed and repaired, and until each workload that was suspect as a whole is verified, which the
 * proxy does automatically.
 */
async function settle(shard: TestShard): Promise<void> {
  const suspectWorkloads = (): string[] => shard.snapshot().workloads.flatMap(({ suspect }) => suspect ?? []);
  await until(
    () => suspectWorkloads().length === 0,
    SETTLE_MS,
    () => `in doubt: ${suspectWorkloads().join(', ')}`,
  );
  await shard.settled(SETTLE_MS);
}

/** How often which command mismatched in which way, with the first example of each. */
async function describeMismatches(shard: TestShard, { mismatches }: ShardSnapshot): Promise<string[]> {
  const file = join(shard.stateDir, shard.shard.name, 'ledger.jsonl');
  const text = await readFile(file, 'utf8').catch(() => '');
  const entries = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LedgerEntry);
  const examples = new Map<string, { count: number; first: LedgerEntry }>();
  for (const entry of entries) {
    if (entry.kind === 'unsupported' && TARGET_LACKS.has(entry.command)) continue;
    const name = `${entry.command} ${entry.kind}, authority ${entry.authority}`;
    const example = examples.get(name) ?? { count: 0, first: entry };
    example.count++;
    examples.set(name, example);
  }
  const described = [...examples].map(
    ([name, { count, first }]) =>
      `${count} × ${name}: ${first.key?.text ?? ''} in ${first.db}: ${first.source.reply?.slice(0, 200)} ≠ ${first.target.reply?.slice(0, 200)}`,
  );
  const others = Object.entries(mismatches).filter(([kind]) => kind !== 'unsupported');
  return others.length > 0 || described.length > 0 ? [JSON.stringify(mismatches), ...described] : [];
}

/**
 * What KeyDB does not know, BITCOUNT and BITPOS by BIT among it: a finding, for a client would miss it after the move.
 */
const TARGET_LACKS = new Set([
  ...[
    'bitcount',
    'bitpos',
    'expiretime',
    'pexpiretime',
    'lcs',
    'sintercard',
    'zintercard',
    'sort_ro',
    'eval_ro',
    'evalsha_ro',
    'fcall',
    'fcall_ro',
  ],
]);

function summary(
  report: DriverReport,
  snapshot: ShardSnapshot,
  { keys, byType }: Comparison,
  { published, heard, left }: TalkReport,
  settledMs: number,
): string {
  const { operations, compared, matched, allowed, inconclusive, suspects, mirror } = snapshot;
  return JSON.stringify({
    ...{ sent: report.operations, transactions: report.transactions, vanished: report.vanished },
    ...{
      operations,
      compared,
      matched,
      allowed,
      inconclusive,
      mismatches: sum(snapshot.mismatches),
      suspects: suspects.total,
      suspectWorkloads: snapshot.workloads.flatMap(({ suspect }) => suspect ?? []),
      dropped: mirror.dropped,
    },
    ...{ keys, byType, functions: report.commands.get('FCALL'), published, heard, left, settledMs },
  });
}
