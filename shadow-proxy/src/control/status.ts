/** What main, the admin API and the CLI know of a running shard, and what a shard is started with. */
import type { Logger } from 'pino';
import type { Ownership } from '../lane/ownership.js';
import type { Consent } from './gates.js';
import type { ShardEvidence } from './outlook.js';
import type { PromoteRequest, Promotion, Rollback, RollbackRequest } from './promotion.js';
import type { Plan, ShardPlan, StagePoint } from '../plan/plan.js';
import type { Ledger } from '../record/ledger.js';
import type { SeriesSnapshot } from '../record/series.js';
import type { HistoryEvent, StateStore } from '../record/state.js';
import type { JobRequest } from '../record/job-file.js';
import type { JobSnapshot, ScrapedShard, ShardSnapshot } from '../record/snapshot.js';
import type { Side, Stage } from '../route/stage.js';

export type * from '../record/snapshot.js';
export type { StagePoint };

export interface StageRequest {
  readonly workload: string;
  readonly stage: Stage;
  /** 0 to 100, with stage `live` only; 100 where absent. */
  readonly percent?: number;
  /** Go on where the mirror is not clean, and lose what the answer without it lists. */
  readonly force?: boolean;
  /** From off to dualwrite: what may happen to keys of the target that the shard did not write. */
  readonly consent?: Consent;
  /** The authority that is left is lost: it need not be trusted. Never asked for from outside. */
  readonly failover?: boolean;
  /** For the history: who, why, on what evidence. */
  readonly note?: Readonly<Record<string, unknown>>;
}

export interface StageChange {
  readonly workload: string;
  readonly from: StagePoint;
  readonly to: StagePoint;
  /** Milliseconds for which the workload's new commands were held. */
  readonly heldMs: number;
}

export type StageErrorCode =
  | 'unknown-workload'
  /** Stages change one step at a time. */
  | 'not-adjacent'
  /** Going back from `complete` is a backfill the other way. */
  | 'no-return'
  /** The mirror lacks effects; `details` says which. */
  | 'not-clean'
  /** The flip did not finish in time; nothing changed. */
  | 'deadline'
  /** Another change of stage is under way. */
  | 'busy'
  /** Not all gates are open; `details` says which. */
  | 'gates-closed'
  /** Something forbids the change: percent, a shared target, commands that the target lacks, a frozen authority. */
  | 'refused';

/** So many keys are named where a change is refused for them, or lost them. */
export const LISTED = 20;

/** A stage was not changed; the message says why and what to do next. */
export class StageError extends Error {
  override readonly name = 'StageError';
  constructor(
    readonly code: StageErrorCode,
    message: string,
    readonly details?: unknown,
  ) {
    super(message);
  }
}

/** A step of a runbook that changes something, which an operator ran or undid, for the history. */
export interface Note {
  readonly runbook: string;
  readonly step: string;
  readonly kind: 'run' | 'undo';
  readonly command: string;
  /** Null where it was ended, or could not be started. */
  readonly exit: number | null;
  /** Whether it did what the runbook expects. */
  readonly held: boolean;
  readonly by?: string;
}

/** What the admin API needs of a shard. */
export interface ShardControl {
  readonly name: string;
  snapshot(): ShardSnapshot;
  /** The same and more, for metrics; waits for nobody. */
  scrape(): ScrapedShard;
  /** Listening, and every authority it needs is up. */
  ready(): boolean;
  /** @throws {StageError} with nothing changed */
  changeStage(request: StageRequest): Promise<StageChange>;
  /** @throws {StageError} with nothing changed */
  promote(request: PromoteRequest): Promise<Promotion>;
  /** @throws {StageError} */
  rollback(request: RollbackRequest): Promise<Rollback>;
  /** What it has to show for the gates of its workloads; changes nothing. */
  evidence(): Promise<ShardEvidence>;
  /** How it fared since that moment, in ms since 1970. */
  series(since: number): SeriesSnapshot;
  /** The last changes, oldest first. */
  history(): Promise<readonly HistoryEvent[]>;
  /** Writes into the history what was done, and changes nothing. @throws {Error} where the disk does not take it */
  note(note: Note): Promise<void>;
  /** Takes authorities that came back as other processes as they are, if they are these. @throws {TrustError} with nothing changed */
  acceptAuthority(runIds: readonly string[] | null): Promise<Side[]>;
  /** Begins a backfill or a verification; `by`: who asked for it, for the history of what it deletes. @throws {JobError} */
  startJob(request: JobRequest, by?: string): JobSnapshot;
  /** Stops it where it is. @throws {JobError} */
  stopJob(): JobSnapshot;
}

/** A running shard. */
export interface Shard extends ShardControl {
  /** Waits until the mirrors have confirmed what they were told up to now; the keys of the database that are not in doubt then. */
  settled<T extends { readonly key: Buffer }>(db: number, keys: readonly T[]): Promise<readonly T[]>;
  /** The port it listens on. */
  readonly port: number;
  /** Takes no new clients, answers what is in flight, waits for the mirror; false where `timeoutMs` ran out. */
  drain(timeoutMs: number): Promise<boolean>;
  /** Closes everything at once; safe after `drain` and twice. */
  stop(): Promise<void>;
  /** Takes over what a plan that passed `checkReload` may change in a running process. */
  reload(plan: Plan): void;
}

export interface ShardOptions {
  readonly plan: Plan;
  readonly shard: ShardPlan;
  readonly logger: Logger;
  readonly ledger: Ledger;
  /** Under which keys are hashed where they are redacted. */
  readonly hashKey: Buffer;
  /** Holds the effective stages: `state.current.workloads`. */
  readonly state: StateStore;
  /** The shard is this process's as long as it says so. */
  readonly ownership: Ownership;
  /** Why what the last owner left in doubt is not known here: every workload that writes twice is suspect; null where it is known. */
  readonly doubt: string | null;
  /** Whether both servers are believed to hold the same where there is no state yet. */
  readonly alike: boolean;
  /** What may happen to keys of the target that the shard did not write, where the first stage is beyond off. */
  readonly consent: Consent;
  /** The shards of this process, once they run. */
  readonly shards: () => readonly Shard[];
  /** Milliseconds for which an address that is taken is tried again: who handed over may still have it. */
  readonly listenMs: number;
}
