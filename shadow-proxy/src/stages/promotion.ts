/**
 * promote: moves a workload to its next stage, if its gates are open. rollback: moves it back to a stage in which
 * clients get the source's replies. A drill does both, briefly and for a share of the keys, to show that a rollback
 * works before it is needed.
 */
import { isoTime, unixMs } from '../io/clock.js';
import type { Drill } from '../storage/evidence.js';
import { isPartial, type Stage, type StagePoint } from '../route/stage.js';
import { isLater, nextShare, nextStage, noReturn, rollbackStage, stagesTo } from '../route/transitions.js';
import type { HookPlan } from '../plan/plan.js';
import { NO_CONSENT, type Consent, type GateFacts } from './gate-facts.js';
import type { Automat } from './holds.js';
import { closedGates, DRILL_NEEDS, isOpen, judgeGates, type Gate } from './gates.js';
import type { TargetKeys } from '../copy/foreign/target-keys.js';
import { StageError, type StageChange, type StageRequest } from './stage-change.js';

export interface PromoteRequest {
  readonly workload: string;
  /** Default: the next stage. */
  readonly to?: Stage;
  /** Percent of the keys, for `live`; default: the next of 1, 10, 50, 100. */
  readonly percent?: number;
  /** From off to dualwrite: what may happen to keys of the target that the shard did not write, and to how many. */
  readonly consent?: Consent;
  /** Only judge the gates. */
  readonly dryRun?: boolean;
  /** Pass closed gates except `target` and `users`; needs a reason. */
  readonly force?: boolean;
  /** Continue although the mirror has suspects, and lose the writes that it lacks; needs a reason. */
  readonly forceSuspects?: boolean;
  /** Pass the gate `users`, which `force` does not pass; needs a reason. */
  readonly forceUsers?: boolean;
  /** Accept that the servers are newer than this release knows, from now on; needs a reason. */
  readonly acceptVersion?: boolean;
  readonly reason?: string;
  readonly by?: string;
  /** The part of the proxy that asks; absent for an operator. Never read from a request. */
  readonly automatic?: Automat;
}

export interface Promotion {
  readonly workload: string;
  readonly from: StagePoint;
  readonly to: StagePoint;
  readonly gates: readonly Gate[];
  /** Keys of the target that the shard did not write, if they were counted; else null. */
  readonly targetKeys: TargetKeys | null;
  /** Programs that the change would run; absent if it was made, or there are none. */
  readonly hooks?: readonly HookPlan[];
  /** Null if nothing was changed. */
  readonly change: StageChange | null;
}

export interface RollbackRequest {
  readonly workload: string;
  /** Default: `shadow` if the target answers clients, else the stage before. */
  readonly to?: Stage;
  /** Continue although the mirror is not clean, and lose what the refusal lists. */
  readonly force?: boolean;
  readonly reason?: string;
  readonly by?: string;
  /** The part of the proxy that asks; absent for an operator. Never read from a request. */
  readonly automatic?: Automat;
  /** Only check that the rollback is possible. */
  readonly dryRun?: boolean;
  /** Make a drill: move a share of the keys to the target and back. */
  readonly drill?: boolean;
}

export interface Rollback {
  readonly workload: string;
  readonly changes: readonly StageChange[];
  /** Programs that the changes would run; absent if they were made, or there are none. */
  readonly hooks?: readonly HookPlan[];
}

/** The stage of a workload, and the reason that forbids a percentage. */
export interface PromotionState extends StagePoint {
  readonly spanning: number;
  /** Whether the layout on the target is `per-region`, so that both servers cannot hold the same keys. */
  readonly perRegion?: boolean;
}

