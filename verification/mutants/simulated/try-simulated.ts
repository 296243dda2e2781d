/**
 * Puts in one fault at a time, and says which simulated run has noticed it. What is known is kept in a file: a run goes
 * on where the last one stopped, and tries again what was not noticed if the simulation has changed since.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PROFILES } from '../../simulation/run/profiles.js';
import { problemsOf, roomOf, withFault, type Fault } from '../fault.js';
import { ROOT, sourceOf, testFiles } from '../root.js';
import { runTest } from '../run-test.js';
import { compiled, transpile, Tree } from '../tree.js';
import { outsideOf } from './reach.js';
import type { Counts, Message, Order, Place } from './runs.js';

const MANY_SEEDS = 1_000_000;
/** A single run that takes longer does not end. */
const STUCK_MS = 60_000;
/** Long enough: seconds. */
const A_DAY = 86_400;
/** What a fault of the same file says of a profile counts for so many of others. */
const NEAR = 100;
/** Kept programs take milliseconds each. */
const KEPT_SECONDS = 60;
const NAMES = PROFILES.map(({ name }) => name);

export interface Trial {
  readonly id: string;
  readonly noticed: boolean;
  /** No run can notice it. */
  readonly unseen?: boolean;
  /** The first line of the finding, or why there is none. */
  readonly why: string;
  readonly profile?: string;
  readonly seed?: number;
  readonly kept?: string;
  readonly operations: number;
  readonly seconds: number;
  /** Of the code that was tried. */
  readonly version: string;
}

interface Outcome {
  readonly finding: string | null;
  readonly profile: string;
  readonly seed: number;
  readonly operations: number;
  readonly seconds: number;
  readonly counts: Counts;
}

interface Known {
  trials: Record<string, Trial>;
  /** By version, profile and seed: whether the run finds something without a fault. */
  without: Record<string, boolean>;
  /** By version and fault: how often its place runs, by profile. */
  counts: Record<string, Counts>;
}

export interface Options {
  readonly parallel: number;
  readonly seconds: number;
  /** Of each run. */
  readonly operations: number;
  /** How many of each profile say whether a line runs at all. */
  readonly seedsToCount: number;
  /** Those that are run: names. */
  readonly profiles: readonly string[];
  /** Tries what was noticed already, too. */
  readonly again: boolean;
  /** Where what is known is kept, as `.json` and as a table, `.md`. */
  readonly report: string;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

export async function trySimulated(faults: readonly Fault[], options: Options): Promise<readonly Trial[]> {
  const files = testFiles();
  const problems = faults.flatMap((fault) =>
    problemsOf(fault, sourceOf(fault.file), files).map((problem) => `${fault.id}: ${problem}`),
  );
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return new Trials(faults, options).run();
}

class Trials {
  readonly #version: string;
  readonly #known: Known;

  constructor(
    private readonly faults: readonly Fault[],
    private readonly options: Options,
  ) {
    const { profiles } = options;
    const some = profiles.length < PROFILES.length ? ` ${profiles.join()}` : '';
    this.#version = `${versionOf(['verification/simulation', 'shadow-proxy/src'])}${some}`;
    const file = `${options.report}.json`;
    this.#known = existsSync(file)
      ? (JSON.parse(readFileSync(file, 'utf8')) as Known)
      : { trials: {}, without: {}, counts: {} };
  }

