/** The sum of several runs, and what they have not shown: a run in which nothing happened proves nothing. */
import { COMMANDS } from '../check/reply-types.js';
import { SEEN } from './announced.js';
import { NAMES } from './bypassing.js';
import { RESTORED } from './emptied.js';
import { LET_IN, REFUSED } from './fence.js';
import { DURATIONS, type Fault, type Profile } from './profiles.js';
import type { Result } from './run.js';

/** From so many commands of a profile on, each of its faults must have struck. */
const ENOUGH = 20_000;
const STAGES = ['dualwrite', 'shadow', 'live', 'rampdown'];
const NO_FAULTS: ReadonlySet<string> = new Set(DURATIONS);

export class Totals {
  operations = 0;
  #cleanChecks = 0;
  #linearized = 0;
  readonly #struck = new Map<string, number>();
  readonly #stages = new Map<string, number>();
  readonly commands = new Map<string, number>();
  readonly errors = new Map<string, number>();
  readonly #bypassing = new Map<string, number>();
  #messages = 0;
  #keysInChunks = 0;
  #changesReported = 0;
  readonly #gets = { source: 0, target: 0 };

  constructor(private readonly profile: Profile) {}

  add(result: Result): void {
    this.operations += result.operations;
    this.#cleanChecks += result.cleanChecks;
    this.#linearized += result.linearized;
    this.#messages += result.messages;
    this.#keysInChunks += result.keysInChunks;
    this.#changesReported += result.changesReported;
    for (const side of ['source', 'target'] as const) this.#gets[side] += result.gets[side];
    addTo(this.#struck, result.struck);
    addTo(this.#stages, result.stages);
    addTo(this.commands, result.commands);
    addTo(this.errors, result.errors);
    addTo(this.#bypassing, result.bypassing);
  }

  /** What has not happened, and should have. */
  missing(): string[] {
    if (this.operations < ENOUGH) return [];
    const faults = Object.keys(this.profile.faults).filter((name) => !NO_FAULTS.has(name)) as Fault[];
    const stages = this.profile.faults.stageChange === undefined ? [this.profile.stage] : STAGES;
    return [
      ...faults.filter((fault) => !this.#struck.has(fault)).map((fault) => `the fault ${fault} never struck`),
      ...stages.filter((stage) => !this.#stages.has(stage)).map((stage) => `the stage ${stage} was never entered`),
      ...(this.profile.bypassed === true ? NAMES : [])
        .filter((name) => !this.#bypassing.has(name))
        .map((name) => `no write bypassed the proxy: ${name}`),
      ...(this.profile.fenced === true ? [LET_IN, REFUSED] : [])
        .filter((what) => !this.#bypassing.has(what))
        .map((what) => `never: ${what}`),
      ...(this.profile.announced === true ? SEEN : [])
        .filter((what) => !this.#bypassing.has(what))
        .map((what) => `no client of the Sentinel has seen ${what}`),
      ...(this.profile.faults.authorityLoss !== undefined ? [RESTORED] : [])
        .filter((what) => !this.#bypassing.has(what))
        .map(() => 'no key that an authority had lost was restored'),
      ...(this.profile.memoryFactor !== undefined && this.#keysInChunks === 0 ? ['no key was copied in chunks'] : []),
      ...(this.profile.mix.hidden !== undefined && this.#changesReported === 0
        ? ['no server reported what a script had changed']
        : []),
      ...this.#wrongShare(),
      ...(this.#cleanChecks === 0 ? ['the servers were never compared at rest'] : []),
      ...(this.#linearized === 0 && this.profile.mix.followed !== undefined ? ['no history was checked'] : []),
      ...(this.#messages === 0 && this.profile.mix.publish !== undefined ? ['no subscriber got a message'] : []),
    ];
  }

  /** Some reads are sent to the target whatever their share is: those of transactions. */
  #wrongShare(): string[] {
    const { readShare } = this.profile;
    const { source, target } = this.#gets;
    if (readShare === undefined || (target > source * readShare * 0.7 && target < source * (readShare + 1) * 0.5))
      return [];
    return [`of ${source} GET at the source, ${target} came to the target`];
  }
}

function addTo(sums: Map<string, number>, of: ReadonlyMap<string, number>): void {
  for (const [name, count] of of) sums.set(name, (sums.get(name) ?? 0) + count);
}

/** Answers that every run of all profiles has to have shown. */
const ERRORS = ['BUSYGROUP', 'BUSYKEY', 'ERR', 'EXECABORT', 'NOGROUP', 'NOPERM', 'NOSCRIPT', 'WRONGPASS', 'WRONGTYPE'];

/** What runs of all profiles together have not shown. */
export function missingOfAll(totals: readonly Totals[]): string[] {
  if (totals.some(({ operations }) => operations < ENOUGH)) return [];
  const lack = (what: 'commands' | 'errors', names: Iterable<string>): string[] =>
    [...names].filter((name) => !totals.some((each) => each[what].has(name)));
  return [
    ...lack('commands', COMMANDS).map((name) => `no client got a reply to ${name} that is no error`),
    ...lack('errors', ERRORS).map((code) => `no client got the error ${code}`),
  ];
}
