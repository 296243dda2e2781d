/**
 * What a report is made of, whichever way it is written; this is its JSON, too.
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
  /** The plan's name; null if none was given. */
  readonly plan: string | null;
  readonly recommendation: Recommendation;
  readonly shards: readonly ShardReport[];
}

export interface Advice {
  readonly shard: string;
  readonly workload: string;
  /** The stage that it would move to, such as `live 10 %`; null behind the last stage. */
  readonly next: string | null;
  /** What is unknown is not ready. */
  readonly answer: 'ready' | 'not yet' | 'complete';
  /** Why it is not ready: a closed gate each. */
  readonly because: readonly string[];
}

export interface Recommendation {
  /** `ready` only where every workload that is not complete is. */
  readonly answer: Advice['answer'];
  /** One sentence. */
  readonly summary: string;
  readonly workloads: readonly Advice[];
}

export interface ShardFacts {
  readonly shard: string;
  /** A running proxy, or what the last one left on the disk. */
  readonly from: 'proxy' | 'state';
  /** Why no proxy was asked; null if one answered. */
  readonly problem: string | null;
  /** Null without a proxy. */
  readonly snapshot: ShardSnapshot | null;
  readonly evidence: ShardEvidence;
  /** The backfill or verification that is under way, or was the last. */
  readonly job: JobSnapshot | null;
  /** Oldest first. */
  readonly history: readonly HistoryEvent[];
}

export interface ShardReport extends ShardFacts {
  /** What the evidence does not show. */
  readonly notCovered: readonly string[];
}
