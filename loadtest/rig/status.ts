/** The shadow proxy's own status, and whether figures measured on it can be trusted. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sum, type ShardSnapshot } from '../../shadow-proxy/src/telemetry/snapshot.js';
import { LoadtestError } from './errors.js';
import type { Proxy } from './proxy.js';

/** The status of the proxy's only shard. @throws {LoadtestError} if the admin HTTP does not answer as expected */
export async function snapshotOf(proxy: Proxy): Promise<ShardSnapshot> {
  const url = `${proxy.admin}/api/status`;
  const response = await asked(url);
  const { shards } = (await response.json()) as { shards?: ShardSnapshot[] };
  if (shards?.length !== 1 || typeof shards[0].compared !== 'number') {
    throw new LoadtestError('STATUS', `${url} does not hold one shard with its counts`);
  }
  return shards[0];
}

/** @throws {LoadtestError} */
async function asked(url: string): Promise<Response> {
  const response = await fetch(url).catch((cause: Error) => cause);
  if (response instanceof Error) throw new LoadtestError('STATUS', `${url}: ${response.message}`);
  if (!response.ok) throw new LoadtestError('STATUS', `${url}: HTTP ${response.status}`);
  return response;
}

/** Gauges of the process itself, by name. @throws {LoadtestError} if one is missing */
export async function gaugesOf<Name extends string>(
  proxy: Proxy,
  ...names: readonly Name[]
): Promise<Record<Name, number>> {
  const url = `${proxy.admin}/metrics`;
  const body = await (await asked(url)).text();
  return Object.fromEntries(
    names.map((name) => {
      const [, value] = new RegExp(`^${name} (\\S+)$`, 'm').exec(body) ?? [];
      if (value === undefined) throw new LoadtestError('STATUS', `${url} does not tell ${name}`);
      return [name, Number(value)];
    }),
  ) as Record<Name, number>;
}

/** The snapshot when the mirror has confirmed everything, or after `limitMs`. */
export async function settledSnapshot(proxy: Proxy, limitMs = 30_000): Promise<ShardSnapshot> {
  for (const deadline = Date.now() + limitMs; ; await sleep(100)) {
    const snapshot = await snapshotOf(proxy);
    const { queuedEffects, lagMs } = snapshot.mirror;
    if ((queuedEffects === 0 && lagMs === 0) || Date.now() > deadline) return snapshot;
  }
}

/**
 * Reasons not to trust figures that were measured on the proxy; empty if there are none. A proxy that drops
 * comparisons, or sends commands to one server only, is fast for the wrong reason.
 * @param mustBeCompared how many commands, counted by the clients, need a comparison
 */
export function warningsOf(snapshot: ShardSnapshot, mustBeCompared: number): string[] {
  const { mirror, suspects } = snapshot;
  const found: [count: number, what: string][] = [
    [Math.max(0, mustBeCompared - snapshot.compared), `of ${mustBeCompared} commands were not compared`],
    [sum(snapshot.mismatches), `mismatches ${JSON.stringify(snapshot.mismatches)}`],
    [sum(snapshot.inconclusive), `comparisons could not be told ${JSON.stringify(snapshot.inconclusive)}`],
    [mirror.dropped, 'effects were given up'],
    [mirror.queuedEffects, 'effects still wait for the mirror'],
    [suspects.total, `suspect keys ${JSON.stringify(suspects.byReason)}`],
    [sum(snapshot.unsupported), `commands that only one server supports ${JSON.stringify(snapshot.unsupported)}`],
  ];
  return found.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
}
