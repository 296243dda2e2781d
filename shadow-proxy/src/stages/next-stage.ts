/**
 * The next stage of each workload, and its gates, for the status page and the report. Read-only.
 */
import type { WorkloadClass, WorkloadPlan } from '../plan/plan.js';
import type { StagePoint } from '../route/stage.js';
import { nextStage } from '../route/transitions.js';
import type { LatencyWindow, WorkloadEvidence } from '../storage/evidence.js';
import type { LedgerTail } from '../telemetry/ledger.js';
import type { GateFacts } from './gate-facts.js';
import { judgeGates, type Gate } from './gates.js';
import { latencyRows, type LatencyRow } from './latency-gate.js';
import { nextPoint, type PromotionState } from './promotion.js';

export interface NextStage {
  readonly workload: string;
  readonly class: WorkloadClass;
  readonly from: StagePoint;
  /** Null after the last stage. */
  readonly to: StagePoint | null;
  readonly gates: readonly Gate[];
  /** Evidence since the workload entered its stage. */
  readonly evidence: WorkloadEvidence;
  /** A typical minute of the workload's commands since it entered its stage; empty if there are no latencies. */
  readonly latency: readonly LatencyRow[];
}

/** A shard's evidence besides its counts. */
export interface ShardEvidence {
  readonly shard: string;
  readonly workloads: readonly NextStage[];
  /** Latencies of each minute in which both servers answered, for the last four hours. */
  readonly latencies: readonly LatencyWindow[];
  readonly mismatches: LedgerTail;
}

/** @param judge judges the gates as `judgeGates` does, for callers that know less than a running proxy */
export function nextStageOf(
  workload: Pick<WorkloadPlan, 'name' | 'class'>,
  { stage, percent, ...more }: PromotionState,
  facts: GateFacts,
  now: Date,
  judge = judgeGates,
): NextStage {
  const from = { stage, percent };
  const to = nextStage(stage, more.perRegion) === null ? null : nextPoint({ ...from, ...more });
  return {
    workload: workload.name,
    class: workload.class,
    from,
    to,
    gates: to === null ? [] : judge(facts, from, to, now),
    evidence: facts.evidence,
    latency: latencyRows(facts.latencies),
  };
}
