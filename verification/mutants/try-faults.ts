/** Puts in one fault at a time, and says which test has noticed it. */
import { problemsOf, roomOf, testsOf, type Fault } from './fault.js';
import { sourceOf, testFiles } from './root.js';
import { runTest, type Outcome } from './run-test.js';
import { Tree } from './tree.js';

/** What the whole list must reach. */
const LEAST_FAULTS = 100;
const LEAST_SHARE = 0.95;
/** A test file that takes this much longer than without a fault has noticed it. */
const LIMIT_FACTOR = 4;
const LIMIT_EXTRA_S = 30;
const FIRST_LIMIT_S = 600;

export interface Trial {
  readonly fault: Fault;
  /** The test file and the test; null where none has noticed it. */
  readonly noticedBy: string | null;
  readonly seconds: number;
}

export interface Options {
  readonly parallel: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** @throws where an entry cannot be tried, or a named test fails without a fault */
export async function tryFaults(faults: readonly Fault[], options: Options): Promise<readonly Trial[]> {
  const files = testFiles();
  const problems = faults.flatMap((fault) =>
    problemsOf(fault, sourceOf(fault.file), files).map((problem) => `${fault.id}: ${problem}`),
  );
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const trees = Array.from({ length: Math.min(options.parallel, faults.length) }, () => new Tree());
  try {
    const named = [...new Set(faults.flatMap((fault) => testsOf(fault, files)))];
    options.say(`${faults.length} faults; first their ${named.length} test files without a fault`);
    const durations = new Map<string, number>();
    await share(trees, named, async (tree, file) => {
      const { seconds } = await passes(tree, file, options.signal);
      durations.set(file, seconds);
    });
    const trials: Trial[] = [];
    await share(trees, faults, async (tree, fault) => {
      const quickestFirst = [...testsOf(fault, files)].sort((a, b) => durations.get(a)! - durations.get(b)!);
      const trial = await tryFault(tree, fault, quickestFirst, durations, options.signal);
      if (options.signal.aborted) return;
      trials.push(trial);
      options.say(lineOf(trial));
    });
    return faults.flatMap((fault) => trials.filter((trial) => trial.fault === fault));
  } finally {
    for (const tree of trees) tree.remove();
  }
}

/** A test that fails now and then is run once more before it is believed. */
async function passes(tree: Tree, file: string, signal: AbortSignal): Promise<Outcome> {
  const first = await runTest(tree, file, FIRST_LIMIT_S, signal);
  const outcome = first.failure === null ? first : await runTest(tree, file, FIRST_LIMIT_S, signal);
  if (outcome.failure !== null) throw new Error(`${file} fails without a fault: ${outcome.failure}. Fix it first.`);
  return outcome;
}

async function tryFault(
  tree: Tree,
  fault: Fault,
  files: readonly string[],
  durations: ReadonlyMap<string, number>,
  signal: AbortSignal,
): Promise<Trial> {
  const startedAt = performance.now();
  const seconds = (): number => (performance.now() - startedAt) / 1_000;
  tree.put(fault, sourceOf(fault.file)!);
  try {
    for (const file of files) {
      const limit = durations.get(file)! * LIMIT_FACTOR + LIMIT_EXTRA_S;
      const { failure } = await runTest(tree, file, limit, signal);
      if (failure !== null) {
        return { fault, noticedBy: `${file.slice('shadow-proxy/test/'.length)}: ${failure}`, seconds: seconds() };
      }
    }
    return { fault, noticedBy: null, seconds: seconds() };
  } finally {
    tree.restore(fault);
  }
}

/** Each tree takes the next item as soon as it is done with one. */
async function share<T>(trees: readonly Tree[], items: readonly T[], work: (tree: Tree, item: T) => Promise<void>) {
  const queue = items[Symbol.iterator]();
  await Promise.all(
    trees.map(async (tree) => {
      for (const item of queue) await work(tree, item);
    }),
  );
}

function lineOf({ fault, noticedBy, seconds }: Trial): string {
  const time = `${seconds.toFixed(1).padStart(6)} s`;
  if (noticedBy === null) {
    return fault.survives === undefined
      ? `NOT NOTICED  ${time}  ${fault.id} (${fault.file}): ${fault.tests.join(', ')}`
      : `survives     ${time}  ${fault.id}: ${fault.survives}`;
  }
  const more = fault.survives === undefined ? '' : ' (remove its "survives": it can be noticed)';
  return `noticed      ${time}  ${fault.id}: ${noticedBy}${more}`;
}

/** A row for each room, and one for all. */
export function table(trials: readonly Trial[]): string {
  const rooms = [...new Set(trials.map(({ fault }) => roomOf(fault)))].sort();
  const row = (name: string, of: readonly Trial[]): string[] => {
    const noticed = of.filter(({ noticedBy }) => noticedBy !== null).length;
    const explained = of.filter(({ noticedBy, fault }) => noticedBy === null && fault.survives !== undefined).length;
    return [name, ...[of.length, noticed, explained].map(String), `${((100 * noticed) / of.length).toFixed(0)} %`];
  };
  const rows = [
    ['room', 'faults', 'noticed', 'survive', 'share'],
    ...rooms.map((room) => row(room, trials.filter(({ fault }) => roomOf(fault) === room))), // prettier-ignore
    row('all', trials),
  ];
  return rows
    .map(([name, ...figures]) => name!.padEnd(12) + figures.map((each) => each.padStart(9)).join(''))
    .join('\n');
}

/** What keeps the run from success, in sentences. @param whole whether the trials are those of the whole list */
export function shortcomings(trials: readonly Trial[], whole: boolean): readonly string[] {
  const unexplained = trials.filter(({ noticedBy, fault }) => noticedBy === null && fault.survives === undefined);
  const noticed = trials.filter(({ noticedBy }) => noticedBy !== null).length;
  const unnoticed = unexplained.map(({ fault }) => `no test has noticed ${fault.id}`);
  if (!whole) return unnoticed;
  return [
    ...unnoticed,
    ...(trials.length >= LEAST_FAULTS ? [] : [`the list has ${trials.length} faults of at least ${LEAST_FAULTS}`]),
    ...(noticed >= LEAST_SHARE * trials.length
      ? []
      : [`${noticed} of ${trials.length} faults are noticed: fewer than ${100 * LEAST_SHARE} %`]),
  ];
}
