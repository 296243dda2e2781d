/**
 * Moves workloads without an operator. The guard moves a workload of `live` or `rampdown` back to `shadow`, or stops
 * its rollout, if a limit of the plan is exceeded for long enough. The rollout moves a workload from 1 to 100 % of its
 * keys while all gates are open. A workload that the guard has moved waits for an operator (`holds.ts`).
 */
import type { Logger } from 'pino';
import { isoTime, monotonicMs, unixMs } from '../io/clock.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { GuardPlan, Plan, RolloutPlan } from '../plan/plan.js';
import type { Router, Workload } from '../route/router.js';
import type { Counters } from '../telemetry/workload-counters.js';
import { formatPoint, isPartial } from '../route/stage.js';
import { nextShare } from '../route/transitions.js';
import type { Hold } from '../storage/state.js';
import type { Latest } from '../telemetry/series.js';
import type { AutomaticSnapshot } from '../telemetry/snapshot.js';
import { duration } from '../text/figures.js';
import type { EvidenceCollector } from './evidence-collector.js';
import type { CheckResult } from './external-checks.js';
import { isOpen } from './gates.js';
import type { Holds } from './holds.js';
import { judgeLimits } from './limits.js';
import type { PromoteRequest, RollbackRequest } from './promotion.js';
import { namedWorkload } from './stage-change.js';

export interface AutomaticContext {
  readonly plan: () => Plan;
  readonly router: Router;
  readonly counters: Counters;
  readonly collector: Pick<EvidenceCollector, 'outlook' | 'mismatches' | 'askChecks'>;
  readonly holds: () => Holds;
  readonly hold: (workload: string, hold: Hold | null, event: Readonly<Record<string, unknown>>) => Promise<void>;
  readonly promote: (request: PromoteRequest) => Promise<unknown>;
  readonly rollback: (request: RollbackRequest) => Promise<unknown>;
  readonly logger: Logger;
}

const LOOK_MS = 5_000;

interface ExceededLimit {
  readonly since: number;
  readonly evidence: string;
}

/** Observations of one workload since it entered its stage. */
interface WatchedWorkload {
  readonly point: string;
  replies: number;
  errors: number;
  /** Limits that are exceeded, by their name. */
  readonly exceeded: Map<string, ExceededLimit>;
  checks: readonly CheckResult[];
  /** Since when all gates of the next step are open, in ms of the monotonic clock; null if one is closed. */
  openSince: number | null;
}

export class Automatic {
  readonly #watched = new Map<string, WatchedWorkload>();
  #timer: Timer | undefined;
  /** Workloads that are being moved. */
  readonly #moving = new Set<string>();
  #looking = false;

  constructor(private readonly context: AutomaticContext) {}

  start(): void {
    this.#timer = every(LOOK_MS, () => void this.#rollOut()).unref();
  }

