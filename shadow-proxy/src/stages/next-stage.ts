/**
 * What lies before each workload, for the status page and the report: its next stage, and that one's gates. Judging
 * changes nothing.
 */
import type { WorkloadClass, WorkloadPlan } from '../plan/plan.js';
import type { StagePoint } from '../route/stage.js';
import { nextStage } from '../route/transitions.js';
import type { LatencyWindow, WorkloadEvidence } from '../storage/evidence.js';
import type { LedgerTail } from '../telemetry/ledger.js';
import type { GateFacts } from './gate-facts.js';
import { judgeGates, type Gate } from './gates.js';
import { latencyRows, type LatencyRow } from './latency-gate.js';
import { nextPoint, type Standing } from './promotion.js';

export interface NextStage {
  readonly workload: string;
  readonly class: WorkloadClass;
  readonly from: StagePoint;
  /** Null behind the last stage. */
  readonly to: StagePoint | null;
  readonly gates: readonly Gate[];
  /** Since it entered its stage. */
  readonly evidence: WorkloadEvidence;
  /** A typical minute of its commands since it entered its stage; empty if nothing was timed. */
  readonly latency: readonly LatencyRow[];
}

/** What a shard has to show beside its figures. */
export interface ShardEvidence {
  readonly shard: string;
  readonly workloads: readonly NextStage[];
  /** Latencies of each minute in which both servers answered, for the last four hours. */
  readonly latencies: readonly LatencyWindow[];
  readonly mismatches: LedgerTail;
}

/** @param judge as `judgeGates`, for those who know less than a running proxy */
export function nextStageOf(
  workload: Pick<WorkloadPlan, 'name' | 'class'>,
  { stage, percent, ...more }: Standing,
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
