/** How both servers stand after a unit: what the proxy found on the way, and what they hold, key by key. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LedgerEntry } from '../../../shadow-proxy/src/telemetry/ledger.js';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import { differencesOfAll } from '../../../shadow-proxy/test/support/keyspace.js';
import type { ProxyProcess } from './proxy.js';
import type { MirrorReport } from './result.js';

const SETTLE_MS = 30_000;
const SAMPLES = 2;
const SHOWN = 160;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Waits until the mirror has everything, then looks at both. */
export async function reportMirror(
  proxy: ProxyProcess,
  sources: readonly Address[],
  targets: readonly Address[],
): Promise<MirrorReport> {
  const shards = await settle(proxy);
  return {
    unsettled: leftOf(shards),
    differences: await differencesOfAll(sources, targets).catch((error: Error) => [
      `the keys cannot be compared: ${error.message}`,
    ]),
    ...summarize(proxy.ledger()),
    shards,
  };
}

/** Waits until the mirror has everything, or for long enough. */
export async function settle(proxy: ProxyProcess): Promise<readonly ShardSnapshot[]> {
  for (const deadline = Date.now() + SETTLE_MS; ; await sleep(100)) {
    const shards = await proxy.snapshots();
    if (leftOf(shards) === null || Date.now() > deadline) return shards;
  }
}

function leftOf(shards: readonly ShardSnapshot[]): string | null {
  const left = shards.flatMap(({ mirror, suspects, undecided }) => [
    mirror.connected ? '' : 'it is not connected',
    mirror.queuedEffects > 0 ? `${mirror.queuedEffects} effects` : '',
    suspects.total > 0 ? `${suspects.total} suspects ${JSON.stringify(suspects.byReason)}` : '',
    undecided > 0 ? `${undecided} undecided` : '',
  ]);
  return left.filter(Boolean).join(', ') || null;
}

/** Counts by command and kind, and the first few of each. */
export function summarize(entries: readonly LedgerEntry[]): Pick<MirrorReport, 'mismatches' | 'samples'> {
  const mismatches: Record<string, number> = {};
  const samples: string[] = [];
  const add = (what: string, n: number): number => (mismatches[what] = (mismatches[what] ?? 0) + n);
  for (const { command, kind, key, source, target, leftOut = 0 } of entries) {
    const what = `${command} ${kind}`;
    if (add(what, 1) <= SAMPLES) samples.push(`${what} ${cut(key?.text)}: ${cut(source.reply)} ≠ ${cut(target.reply)}`);
    if (leftOut > 0) add('not written down', leftOut);
  }
  return { mismatches, samples };
}

const cut = (text = ''): string => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
