/**
 * Runs of the simulation on the code of one tree, in a process of its own: `try-simulated.ts` starts it
 * there, and reads what it sends. Profiles take turns, seed after seed, until something is wrong or the time is over.
 */
import { Session, type Profiler } from 'node:inspector';

export interface Order {
  /** The name of a profile, or several; each seed runs in all of them. */
  readonly profiles: readonly string[];
  readonly firstSeed: number;
  readonly seeds: number;
  /** Of each run. */
  readonly operations: number;
  /** Of CPU time, for all runs. */
  readonly seconds: number;
  /** Runs that find something without a fault, too: `storm 3`. */
  readonly without: readonly string[];
  /** Places in compiled files whose runs are counted; the runs go on after a finding. */
  readonly places: readonly Place[];
}

export interface Place {
  readonly id: string;
  /** Below `dist`. */
  readonly file: string;
  readonly offset: number;
}

/** `run`: a run begins. `done`: the last word. */
export type Message =
  | { readonly type: 'run'; readonly profile: string; readonly seed: number }
  | {
      readonly type: 'done';
      readonly finding: string | null;
      readonly operations: number;
      readonly seconds: number;
      readonly counts: Counts;
    };

/** By place: how often it ran, by profile; absent where it did not. */
export type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>;

let operations = 0;

function done(finding: string | null, counts: Counts = {}): void {
  const { user, system } = process.cpuUsage();
  const message: Message = { type: 'done', finding, operations, seconds: (user + system) / 1e6, counts };
  process.send!(message, () => process.exit());
}

/** @param ran called behind each run */
async function run(order: Order, ran: (profile: string) => Promise<void>): Promise<string | null> {
  // Only now: what was compiled before the count began is not counted.
  const { PROFILES } = await import('../../simulation/run/profiles.js');
  const { simulate } = await import('../../simulation/run/run.js');
  for (let seed = order.firstSeed; seed < order.firstSeed + order.seeds; seed++) {
    for (const name of order.profiles) {
      const { user, system } = process.cpuUsage();
      if ((user + system) / 1e6 > order.seconds) return null;
      if (order.without.includes(`${name} ${seed}`)) continue;
      process.send!({ type: 'run', profile: name, seed } satisfies Message);
      const profile = PROFILES.find((each) => each.name === name)!;
      const result = await simulate({ seed, profile, operations: order.operations });
      operations += result.operations;
      await ran(name);
      if (result.finding !== null && order.places.length === 0) return result.finding;
    }
  }
  return null;
}

/** How often the place has run since the last look. */
function countOf({ file, offset }: Place, scripts: readonly Profiler.ScriptCoverage[]): number {
  const script = scripts.find(({ url }) => url.endsWith(`/dist/${file}`));
  const around = (script?.functions ?? [])
    .flatMap(({ ranges }) => ranges)
    .filter(({ startOffset, endOffset }) => startOffset <= offset && offset < endOffset)
    .sort((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset));
  return around[0]?.count ?? 0;
}

process.once('message', (order: Order) => {
  const session = new Session();
  session.connect();
  const call = (method: string, params?: object): Promise<unknown> =>
    new Promise((resolve, reject) =>
      session.post(method, params, (problem, result) => (problem ? reject(problem) : resolve(result))),
    );
  const go = async (): Promise<void> => {
    if (order.places.length === 0) return done(await run(order, async () => undefined));
    await call('Profiler.enable');
    await call('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    const counts: Record<string, Record<string, number>> = {};
    await run(order, async (profile) => {
      const { result } = (await call('Profiler.takePreciseCoverage')) as Profiler.TakePreciseCoverageReturnType;
      for (const place of order.places) {
        const count = countOf(place, result);
        const of = (counts[place.id] ??= {});
        if (count > 0) of[profile] = (of[profile] ?? 0) + count;
      }
    });
    done(null, counts);
  };
  go().catch((problem: unknown) => done((problem as Error).stack!));
});

for (const event of ['unhandledRejection', 'uncaughtException'] as const)
  process.on(event, (problem: unknown) => done(`${event}: ${(problem as Error).stack}`));