export interface PromotionContext {
  /** @throws {StageError} code `unknown-workload` */
  promotionState(workload: string): PromotionState;
  facts(workload: string, consent?: Consent): Promise<GateFacts>;
  /** Saves the releases of servers that an operator has accepted. @throws {StateError} */
  acceptReleases(names: readonly string[], note: Readonly<Record<string, unknown>>): Promise<void>;
  /** @throws {StageError} if the change is refused whatever the servers answer */
  allow(request: StageRequest): void;
  /** Makes all checks of `change` before it holds a command. @throws {StageError} */
  check(request: StageRequest): Promise<void>;
  /** The hooks that a change of the workload would run. */
  hooks(workload: string): readonly HookPlan[];
  /** @throws {StageError} with nothing changed */
  change(request: StageRequest): Promise<StageChange>;
  /** Until the drill is over, observations count for the stage from which the workload came. */
  drilling(workload: string, on: boolean): void;
  drilled(workload: string, drill: Drill): void;
}

const DRILL_PERCENT = 1;

/** The point after this one. @throws {StageError} if there is none */
export function nextPoint({ stage, percent, spanning, perRegion }: PromotionState): StagePoint {
  if (isPartial({ stage, percent })) return { stage, percent: nextShare({ stage, percent }) };
  const next = nextStage(stage, perRegion);
  if (next === null) throw new StageError('no-return', `the workload is ${stage}: there is no next stage`);
  return { stage: next, percent: next === 'live' && spanning === 0 ? nextShare({ stage, percent }) : 100 };
}

/** @throws {StageError} code `gates-closed` with nothing changed, and all errors of `change` */
export async function promote(context: PromotionContext, request: PromoteRequest): Promise<Promotion> {
  const { workload, force = false, forceSuspects = false, forceUsers = false, acceptVersion = false } = request;
  const { reason, by } = request;
  const from = context.promotionState(workload);
  const next = nextPoint(from);
  const stage = request.to ?? next.stage;
  if (request.percent !== undefined && stage !== 'live')
    throw new StageError(
      'refused',
      `--percent is for stage live only, and "${workload}" would move to ${stage}: leave it out`,
    );
  const to = {
    stage,
    percent: stage === 'live' ? (request.percent ?? (next.stage === 'live' ? next.percent : 100)) : 100,
  };
  if (!isLater(from, to)) {
    throw new StageError(
      'refused',
      `"${workload}" is in ${from.stage} ${from.percent} %: the requested stage is not a later one; to go back, use \`rollback\``,
    );
  }
  if ((force || forceSuspects || forceUsers) && !reason)
    throw new StageError('refused', 'a forced gate is recorded in the history: give the reason with --reason');
  if (acceptVersion && !reason)
    throw new StageError('refused', 'an accepted version is recorded in the history: give the reason with --reason');
  const { consent = NO_CONSENT } = request;
  const change = { workload, stage: to.stage, percent: to.percent, consent, force: forceSuspects };
  context.allow(change);
  const seen = await context.facts(workload, request.consent);
  const accepted = seen.newer.filter((each) => acceptVersion && !each.accepted).map(({ name }) => name);
  const facts = { ...seen, newer: seen.newer.map((each) => (acceptVersion ? { ...each, accepted: true } : each)) };
  const gates = judgeGates(facts, from, to, new Date(unixMs()));
  const targetKeys = facts.target?.keys ?? null;
  const point = { stage: from.stage, percent: from.percent };
  const closed = closedGates(gates, request);
  if (request.dryRun) {
    if (closed.length === 0) await context.check(change);
    return { workload, from: point, to, gates, targetKeys, ...wouldRun(context, workload), change: null };
  }
  if (closed.length > 0) {
    throw new StageError(
      'gates-closed',
      `"${workload}" stays in ${from.stage}: closed gates: ${closed.map(({ name }) => name).join(', ')}`,
      { workload, from: point, to, gates, targetKeys, change: null },
    );
  }
  if (accepted.length > 0) await context.acceptReleases(accepted, { by, reason });
  const said = from.stage === 'off' && (consent.overwrite || consent.deleteForeign);
  const note = {
    by,
    reason,
    ...(request.automatic && { automatic: request.automatic }),
    forced: !isOpen(gates),
    ...(said && { consent }),
    gates: gates.map(({ name, answer, evidence }) => ({ name, answer, evidence })),
  };
  return {
    workload,
    from: point,
    to,
    gates,
    targetKeys,
    change: await context.change({ ...change, note }),
  };
}

