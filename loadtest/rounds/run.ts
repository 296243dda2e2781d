/**
 * One load test: prefill, warm-up, rounds, counters, removal.
 *
 *   sides ─▶ prefill ─▶ for each turn: CPU before ─▶ load ─▶ until the mirror has it ─▶ CPU after
 *         ─▶ counters ─▶ removal
 */
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Driver } from '../driver/driver.js';
import { FORMAT, pointName, type CounterCheck, type Point, type Results, type Sample } from '../figures/results.js';
import { LoadtestError } from '../rig/errors.js';
import { machineTicks } from '../rig/proc.js';
import type { Rig } from '../rig/rig.js';
import type { Side } from '../sides/side.js';
import { counterOf, verbOf, wordsOf } from '../workload/command.js';
import type { Profile } from '../workload/profile.js';
import { prefill, removeKeys, sumCounters, type Keyspace } from './keyspace.js';
import { schedule, timeOf, type Rounds, type Turn } from './schedule.js';

export interface RunOptions extends Rounds {
  readonly profile: Profile;
  readonly sides: readonly Side[];
  readonly points: readonly Point[];
  /** Commands per second of all connections; null: as many as the server answers. */
  readonly rate: number | null;
  readonly prefix: string;
  readonly driver: Driver;
  /** Unix milliseconds of the first turn, for several load hosts; null: begin at once. */
  readonly startAt: number | null;
  readonly loopback: boolean;
  readonly host: string;
}

/** @param say prints progress, one line each @throws {LoadtestError} */
export async function runRounds(rig: Rig, options: RunOptions, say: (line: string) => void): Promise<Results> {
  const { profile, sides, points, driver } = options;
  const turns = schedule(sides, points, options);
  refuseExpiring(profile, turns);
  const keyspaces = new Map(
    sides.map((side) => [side, { profile, prefix: `${options.prefix}${side.id}:`, naming: driver.naming }]),
  );
  const [[loadBefore], before] = [loadavg(), machineTicks()];
  const { samples, counters, startedAt } = await thenRemove(
    rig,
    (stop) => load(turns, keyspaces, options, say, stop, () => rig.assertAlive()),
    async () => {
      for (const [side, keyspace] of keyspaces) await removeKeys(side.address, keyspace);
    },
  );
  const after = machineTicks();
  const steal =
    before === null || after === null || after.all <= before.all
      ? null
      : (after.stolen - before.stolen) / (after.all - before.all);
  return {
    machine: { cores: availableParallelism(), loadBefore, steal },
    ...{
      format: FORMAT,
      startedAt,
      hosts: [options.host],
      driver: driver.label,
      profile,
      prefix: options.prefix,
      points,
      samples,
      counters,
    },
    ...{
      rounds: options.rounds,
      seconds: options.seconds,
      warmUp: options.warmUp,
      rate: options.rate,
      loopback: options.loopback,
    },
    sides: sides.map(({ id, role, title, where }) => ({ id, role, title, where })),
  };
}

/**
 * Runs `body`, and `remove` once it has ended: successfully, with an error, or because the rig is closed, which stops
 * it. Nothing is removed while the body may still write.
 */
export async function thenRemove<T>(
  rig: Rig,
  body: (stop: AbortSignal) => Promise<T>,
  remove: () => Promise<void>,
): Promise<T> {
  const stop = new AbortController();
  const work = body(stop.signal);
  let removal: Promise<void> | null = null;
  const once = (): Promise<void> => (removal ??= work.then(remove, remove));
  rig.beforeClose(async () => {
    stop.abort();
    await once();
  });
  const result = await work;
  await once();
  return result;
}

type Loaded = Pick<Results, 'startedAt' | 'samples' | 'counters'>;
type Keyspaces = ReadonlyMap<Side, Keyspace>;

async function load(
  turns: readonly Turn<Side>[],
  keyspaces: Keyspaces,
  options: RunOptions,
  say: (line: string) => void,
  stop: AbortSignal,
  check: () => void,
): Promise<Loaded> {
  const startedAt = new Date().toISOString();
  const expected = new Map<Side, number>();
  for (const [side, keyspace] of keyspaces) expected.set(side, await prefill(side.address, keyspace, stop));
  const samples: Sample[] = [];
  for (const [i, turn] of turns.entries()) {
    if (options.startAt !== null) await untilTurn(options.startAt + timeOf(turns, i) * 1000, turn, stop);
    const sample = await measure(turn, keyspaces.get(turn.side)!, options, stop);
    check();
    expected.set(turn.side, expected.get(turn.side)! + countedIn(options.profile, sample));
    if (turn.round >= 0) samples.push(sample);
    say(tell(turn, sample, options));
  }
  return { startedAt, samples, counters: await checkCounters(keyspaces, expected) };
}

