/**
 * A finding made small: parts of its program are left out as long as the rest still finds the same kind of problem
 * (delta debugging). First whole rounds, lateness of the network, clients and kinds of faults; then halves of what is
 * left, and so on down to single commands and faults.
 */
import type { NetworkOptions } from '../world/network.js';
import { isSent, type Action, type Program, type Round } from './program.js';
import type { Profile } from './profiles.js';
import { simulate, type Result } from './run.js';

const PUNCTUAL: NetworkOptions = { delayMs: [0.1, 0.1], lateShare: 0, lateMs: 0, splitShare: 0 };
/** A program may depend on what else is drawn: so many seeds are tried for the whole one. */
const SEEDS = 8;
/** Where nothing happens for longer, time is left out. */
const GAP_MS = 20;

export interface Shrunk {
  readonly program: Program;
  /** Of its last run. */
  readonly result: Result;
}

/** @returns null where the program does not repeat the finding */
export async function shrink(profile: Profile, result: Result, seconds: number): Promise<Shrunk | null> {
  return new Shrinker(profile, result, seconds).run();
}

class Shrinker {
  readonly #kind: string;
  readonly #began = process.cpuUsage();
  #best: Shrunk;

  constructor(
    private readonly profile: Profile,
    result: Result,
    private readonly seconds: number,
  ) {
    this.#kind = kindOf(result.finding!);
    this.#best = { program: result.program, result };
  }

  async run(): Promise<Shrunk | null> {
    const { program } = this.#best;
    if (!(await this.#isRepeated(program))) return null;
    for (let kept = 1; kept < program.rounds.length; kept++)
      if (await this.#finds({ rounds: program.rounds.slice(-kept) })) break;
    await this.#finds({ network: PUNCTUAL });
    for (const group of new Set(this.#actions.map(groupOf))) await this.#keep((action) => groupOf(action) !== group);
    await this.#halve();
    await this.#finds({ rounds: this.#best.program.rounds.map(singly) });
    await this.#halve();
    await this.#finds({ network: PUNCTUAL });
    await this.#finds({ rounds: this.#best.program.rounds.map(closer) });
    return this.#best;
  }

  get #isLate(): boolean {
    const { user, system } = process.cpuUsage(this.#began);
    return (user + system) / 1e6 > this.seconds;
  }

  async #isRepeated(program: Program): Promise<boolean> {
    for (let i = 0; i < SEEDS; i++) if (await this.#finds({ seed: program.seed + i })) return true;
    return false;
  }

  /** Whether the best program, with these changes, still finds the same; it is the best one then. */
  async #finds(changes: Partial<Program>): Promise<boolean> {
    if (this.#isLate) return false;
    const program = { ...this.#best.program, ...changes };
    const { profile } = this;
    const result = await simulate({ seed: program.seed, profile, operations: 0, program });
    if (result.finding === null || kindOf(result.finding) !== this.#kind) return false;
    this.#best = { program, result };
    return true;
  }

  get #actions(): readonly Action[] {
    return this.#best.program.rounds.flat();
  }

  #keep(isKept: (action: Action) => boolean): Promise<boolean> {
    return this.#finds({ rounds: this.#best.program.rounds.map((round) => round.filter(isKept)) });
  }

  /** Leaves out as much as possible, in ever smaller parts. */
  async #halve(): Promise<void> {
    for (let size = Math.ceil(this.#actions.length / 2); size >= 1; size = Math.floor(size / 2)) {
      for (let from = 0; from < this.#actions.length && !this.#isLate;) {
        const out = new Set(this.#actions.slice(from, from + size));
        if (!(await this.#keep((action) => !out.has(action)))) from += size;
      }
    }
  }
}

/** Of a finding, what does not change with keys, times and values. */
const kindOf = (finding: string): string => finding.split(/[:\n]/, 1)[0].replace(/\S*\d\S*/g, '…');

const groupOf = (action: Action): string => (isSent(action) ? action.client : action.fault);

/** Each command by itself; those of one moment are still sent one behind the other. */
const singly = (round: Round): Round =>
  round.flatMap((action): Action[] =>
    isSent(action) ? action.commands.map((command) => ({ ...action, commands: [command] })) : [action],
  );

function closer(round: Round): Round {
  let [last, passed] = [0, 0];
  return round.map((action) => {
    passed += Math.min(action.at - last, GAP_MS);
    last = action.at;
    return { ...action, at: passed };
  });
}