  close(): void {
    clearTimer(this.#timer);
  }

  /** Called every few seconds. @param latencies of each workload since the last call, in the router's order */
  sampled(latencies: readonly Latest[]): void {
    const { guard } = this.context.plan();
    if (guard === null) return;
    for (const workload of this.context.router.workloads)
      if (isFor(guard, workload)) this.#guard(guard, workload, latencies[workload.index]);
  }

  snapshot(workload: Workload): AutomaticSnapshot {
    const { guard, rollout } = this.context.plan();
    return {
      guard: isFor(guard, workload),
      rollout: isFor(rollout, workload),
      exceeds: [...(this.#watched.get(workload.name)?.exceeded.values() ?? [])].map(({ evidence }) => evidence),
      hold: this.context.holds()[workload.name] ?? null,
    };
  }

  /** Called by an operator: from now on the workload is not promoted automatically. @throws {StageError, StateError} */
  async pause(workload: string, reason: string, by: string | null): Promise<void> {
    namedWorkload(this.context.router, workload);
    const hold: Hold = { why: 'paused', at: isoTime(), reason, by };
    await this.context.hold(workload, hold, { state: 'paused', reason, ...(by !== null && { by }) });
  }

  /**
   * Called by an operator: the workload may be moved automatically again, whatever the hold was. @throws {StageError,
   * StateError}
   */
  async resume(workload: string, reason: string, by: string | null): Promise<void> {
    namedWorkload(this.context.router, workload);
    await this.context.hold(workload, null, { state: 'resumed', reason, ...(by !== null && { by }) });
  }

  // ── the guard ───────────────────────────────────────────────────────────────────────────────────────────────────

  #guard(plan: GuardPlan, workload: Workload, latency: Latest): void {
    const {
      name,
      position: { stage },
    } = workload;
    if (stage !== 'live' && stage !== 'rampdown') return void this.#watched.delete(name);
    const watched = this.#watch(workload);
    const counters = this.context.counters.of(workload);
    const replies = counters.answeredByTarget - watched.replies;
    const errors = counters.errorsOfTarget - watched.errors;
    [watched.replies, watched.errors] = [counters.answeredByTarget, counters.errorsOfTarget];
    if (plan.checks.length > 0) void this.#ask(plan, workload, watched);
    const facts = { latency, replies, errors, mismatches: this.context.collector.mismatches(name) };
    for (const [limit, evidence] of judgeLimits(plan, { ...facts, checks: watched.checks })) {
      if (evidence === null) watched.exceeded.delete(limit);
      else watched.exceeded.set(limit, { since: watched.exceeded.get(limit)?.since ?? monotonicMs(), evidence });
    }
    if (watched.exceeded.size > 0) watched.openSince = null;
    const late = [...watched.exceeded.values()].filter(({ since }) => monotonicMs() - since >= plan.forSeconds * 1_000);
    if (late.length > 0) void this.#act(plan, workload, late);
  }

  async #ask({ checks }: GuardPlan, workload: Workload, watched: WatchedWorkload): Promise<void> {
    const answers = await this.context.collector.askChecks(workload);
    watched.checks = answers.filter(({ name }) => checks.includes(name));
  }

  async #act({ action, forSeconds }: GuardPlan, workload: Workload, late: readonly ExceededLimit[]): Promise<void> {
    const { name } = workload;
    const held = this.context.holds()[name];
    if ((held !== undefined && held.why !== 'paused') || this.#moving.has(name)) return;
    const reason = `for ${duration(forSeconds)} in ${formatPoint(workload.position)}: ${late.map(({ evidence }) => evidence).join('; ')}`;
    this.#moving.add(name);
    try {
      if (action === 'rollback')
        await this.context.rollback({ workload: name, automatic: 'guard', by: 'the guard', reason });
      else {
        const hold: Hold = { why: 'stopped', at: isoTime(), reason, by: null };
        await this.context.hold(name, hold, { state: 'stopped', reason });
      }
      this.context.logger.warn({ workload: name, reason, action }, 'the guard has acted');
    } catch (problem) {
      this.context.logger.error(
        { workload: name, reason, problem: (problem as Error).message },
        'the guard cannot act: it tries again in 5 s',
      );
    } finally {
      this.#moving.delete(name);
    }
  }

  #watch(workload: Workload): WatchedWorkload {
    const {
      name,
      position: { stage, percent },
    } = workload;
    const point = formatPoint({ stage, percent });
    const known = this.#watched.get(name);
    if (known?.point === point) return known;
    const { answeredByTarget, errorsOfTarget } = this.context.counters.of(workload);
    const fresh: WatchedWorkload = {
      point,
      replies: answeredByTarget,
      errors: errorsOfTarget,
      exceeded: new Map(),
      checks: [],
      openSince: null,
    };
    this.#watched.set(name, fresh);
    return fresh;
  }

  // ── the rollout ─────────────────────────────────────────────────────────────────────────────────────────────────

  async #rollOut(): Promise<void> {
    const { rollout } = this.context.plan();
    if (rollout === null || this.#looking) return;
    const waiting = this.context.router.workloads.filter(
      (workload) => isFor(rollout, workload) && this.#mayGoOn(workload),
    );
    if (waiting.length === 0) return;
    this.#looking = true;
    try {
      const outlook = await this.context.collector.outlook();
      for (const workload of waiting) {
        const next = outlook.find((each) => each.workload === workload.name);
        await this.#step(rollout, workload, next !== undefined && isOpen(next.gates));
      }
    } finally {
      this.#looking = false;
    }
  }

  #mayGoOn(workload: Workload): boolean {
    const isHeld = this.context.holds()[workload.name] !== undefined;
    const may = isPartial(workload.position) && !isHeld && !this.#moving.has(workload.name);
    if (!may) this.#watch(workload).openSince = null;
    return may;
  }

  async #step({ holdMinutes, window }: RolloutPlan, workload: Workload, open: boolean): Promise<void> {
    if (!this.#mayGoOn(workload)) return;
    const watched = this.#watch(workload);
    if (!open || watched.exceeded.size > 0) return void (watched.openSince = null);
    watched.openSince ??= monotonicMs();
    const heldMs = monotonicMs() - watched.openSince;
    if (heldMs < holdMinutes * 60_000 || !isWithin(window, unixMs())) return;
    const { name } = workload;
    this.#moving.add(name);
    try {
      await this.context.promote({
        workload: name,
        to: 'live',
        percent: nextShare(workload.position),
        automatic: 'rollout',
        by: 'the rollout',
        reason: `all gates were open for ${duration(heldMs / 1_000)}`,
      });
    } catch (problem) {
      watched.openSince = null;
      this.context.logger.warn({ workload: name, problem: (problem as Error).message }, 'the rollout waits');
    } finally {
      this.#moving.delete(name);
    }
  }
}

const isFor = (plan: GuardPlan | RolloutPlan | null, { name }: Workload): boolean =>
  plan !== null && (plan.workloads === null || plan.workloads.includes(name));

/** Whether the time `now`, in ms since 1970, is within the window. */
export function isWithin(window: RolloutPlan['window'], now: number): boolean {
  if (window === null) return true;
  const day = 24 * 60;
  const minute = Math.floor(now / 60_000) % day;
  return (minute - window.from + day) % day < (window.to - window.from + day) % day;
}
