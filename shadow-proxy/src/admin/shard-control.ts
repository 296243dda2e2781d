/** What the admin API and the CLI know of a running shard. */
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

/** An operator keeps a workload from being promoted by itself, or ends that. */
export interface AutomationRequest {
  readonly workload: string;
  readonly state: 'pause' | 'resume';
  readonly reason: string;
  readonly by?: string;
}

/** A promotion that waits for its time on an operator's machine, for the history. */
export interface WaitNote {
  readonly workload: string;
  readonly state: 'waits' | 'ended' | 'cancelled';
  readonly what: string;
  readonly by?: string;
}

/** A step of a runbook that changes something, which an operator ran or undid, for the history. */
export interface Note {
  readonly runbook: string;
  readonly step: string;
  readonly kind: 'run' | 'undo';
  readonly command: string;
  /** Null if it was ended, or could not be started. */
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
  /** The snapshot and more, for metrics. It waits for nothing. */
  scrape(): ScrapedShard;
  /** Listening, and every authority it needs is up. */
  ready(): boolean;
  /** Puts a workload back where it was; asks no gate. @throws {StageError} with nothing changed */
  changeStage(request: StageRequest): Promise<StageChange>;
  /** @throws {StageError} with nothing changed */
  promote(request: PromoteRequest): Promise<Promotion>;
  /** @throws {StageError} */
  rollback(request: RollbackRequest): Promise<Rollback>;
  /** Shows the fence at the source, raises it, or lifts it. @throws {StageError} with nothing changed */
  fence(action: FenceAction, note?: FenceNote): Promise<FenceReport>;
  /** What it has to show for the gates of its workloads; changes nothing. */
  evidence(): Promise<ShardEvidence>;
  /** How it fared since that moment, in ms since 1970. */
  series(since: number): SeriesSnapshot;
  /** The last changes, oldest first. */
  history(): Promise<readonly HistoryEvent[]>;
  /** @throws {StageError} code `unknown-workload`, {Error} where the disk does not take it */
  automate(request: AutomationRequest): Promise<void>;
  /** Writes into the history what was done, and changes nothing. @throws {Error} if the disk does not take it */
  note(note: Note | WaitNote): Promise<void>;
  /**
   * Accepts restarted or replaced authorities, if they are these. @throws {TrustError} with
   * nothing changed
   */
  acceptAuthority(runIds: readonly string[] | null): Promise<Side[]>;
  /**
   * Begins a backfill or a verification; `by`: who asked for it, for the history of what it deletes. @throws {JobError}
   */
  startJob(request: JobRequest, by?: string): JobSnapshot;
  /** Stops it where it is. @throws {JobError} */
  stopJob(): JobSnapshot;
}