/** Loads one side once. The other sides are idle meanwhile. */
export async function measure(
  { side, point, round, seconds }: Turn<Side>,
  { prefix }: Keyspace,
  { profile, driver, rate }: Pick<RunOptions, 'profile' | 'driver' | 'rate'>,
  stop: AbortSignal,
): Promise<Sample> {
  const before = await cpuOfWorkers(side);
  const driven = await driver.drive(side.address, { profile, prefix, ...point, seconds, rate }, stop);
  await side.settled?.();
  const after = await cpuOfWorkers(side);
  const work = Object.fromEntries(Object.entries(after).map(([name, seconds_]) => [name, seconds_ - before[name]]));
  return { side: side.id, round, point, hosts: 1, work, ...driven };
}

const cpuOfWorkers = async ({ workers }: Side): Promise<Record<string, number>> =>
  Object.fromEntries(
    await Promise.all(workers.map(async ({ name, cpuSeconds }) => [name, await cpuSeconds()] as const)),
  );

/** What the acknowledged commands of a measurement add to the profile's counters. */
export function countedIn({ commands, fallback }: Profile, { counts }: Pick<Sample, 'counts'>): number {
  const all = [...commands.map(({ command }) => command), ...(fallback ? [fallback] : [])];
  const amounts = new Map(all.map((command) => [verbOf(command), counterOf(command)?.amount ?? 0]));
  return Object.entries(counts).reduce((sum, [verb, count]) => sum + count * (amounts.get(verb) ?? 0), 0);
}

export async function checkCounters(
  keyspaces: Keyspaces,
  expected: ReadonlyMap<Side, number>,
): Promise<CounterCheck[]> {
  const checks: CounterCheck[] = [];
  for (const [side, keyspace] of keyspaces) {
    for (const { name, address } of side.holders) {
      const found = await sumCounters(address, keyspace);
      if (found !== null) checks.push({ side: side.id, server: name, expected: expected.get(side)!, found });
    }
  }
  return checks;
}

/** Maximum time beyond the load itself that a run takes, in seconds: prefill, pauses, counting. */
const SLACK_SECONDS = 120;

/** A counter that expires during the run makes the check useless. @throws {LoadtestError} */
export function refuseExpiring(
  { name, commands, prefill: first, expiry }: Profile,
  turns: readonly { readonly seconds: number }[],
): void {
  const all = [...commands.map(({ command }) => command), ...first];
  if (!all.some((command) => counterOf(command) !== null)) return;
  const seconds = timeOf(turns, turns.length) + SLACK_SECONDS;
  const fixed = all
    .filter((command) => verbOf(command) === 'EXPIRE')
    .map((command) => Number(wordsOf(command)[2].replace('__expiry__', `${expiry}`)));
  const shortest = Math.min(...fixed);
  if (shortest > seconds) return;
  throw new LoadtestError(
    'USAGE',
    `profile ${name}: its counters expire after ${shortest} s, but this run takes up to ${seconds} s, and their sum could not be checked. Take fewer --rounds, shorter --seconds, or a profile with a longer expiry`,
  );
}

/** A load host that is late would load one side while the others load another. @throws {LoadtestError} */
async function untilTurn(at: number, { side, round }: Turn<Side>, stop: AbortSignal): Promise<void> {
  const early = at - Date.now();
  if (early < -1000)
    throw new LoadtestError(
      'MEASUREMENT',
      `${side.id}, round ${round + 1} should have begun ${(-early / 1000).toFixed(1)} s ago: the other load hosts are ahead. Check the clocks, or choose a later --start-at`,
    );
  await sleep(Math.max(0, early), undefined, { signal: stop });
}

function tell(
  { side, point, round }: Turn<Side>,
  { operations, durationMs }: Sample,
  { rounds, points }: RunOptions,
): string {
  const what = round < 0 ? 'warm-up' : `round ${round + 1}/${rounds}`;
  const where = points.length > 1 ? `${side.id}, ${pointName(point)}` : side.id;
  return `${what}, ${where}: ${Math.round((operations / durationMs) * 1000).toLocaleString('en-US')} commands/s`;
}
