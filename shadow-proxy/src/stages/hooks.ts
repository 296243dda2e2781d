/** The plan's hooks: programs that run before or after a stage change, and get its description. */
import type { Logger } from 'pino';
import { monotonicMs } from '../io/clock.js';
import { endText, runProgram } from '../io/programs.js';
import type { HookPlan } from '../plan/plan.js';
import { formatPoint, type StagePoint } from '../route/stage.js';
import { isLater } from '../route/transitions.js';
import { StageError, type HookRun, type StageRequest } from './stage-change.js';

/** The description of a stage change that hooks get. */
export interface HookedChange {
  readonly workload: string;
  readonly from: StagePoint;
  readonly to: StagePoint;
  readonly note?: StageRequest['note'];
  /** Whether the proxy itself makes the change because an authority is down. */
  readonly failover: boolean;
}

export class Hooks {
  constructor(
    private readonly shard: () => string,
    private readonly hooks: () => readonly HookPlan[],
    private readonly logger: Logger,
  ) {}

  /** The hooks that a change of the workload would run, in order. */
  of(workload: string): readonly HookPlan[] {
    return this.hooks().filter(({ workloads }) => workloads === null || workloads.includes(workload));
  }

  /** @throws {StageError} code `refused` if a hook fails before a promotion; nothing was changed */
  async before(change: HookedChange): Promise<readonly HookRun[]> {
    const runs: HookRun[] = [];
    for (const hook of this.#which(change, 'before')) {
      const run = await this.#run(hook, change);
      runs.push(run);
      // A broken program must not prevent a rollback.
      if (run.problem !== null && isLater(change.from, change.to) && !change.failover)
        throw new StageError(
          'refused',
          `"${change.workload}" stays in ${formatPoint(change.from)}: hook ${hook.name} failed: ${run.problem}`,
        );
    }
    return runs;
  }

  /** Runs hooks after the change, which stands whatever their result. */
  async after(change: HookedChange): Promise<readonly HookRun[]> {
    const runs: HookRun[] = [];
    for (const hook of this.#which(change, 'after')) runs.push(await this.#run(hook, change));
    return runs;
  }

  #which({ workload }: HookedChange, when: HookPlan['when']): readonly HookPlan[] {
    return this.of(workload).filter((hook) => hook.when === when);
  }

  async #run({ name, when, command, deadlineMs }: HookPlan, change: HookedChange): Promise<HookRun> {
    const { workload, from, to, note = {}, failover } = change;
    const given = { hook: name, when, shard: this.shard(), workload, from, to, failover, ...note };
    const began = monotonicMs();
    const end = await runProgram({
      command,
      env: {
        SHADOW_PROXY_HOOK: when,
        SHADOW_PROXY_SHARD: this.shard(),
        SHADOW_PROXY_WORKLOAD: workload,
        SHADOW_PROXY_FROM: from.stage,
        SHADOW_PROXY_FROM_PERCENT: String(from.percent),
        SHADOW_PROXY_TO: to.stage,
        SHADOW_PROXY_TO_PERCENT: String(to.percent),
        SHADOW_PROXY_REASON: String(note.reason ?? ''),
      },
      input: `${JSON.stringify(given)}\n`,
      deadlineMs,
    });
    const ms = Math.round(monotonicMs() - began);
    const failed = end.code === 0 ? null : endText(end);
    const about = { hook: name, when, workload, ms };
    if (failed === null) this.logger.info(about, 'a hook has run');
    else this.logger.warn({ ...about, problem: failed }, 'a hook has failed');
    return { name, when, ms, problem: failed };
  }
}