  async run(): Promise<readonly Trial[]> {
    const { faults, options } = this;
    const left = faults.filter((fault) => this.#isOpen(fault));
    options.say(`${faults.length} faults, ${left.length} to try`);
    const trees = Array.from({ length: Math.min(options.parallel, left.length) }, () => new Tree());
    try {
      if (left.length > 0) await this.#count(trees[0], left);
      const queue = left[Symbol.iterator]();
      await Promise.all(
        trees.map(async (tree) => {
          for (const fault of queue) {
            const trial = await this.#try(tree, fault);
            if (options.signal.aborted) return;
            this.#known.trials[fault.id] = trial;
            this.#write();
            options.say(lineOf(trial));
          }
        }),
      );
    } finally {
      for (const tree of trees) tree.remove();
    }
    return faults.flatMap(({ id }) => this.#known.trials[id] ?? []);
  }

  #isOpen(fault: Fault): boolean {
    const { id } = fault;
    const { again, seconds } = this.options;
    const trial = this.#known.trials[id];
    const outside = outsideOf(fault);
    if (outside !== null) return trial?.why !== outside;
    if (trial === undefined) return true;
    if (trial.noticed) return again;
    return trial.version !== this.#version || (trial.operations > 0 && trial.seconds < seconds);
  }

  /** How often the place of each fault runs, where there is none. */
  async #count(tree: Tree, faults: readonly Fault[]): Promise<void> {
    const counts: Record<string, Counts[string]> = { ...this.#known.counts[this.#version] };
    const isPlaced = (fault: Fault): boolean => fault.kept === undefined && outsideOf(fault) === null;
    const places = faults.filter((fault) => isPlaced(fault) && counts[fault.id] === undefined);
    if (places.length === 0) return;
    // Compiled as the faulty files are: offsets are those of the same compiler.
    for (const file of new Set(places.map((fault) => fault.file)))
      writeFileSync(join(tree.root, compiled(file)), transpile(file, sourceOf(file)!));
    const order = {
      firstSeed: 1,
      seeds: this.options.seedsToCount,
      profiles: this.options.profiles,
      seconds: A_DAY,
    };
    Object.assign(counts, (await this.#runs(tree, { ...order, places: places.map(placeOf) })).counts);
    for (const fault of places) tree.restore(fault);
    this.#known.counts = { [this.#version]: counts };
    this.#write();
  }

  async #try(tree: Tree, fault: Fault): Promise<Trial> {
    const { id } = fault;
    const version = this.#version;
    const outside = outsideOf(fault);
    const not = (why: string, operations = 0, seconds = 0): Trial => ({
      ...{ id, noticed: false, why, operations, seconds, version },
    });
    if (outside !== null) return { ...not(outside), unseen: true };
    if (fault.kept !== undefined) return { id, version, ...(await this.#runKept(tree, fault, fault.kept)) };
    const counts = this.#known.counts[version][id];
    const count = Object.values(counts).reduce((a, b) => a + b, 0);
    if (count === 0 && fault.profile === undefined) return not('its line never runs');
    let [operations, seconds] = [0, 0];
    for (;;) {
      tree.put(fault, sourceOf(fault.file)!);
      const outcome = await this.#runs(tree, {
        seconds: this.options.seconds - seconds,
        profiles: this.#profiles(fault),
      });
      tree.restore(fault);
      operations += outcome.operations;
      seconds += outcome.seconds;
      const { finding, profile, seed } = outcome;
      if (finding === null || this.options.signal.aborted)
        return not(`its line ran ${count} times`, operations, seconds);
      // Without a profile, its file could not be loaded.
      if (profile !== '' && (await this.#findsWithout(tree, profile, seed))) continue;
      return { id, noticed: true, why: finding.split('\n')[0], profile, seed, operations, seconds, version };
    }
  }

  async #runKept(tree: Tree, fault: Fault, kept: string): Promise<Omit<Trial, 'id' | 'version'>> {
    tree.put(fault, sourceOf(fault.file)!);
    const file = `verification/simulation/test/kept/${kept}.test.ts`;
    const { failure, seconds } = await runTest(tree, file, KEPT_SECONDS, this.options.signal);
    tree.restore(fault);
    const noticed = failure !== null;
    return { noticed, why: noticed ? failure : `${kept} passes`, kept, operations: 0, seconds };
  }

  async #findsWithout(tree: Tree, profile: string, seed: number): Promise<boolean> {
    const name = `${this.#version} ${profile} ${seed}`;
    const { without } = this.#known;
    without[name] ??=
      (await this.#runs(tree, { profiles: [profile], firstSeed: seed, seeds: 1, without: [] })).finding !== null;
    if (without[name])
      this.options.say(`the run of profile ${profile} and seed ${seed} finds something without a fault`);
    return without[name];
  }

  /**
   * Those in which its line runs, in turn from two orders: by what they have noticed of the same file, then of all; and
   * by the share that its line has of all lines of faults that run there. A fault may name its profile.
   */
  #profiles({ id, file, profile: own }: Fault): readonly string[] {
    if (own !== undefined && this.options.profiles.includes(own)) return [own];
    const all = this.#known.counts[this.#version];
    const counts = all[id];
    const noticed = this.faults.flatMap((each) => {
      const { profile } = this.#known.trials[each.id] ?? {};
      return profile === undefined ? [] : [{ profile, weight: each.file === file ? NEAR : 1 }];
    });
    const weights = new Map<string, number>();
    for (const { profile, weight } of noticed) weights.set(profile, (weights.get(profile) ?? 0) + weight);
    const sumOf = (profile: string): number => Object.values(all).reduce((sum, each) => sum + (each[profile] ?? 0), 1);
    const shares = new Map(this.options.profiles.map((profile) => [profile, (counts[profile] ?? 0) / sumOf(profile)]));
    const by = (values: ReadonlyMap<string, number>): readonly string[] =>
      [...this.options.profiles].sort((a, b) => (values.get(b) ?? 0) - (values.get(a) ?? 0));
    const [first, second] = [by(shares), by(weights)];
    const inTurn = [...new Set(first.flatMap((profile, i) => [profile, second[i]]))];
    return inTurn.filter((profile) => counts[profile] !== undefined);
  }

  async #runs(tree: Tree, some: Partial<Order>): Promise<Outcome> {
    const order: Order = {
      profiles: NAMES,
      firstSeed: 1,
      seeds: MANY_SEEDS,
      operations: this.options.operations,
      seconds: this.options.seconds,
      without: Object.keys(this.#known.without)
        .filter((name) => name.startsWith(this.#version) && this.#known.without[name])
        .map((name) => name.slice(this.#version.length + 1)),
      places: [],
      ...some,
    };
    const child = fork(join(tree.root, 'dist/verification/mutants/simulated/runs.js'), {
      cwd: tree.root,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: ['--max-old-space-size=1024'],
      signal: this.options.signal,
    });
    let [profile, seed, errors] = ['', 0, ''];
    let end: Extract<Message, { type: 'done' }> | null = null;
    let stuck: NodeJS.Timeout | undefined;
    let isStuck = false;
    child.stderr!.on('data', (bytes: Buffer) => (errors = (errors + String(bytes)).slice(-10_000)));
    child.on('message', (message: Message) => {
      if (message.type === 'done') return void (end = message);
      ({ profile, seed } = message);
      clearTimeout(stuck);
      stuck = setTimeout(() => {
        isStuck = true;
        child.kill('SIGKILL');
      }, STUCK_MS);
    });
    child.send(order);
    const began = performance.now();
    const ended = await new Promise<string>((resolve) => {
      child.once('error', (problem) => resolve(problem.message));
      child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    clearTimeout(stuck);
    const { finding, operations, seconds, counts } = (end as Extract<Message, { type: 'done' }> | null) ?? {
      finding: isStuck ? 'the run does not end' : `the process ends: ${/^\w*Error.*/m.exec(errors)?.[0] ?? ended}`,
      operations: 0,
      seconds: (performance.now() - began) / 1000,
      counts: {},
    };
    return { finding, profile, seed, operations, seconds, counts };
  }

  #write(): void {
    const { report } = this.options;
    mkdirSync(dirname(report), { recursive: true });
    writeFileSync(`${report}.json`, JSON.stringify(this.#known));
    writeFileSync(`${report}.md`, tableOf(this.faults, this.#known.trials));
  }
}

/** The first character that the fault changes, in the compiled file. */
function placeOf(fault: Fault): Place {
  const source = sourceOf(fault.file)!;
  const [right, faulty] = [transpile(fault.file, source), transpile(fault.file, withFault(fault, source))];
  let offset = 0;
  while (offset < right.length && right[offset] === faulty[offset]) offset++;
  return { id: fault.id, file: compiled(fault.file).slice('dist/'.length), offset };
}

/** Changes with each compiled file of the folders. */
function versionOf(folders: readonly string[]): string {
  const hash = createHash('sha256');
  for (const folder of folders)
    for (const name of readdirSync(`${ROOT}dist/${folder}`, { recursive: true, encoding: 'utf8' }).sort())
      if (name.endsWith('.js')) hash.update(readFileSync(`${ROOT}dist/${folder}/${name}`));
  return hash.digest('hex').slice(0, 12);
}

function lineOf({ id, noticed, unseen = false, why, profile, seed, kept, operations, seconds }: Trial): string {
  if (unseen) return `cannot be seen  ${id}: ${why}`;
  if (!noticed) return `not noticed  ${id}: ${why}`;
  if (kept !== undefined) return `noticed      ${id}: kept program ${kept}: ${why}`;
  return `noticed      ${id}: profile ${profile}, seed ${seed}, ${operations} operations, ${seconds.toFixed(1)} CPU s: ${why}`;
}

/** A row for each fault, behind a row for each room. */
function tableOf(faults: readonly Fault[], trials: Readonly<Record<string, Trial>>): string {
  const tried = faults.filter(({ id }) => trials[id] !== undefined);
  const rooms = [...new Set(tried.map(roomOf))].sort();
  const summary = rooms.map((room) => {
    const of = tried.filter((fault) => roomOf(fault) === room).map(({ id }) => trials[id]);
    const outside = tried.filter((fault) => roomOf(fault) === room && outsideOf(fault) !== null).length;
    const seen = of.filter(({ noticed }) => noticed).length;
    return `| ${[room, of.length, seen, of.length - seen - outside, outside].join(' | ')} |`;
  });
  const rows = tried.map((fault) => {
    const { noticed, profile, seed, kept, operations, seconds, why } = trials[fault.id];
    const time = operations > 0 ? seconds.toFixed(1) : '';
    const verdict = noticed ? 'yes' : outsideOf(fault) === null ? 'no' : 'cannot be seen';
    return `| ${[roomOf(fault), fault.id, verdict, profile ?? kept ?? '', seed ?? '', operations, time, why.replaceAll('|', '\\|')].join(' | ')} |`;
  });
  return [
    '| room | faults | noticed | not noticed | cannot be seen |',
    '| --- | --: | --: | --: | --: |',
    ...summary,
    '',
    '| room | fault | noticed | profile, or kept program | seed | operations | CPU s | finding |',
    '| --- | --- | --- | --- | --: | --: | --: | --- |',
    ...rows,
    '',
  ].join('\n');
}

/** How many of those that a run can notice were noticed. */
export function shareOf(faults: readonly Fault[], trials: readonly Trial[]): string {
  const visible = new Set(faults.filter((fault) => outsideOf(fault) === null).map(({ id }) => id));
  const seen = trials.filter(({ noticed }) => noticed);
  const byKept = seen.filter(({ kept }) => kept !== undefined).length;
  const outside = faults.length - visible.size;
  return `${seen.length} of ${visible.size} faults that a simulated run can notice are noticed, ${byKept} of them by a kept program; ${outside} cannot be seen by any run`;
}
