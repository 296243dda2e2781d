/**
 * The contents of a report, whatever its format; this is also its JSON.
 *
 * Room: report: the evidence for an approval, as HTML, Markdown or JSON.
 * Called by: cli.
 * Calls: text, route, plan, telemetry, storage, stages, html, page.
 */
import type { ShardEvidence } from '../stages/next-stage.js';
import type { JobSnapshot, ShardSnapshot } from '../telemetry/snapshot.js';
import type { HistoryEvent } from '../storage/state.js';

export interface Report {
  readonly version: 1;
  /** ISO 8601. */
  readonly at: string;
  /** The plan's name; null if no plan was given. */
  readonly plan: string | null;
  readonly recommendation: Recommendation;
  readonly shards: readonly ShardReport[];
}

export interface Advice {
  readonly shard: string;
  readonly workload: string;
  /** The stage to which the workload would move, such as `live 10 %`; null after the last stage. */
  readonly next: string | null;
  /** If something is unknown, the answer is not `ready`. */
  readonly answer: 'ready' | 'not yet' | 'complete';
  /** Why the workload is not ready: one sentence for each closed gate. */
  readonly because: readonly string[];
}

export interface Recommendation {
  /** `ready` only if every workload is, except those that are complete. */
  readonly answer: Advice['answer'];
  /** One sentence. */
  readonly summary: string;
  readonly workloads: readonly Advice[];
}

export interface ShardFacts {
  readonly shard: string;
  /** A running proxy, or the files that the last one left. */
  readonly from: 'proxy' | 'state';
  /** Why no proxy answered; null if one did. */
  readonly problem: string | null;
  /** Null without a proxy. */
  readonly snapshot: ShardSnapshot | null;
  readonly evidence: ShardEvidence;
  /** The present or last backfill or verification. */
  readonly job: JobSnapshot | null;
  /** Oldest first. */
  readonly history: readonly HistoryEvent[];
}

export interface ShardReport extends ShardFacts {
  /** What the evidence does not show. */
  readonly notCovered: readonly string[];
}