/** @throws {StageError} if a step is refused; earlier steps are kept */
export async function rollback(context: PromotionContext, request: RollbackRequest): Promise<Rollback> {
  if (request.drill) return rehearse(context, request);
  const { workload, force, reason, by } = request;
  const from = context.promotionState(workload);
  if (from.stage === 'complete') throw new StageError('no-return', noReturn(workload));
  const to = request.to ?? rollbackStage(from.stage);
  const steps = (to === null ? null : stagesTo(from.stage, to, true)) ?? [];
  if (steps.length === 0)
    throw new StageError(
      'refused',
      `"${workload}" is in ${from.stage}: ${to === null ? 'there is no earlier stage' : `${to} is not an earlier stage`}`,
    );
  if (request.dryRun) {
    // Only the first step can be refused, because later steps leave no authority.
    await context.check({ workload, stage: steps[0], force });
    return { workload, changes: planned(workload, from, steps), ...wouldRun(context, workload) };
  }
  const changes: StageChange[] = [];
  const note = { by, reason, rollback: true, ...(request.automatic && { automatic: request.automatic }) };
  for (const stage of steps) changes.push(await context.change({ workload, stage, force, note }));
  return { workload, changes };
}

/** The hooks that a dry run reports. */
function wouldRun(context: PromotionContext, workload: string): Pick<Promotion, 'hooks'> {
  const hooks = context.hooks(workload);
  return hooks.length === 0 ? {} : { hooks };
}

/** The changes of a dry run; each begins where the one before ends. */
function planned(workload: string, { stage, percent }: StagePoint, steps: readonly Stage[]): readonly StageChange[] {
  const points = [{ stage, percent }, ...steps.map((step) => ({ stage: step, percent: 100 }))];
  return points.slice(1).map((to, at) => ({ workload, from: points[at], to, heldMs: 0 }));
}

/**
 * Moves a share of the keys to the target and back. If commands span slots, a share is not possible, so all keys are
 * moved.
 */
async function rehearse(context: PromotionContext, { workload, by, dryRun }: RollbackRequest): Promise<Rollback> {
  const { stage, percent: before, spanning } = context.promotionState(workload);
  if (stage !== 'shadow')
    throw new StageError('refused', `"${workload}" is in ${stage}: a rollback drill is possible in shadow only`);
  const facts = await context.facts(workload);
  const bar = judgeGates(
    facts,
    { stage: 'shadow', percent: 100 },
    { stage: 'live', percent: DRILL_PERCENT },
    new Date(unixMs()),
  ).filter(({ name, answer }) => answer !== 'yes' && DRILL_NEEDS.has(name));
  if (bar.length > 0)
    throw new StageError(
      'gates-closed',
      `"${workload}" is not ready for a rollback drill: closed gates: ${bar.map(({ name }) => name).join(', ')}`,
      { workload, gates: bar },
    );
  const percent = spanning > 0 ? 100 : DRILL_PERCENT;
  if (dryRun) {
    await context.check({ workload, stage: 'live', percent });
    const points = { shadow: { stage, percent: before }, live: { stage: 'live', percent } } as const;
    return {
      workload,
      changes: [
        { workload, from: points.shadow, to: points.live, heldMs: 0 },
        { workload, from: points.live, to: points.shadow, heldMs: 0 },
      ],
      ...wouldRun(context, workload),
    };
  }
  const note = { by, drill: true };
  context.drilling(workload, true);
  try {
    const there = await context.change({ workload, stage: 'live', percent, note });
    const back = await context.change({ workload, stage: 'shadow', note });
    context.drilled(workload, { at: isoTime(), percent, heldMs: Math.max(there.heldMs, back.heldMs) });
    return { workload, changes: [there, back] };
  } finally {
    context.drilling(workload, false);
  }
}
