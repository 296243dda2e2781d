/**
 * One long load on one side, in slices, with a restart in the middle.
 *
 *   prefill ─▶ slice, slice, … ─▶ until the mirror has it ─▶ counts ─▶ removal
 *                   └─ restart     beside them: clients with their own counts (tally.ts)
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalServer } from '../../shadow-proxy/src/local/servers.js';
import type { Driver } from '../driver/driver.js';
import { FORMAT, type Point, type Results, type Sample, type Soak } from '../figures/results.js';
import { LoadtestError } from '../rig/errors.js';
import type { Rig } from '../rig/rig.js';
import { withClient } from '../sides/client.js';
import type { Side } from '../sides/side.js';
import type { Profile } from '../workload/profile.js';
import { prefill, removeKeys, type Keyspace } from './keyspace.js';
import { checkCounters, countedIn, measure, thenRemove } from './run.js';
import { Tallier } from './tally.js';

export interface SoakOptions {
  readonly profile: Profile;
  readonly side: Side;
  readonly point: Point;
  readonly rate: number | null;
  readonly seconds: number;
  /** Length of a slice. */
  readonly slice: number;
  readonly prefix: string;
  readonly driver: Driver;
  readonly restart: { readonly name: 'source' | 'target'; readonly server: LocalServer } | null;
  readonly loopback: boolean;
  readonly host: string;
}

type Slices = Pick<Soak, 'interrupted'> & { readonly samples: readonly Sample[] };
type Counted = Pick<Results, 'samples' | 'counters'> & { readonly soak: Soak };

/** @throws {LoadtestError} */
export async function runSoak(rig: Rig, options: SoakOptions, say: (line: string) => void): Promise<Results> {
  const { profile, side, point, driver, prefix, slice } = options;
  const keyspace = { profile, prefix: `${prefix}${side.id}:`, naming: driver.naming };
  const startedAt = new Date().toISOString();
  const tallier = new Tallier(side.address, keyspace.prefix);
  const { samples, counters, soak } = await thenRemove(
    rig,
    (stop) => loadAndCount(tallier, keyspace, options, say, stop),
    async () => {
      await tallier.stop();
      await removeKeys(side.address, keyspace);
      await tallier.remove();
    },
  );
  const { id, role, title, where } = side;
  return {
    ...{
      format: FORMAT,
      startedAt,
      hosts: [options.host],
      driver: driver.label,
      profile,
      prefix,
      points: [point],
      samples,
      counters,
      soak,
    },
    ...{
      rounds: samples.length,
      seconds: slice,
      warmUp: 0,
      rate: options.rate,
      loopback: options.loopback,
      sides: [{ id, role, title, where }],
    },
  };
}

async function loadAndCount(
  tallier: Tallier,
  keyspace: Keyspace,
  options: SoakOptions,
  say: (line: string) => void,
  stop: AbortSignal,
): Promise<Counted> {
  const { profile, side, restart, seconds } = options;
  const filled = await prefill(side.address, keyspace, stop);
  const restarting = restart === null ? null : restartAfter(restart, (seconds * 1000) / 2, say);
  const { samples, interrupted } = await slices(keyspace, options, say, stop);
  const downtime = await restarting;
  const { longestWaitMs, ...counted } = await tallier.stop();
  await side.settled?.();
  const tallies = await Promise.all(
    side.holders.map(async ({ name, address }) => ({ server: name, ...counted, found: await tallier.found(address) })),
  );
  const expected = filled + samples.reduce((sum, sample) => sum + countedIn(profile, sample), 0);
  // It is unknown what an interrupted slice had acknowledged; the tallies are known.
  const counters =
    interrupted.length > 0 ? [] : await checkCounters(new Map([[side, keyspace]]), new Map([[side, expected]]));
  return {
    samples,
    counters,
    soak: { restarted: restart?.name ?? null, downtime, interrupted, tallies, longestWaitMs },
  };
}

async function slices(
  keyspace: Keyspace,
  { side, point, seconds, slice, ...load }: SoakOptions,
  say: (line: string) => void,
  stop: AbortSignal,
): Promise<Slices> {
  const samples: Sample[] = [];
  const interrupted: Soak['interrupted'][number][] = [];
  // A server's CPU time starts again with its process, and the mirror may be disconnected: neither is read here.
  const alone = { ...side, workers: [], settled: null };
  const end = Date.now() + seconds * 1000;
  for (let round = 0; Date.now() < end; round++) {
    const from = Date.now() / 1000;
    const length = Math.max(1, Math.min(slice, Math.round((end - Date.now()) / 1000)));
    try {
      const sample = await measure({ side: alone, point, round, seconds: length }, keyspace, load, stop);
      samples.push(sample);
      say(
        `${Math.max(0, Math.round((end - Date.now()) / 1000))} s left: ${Math.round((sample.operations / sample.durationMs) * 1000).toLocaleString('en-US')} commands/s`,
      );
    } catch (error) {
      if (!(error instanceof LoadtestError) || stop.aborted) throw error;
      interrupted.push({ from, to: Date.now() / 1000, why: error.message });
      say(`interrupted: ${error.message}`);
      await untilAnswering(side, end);
    }
  }
  if (samples.length === 0)
    throw new LoadtestError('MEASUREMENT', `every slice was interrupted, the last by: ${interrupted.at(-1)?.why}`);
  return { samples, interrupted };
}

async function restartAfter(
  { name, server }: NonNullable<SoakOptions['restart']>,
  ms: number,
  say: (line: string) => void,
): Promise<Soak['downtime']> {
  await sleep(ms);
  say(`restarting the ${name}`);
  const from = Date.now() / 1000;
  await server.restart();
  const to = Date.now() / 1000;
  say(`the ${name} is back after ${(to - from).toFixed(1)} s`);
  return { from, to };
}

async function untilAnswering({ address }: Side, end: number): Promise<void> {
  while (Date.now() < end) {
    const answers = await withClient(address, (client) => client.ping()).then(
      () => true,
      () => false,
    );
    if (answers) return;
    await sleep(100);
  }
}
