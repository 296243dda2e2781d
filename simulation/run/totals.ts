/** The sum of several runs, and what they have not shown: a run in which nothing happened proves nothing. */
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

  constructor(private readonly profile: Profile) {}

  add(result: Result): void {
    this.operations += result.operations;
    this.#cleanChecks += result.cleanChecks;
    this.#linearized += result.linearized;
    for (const [fault, count] of result.struck) this.#struck.set(fault, (this.#struck.get(fault) ?? 0) + count);
    for (const [stage, count] of result.stages) this.#stages.set(stage, (this.#stages.get(stage) ?? 0) + count);
  }

  /** What has not happened, and should have. */
  missing(): string[] {
    if (this.operations < ENOUGH) return [];
    const faults = Object.keys(this.profile.faults).filter((name) => !NO_FAULTS.has(name)) as Fault[];
    const stages = this.profile.faults.stageChange === undefined ? [this.profile.stage] : STAGES;
    return [
      ...faults.filter((fault) => !this.#struck.has(fault)).map((fault) => `the fault ${fault} never struck`),
      ...stages.filter((stage) => !this.#stages.has(stage)).map((stage) => `the stage ${stage} was never entered`),
      ...(this.#cleanChecks === 0 ? ['the servers were never compared at rest'] : []),
      ...(this.#linearized === 0 && this.profile.mix.followed !== undefined ? ['no history was checked'] : []),
    ];
  }
}
