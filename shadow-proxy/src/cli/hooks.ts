/** Describes hooks for people: those that a stage change would run, and how they ended. */
import type { HookPlan } from '../plan/plan.js';
import type { HookRun } from '../stages/stage-change.js';
import { number } from '../text/figures.js';

/** One line for each hook; empty if there are none. */
export const hooksToRun = (hooks: readonly HookPlan[] = []): readonly string[] =>
  hooks.map(({ name, when, command }) => `hook ${name} would run ${when} the change: ${command.join(' ')}`);

/** One line for each run; empty if there were none. */
export const hooksRun = (runs: readonly HookRun[] = []): readonly string[] =>
  runs.map(
    ({ name, when, ms, problem }) =>
      `hook ${name} ran ${when} the change, ${number(ms)} ms${problem === null ? '' : `: FAILED: ${problem}`}`,
  );
