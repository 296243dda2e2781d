/** The interface of a running shard for the admin API and the CLI. */
import type { JobChange } from '../copy/job/jobs.js';
import type { JobRequest } from '../storage/job-file.js';
import type { HistoryEvent } from '../storage/state.js';
import type { Side } from '../route/stage.js';
import type { FenceNote } from '../stages/fence.js';
import type { FenceReport } from '../stages/fence-gate.js';
import type { ShardEvidence } from '../stages/next-stage.js';
import type { PromoteRequest, Promotion, Rollback, RollbackRequest } from '../stages/promotion.js';
import type { StageChange, StageRequest } from '../stages/stage-change.js';
import type { SeriesSnapshot } from '../telemetry/series.js';
import type { JobSnapshot, ScrapedShard, ShardSnapshot } from '../telemetry/snapshot.js';

/** A request of an operator to forbid automatic promotions of a workload, or to allow them again. */
export interface AutomationRequest {
  readonly workload: string;
  readonly state: 'pause' | 'resume';
  readonly reason: string;
  readonly by?: string;
}

/** An entry for the history: a promotion waits on an operator's machine. */
export interface WaitNote {
  readonly workload: string;
  readonly state: 'waits' | 'ended' | 'cancelled';
  readonly what: string;
  readonly by?: string;
}

/** An entry for the history: an operator ran or undid a step of a runbook that changes something. */
export interface Note {
  readonly runbook: string;
  readonly step: string;
  readonly kind: 'run' | 'undo';
  readonly command: string;
  /** Null if the command was killed, or could not be started. */
  readonly exit: number | null;
  /** Whether the step did what the runbook expects. */
  readonly held: boolean;
  readonly by?: string;
}

export type FenceAction = 'show' | 'apply' | 'lift';

/** What the admin API needs of a shard. */
export interface ShardControl {
  readonly name: string;
  snapshot(): ShardSnapshot;
  /** The snapshot and more, for metrics. It does not wait for servers. */
  scrape(): ScrapedShard;
  /** Whether the shard listens, and every authority it needs is up. */
  ready(): boolean;
  /** Moves a workload back to an earlier stage without gates. @throws {StageError} with nothing changed */
  changeStage(request: StageRequest): Promise<StageChange>;
  /** @throws {StageError} with nothing changed */
  promote(request: PromoteRequest): Promise<Promotion>;
  /** @throws {StageError} */
  rollback(request: RollbackRequest): Promise<Rollback>;
  /** Shows the fence at the source, raises it, or lifts it. @throws {StageError} with nothing changed */
  fence(action: FenceAction, note?: FenceNote): Promise<FenceReport>;
  /** The evidence for the gates of the shard's workloads. Read-only. */
  evidence(): Promise<ShardEvidence>;
  /** The shard's figures since that time, in ms since 1970. */
  series(since: number): SeriesSnapshot;
  /** The last changes, oldest first. */
  history(): Promise<readonly HistoryEvent[]>;
  /** @throws {StageError} code `unknown-workload`, {Error} where the disk does not take it */
  automate(request: AutomationRequest): Promise<void>;
  /** Adds an entry to the history, and changes nothing else. @throws {Error} if the disk does not take it */
  note(note: Note | WaitNote): Promise<void>;
  /**
   * Accepts restarted or replaced authorities, if they are these. @throws {TrustError} with
   * nothing changed
   */
  acceptAuthority(runIds: readonly string[] | null): Promise<Side[]>;
  /** Starts a backfill or a verification. `by`: who requests it, for the history of deleted keys. @throws {JobError} */
  startJob(request: JobRequest, by?: string): JobSnapshot;
  /** Changes the job that runs; what was changed survives a restart. @throws {JobError} */
  changeJob(change: JobChange): JobSnapshot;
  /** Stops the job where it is. @throws {JobError} */
  stopJob(): JobSnapshot;
}
