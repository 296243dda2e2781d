/**
 * What a shard reports about itself at one moment. The data path counts in plain numbers and fills this in when asked;
 * metrics, the status page and the verdict only read it. Counts are totals since the start of the process.
 *
 * Room: telemetry: what people watch: counters, metrics, ledger, log.
 * Called by: every room after it.
 * Calls: text, io, route, plan, command, compare.
 */
import type { CountingKind } from '../command/counting-kind.js';
import type { Side, Stage, StagePoint } from '../route/stage.js';
import type { WorkloadClass } from '../plan/plan.js';

export interface ServerSnapshot {
  /** Redacted. */
  readonly url: string;
  /** Null until the first connection. */
  readonly runId: string | null;
  /** Replication ID: which history its data belong to; null until the first connection, or where it does not tell. */
  readonly replId: string | null;
  /** `master`, `slave` or `active-replica`; null until the first connection. */
  readonly role: string | null;
  /** Redis version that the server reports (KeyDB 6.3.4 says 6.3.4); null until the first connection. */
  readonly version: string | null;
  /**
   * Whether the server answers; null if no workload uses it, so that it is not checked: the target while all are `off`,
   * the source once all are `complete`.
   */
  readonly up: boolean | null;
  /** Why it is not used although it answers; null if it may be. */
  readonly problem: string | null;
  /** Databases that it does not let the proxy write to as a mirror, with its own error: their keys are suspect. */
  readonly refusedDatabases: readonly { readonly db: number; readonly why: string }[];
  /** It has refused a write because its memory is full, just now. */
  readonly full: boolean;
  /** Keys that it has evicted, and expired, since the proxy started, while keys were written twice. */
  readonly evicted: number;
  readonly expired: number;
  /** When an eviction was seen last (ISO 8601); null if none was. */
  readonly evictedAt: string | null;
  /** It has evicted keys in the last minute. */
  readonly evicting: boolean;
  /** For how long it has not answered, in ms; 0 where it does, or where no client is sent to it. */
  readonly silentMs: number;
  /** Connections that were closed because they brought nothing while the server answered on others. */
  readonly silentConnections: number;
}

/** Microseconds. */
export interface LatencySnapshot {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly count: number;
}

export interface MirrorSnapshot {
  /** Age of the oldest effect that the mirror has not confirmed; 0 where none waits. */
  readonly lagMs: number;
  readonly queuedBytes: number;
  readonly queuedEffects: number;
  /** Effects dropped, whose keys became suspects. */
  readonly dropped: number;
  readonly connected: boolean;
}

/** Hashes whose fields expire, and which the mirror has without that. */
export interface FieldTtlsSnapshot {
  /** Keys that have such fields, as far as is known. */
  readonly keys: number;
  /** TTLs of fields that copies have left out since the start: again with each copy of a key. */
  readonly stripped: number;
}

export interface SuspectsSnapshot {
  /** Keys that are suspect now. */
  readonly total: number;
  readonly byReason: Readonly<Record<string, number>>;
}

/** What the proxy does with a workload by itself. */
export interface AutomaticSnapshot {
  /** Whether the plan has a guard for it, and whether it has a rollout. */
  readonly guard: boolean;
  readonly rollout: boolean;
  /** The limits of the guard that it exceeds now, with what was seen. */
  readonly exceeds: readonly string[];
  /** Why it is not promoted by itself, nor taken back unless an operator has `paused` it; null if it may be. */
  readonly hold: {
    readonly why: 'paused' | 'rolled-back' | 'stopped' | 'failover';
    /** ISO 8601. */
    readonly at: string;
    readonly reason: string;
    readonly by: string | null;
  } | null;
}

export interface WorkloadSnapshot {
  readonly name: string;
  readonly class: WorkloadClass;
  readonly stage: Stage;
  readonly percent: number;
  readonly operations: number;
  readonly reads: number;
  readonly writes: number;
  readonly compared: number;
  readonly matched: number;
  readonly allowed: number;
  readonly mismatches: number;
  readonly inconclusive: number;
  readonly suspects: number;
  /** Why every key of the workload is suspect; null if that is not so. */
  readonly suspect: string | null;
  /**
   * The mirror has confirmed every effect that was acknowledged, no key is suspect, and no difference waits for its
   * verdict.
   */
  readonly clean: boolean;
  /** Writes on it although another region is its one writer: refused, or only counted, as the plan says. */
  readonly secondWriterWrites: number;
  /** By form: calls of what only one of the two servers supports. */
  readonly unsupported: Readonly<Record<string, number>>;
  /** By form or command: errors that clients got and the other server would not have given. */
  readonly newErrors: Readonly<Record<string, number>>;
  readonly byCommand?: Readonly<Record<string, number>>;
  readonly automatic: AutomaticSnapshot;
}

/** Commands on keys of one prefix whose result depends on what the keys held before. */
export interface CountingSnapshot {
  readonly workload: string;
  readonly kind: CountingKind;
  /** Such as `rl:user:*`. */
  readonly prefix: string;
  /** By name, since the start; estimated where there are more than 100 of a kind in a second. */
  readonly commands: Readonly<Record<string, number>>;
  /** Over the last one to two minutes. */
  readonly perSecond: number;
}

export interface JobFailure {
  readonly db: number;
  /** Redacted. */
  readonly key: string;
  readonly why: string;
}

export interface JobDifference {
  readonly db: number;
  /** Redacted. */
  readonly key: string;
  /** How it differs: the mirror lacks it (`missing`), it alone has it (`extra`), another `type`, `value` or `ttl`. */
  readonly kind: string;
}

/** A backfill, a verification, or what is given back to an authority. */
export interface JobSnapshot {
  readonly kind: 'backfill' | 'verify' | 'restore';
  /** Whether what differs is copied. */
  readonly repair: boolean;
  /** Whether keys are only counted. */
  readonly dryRun: boolean;
  /** Percent of the keys. */
  readonly sample: number;
  /** Begun by the proxy itself. */
  readonly automatic: boolean;
  readonly workloads: readonly string[];
  readonly state: 'running' | 'done' | 'stopped' | 'failed';
  /** Why it waits, or has ended early; null if it does not. */
  readonly reason: string | null;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly endedAt: string | null;
  /**
   * Keys of the authorities, those of other workloads among them: as counted when the job began, and at least
   * `scanned`. Of a job that is done, `scanned`.
   */
  readonly total: number;
  /** How many of them the scan has passed. */
  readonly scanned: number;
  /** Of all keys that the scan has read, those of the job's workloads. */
  readonly seen: number;
  readonly copied: number;
  readonly verified: number;
  /** The same by workload: one that is not there had no key. */
  readonly verifiedBy: Readonly<Record<string, number>>;
  readonly repaired: number;
  /**
   * Keys of the mirror that the kit is not known to have written, and that a copy has replaced; a dry run counts what
   * would be.
   */
  readonly overwritten: number;
  /** Keys that the authority does not have: deleted from the mirror, or kept, for the kit did not write them. */
  readonly deleted: number;
  readonly keptForeign: number;
  /** Keys that could not be copied, or not be compared. */
  readonly failed: number;
  /** Keys that differ, and of which the proxy knew already. */
  readonly unsure: number;
  readonly bytes: number;
  /**
   * By kind: `missing`, `extra`, `foreign`, `type`, `value`, `ttl`; `contested`, `undeclared` and `unowned` where
   * shards share a target.
   */
  readonly differences: Readonly<Record<string, number>>;
  /**
   * Keys that it came by, and which are not its to judge: `no-workload`, `other-shard`. `miscounted`: streams that
   * count their own entries wrongly, copied as they are served.
   */
  readonly listed: Readonly<Record<string, number>>;
  readonly keysPerSecond: number;
  /** Null if it is unknown. */
  readonly etaSeconds: number | null;
  /** The first of those that failed. */
  readonly failures: readonly JobFailure[];
  /** The first of those that differ. */
  readonly examples: readonly JobDifference[];
}

/** An authority that does not answer, or the last one that did not. */
export interface OutageSnapshot {
  readonly side: Side;
  /** Redacted. */
  readonly url: string;
  /** ISO 8601. */
  readonly since: string;
  /** When it answered again, or no client was sent to it any more; null while they wait. */
  readonly endedAt: string | null;
  /** Those of which it was the authority. */
  readonly workloads: readonly OutageWorkload[];
}

export interface OutageWorkload {
  readonly name: string;
  readonly policy: 'manual' | 'automatic';
  readonly from: StagePoint;
  /** Where its clients were sent; null if they get an error. */
  readonly movedTo: StagePoint | null;
  /** Why they were not sent to the mirror; null if they were. */
  readonly why: string | null;
  /** What can be done. */
  readonly next: string;
  /** What can be done instead, and its command for `shadow-compare`, in the present stage; absent if nothing can. */
  readonly instead?: { readonly text: string; readonly command: string };
  /** Keys of writes that were in flight: their result is unknown. */
  readonly unanswered: number;
  /** The first of them, redacted. */
  readonly keys: readonly string[];
}

/** Errors of a client that may not log in, or may not run a command. */
export const ACCESS_ERRORS = ['NOAUTH', 'WRONGPASS', 'NOPERM'] as const;

/**
 * Errors that clients were answered with, since the start: by the server that was their authority, by code such as
 * `NOAUTH`.
 */
export type ClientErrorsSnapshot = Readonly<Record<Side, Readonly<Record<string, number>>>>;

/** Errors of one kind that one command of one client was answered with. */
export interface ClientErrorOrigin {
  readonly side: Side;
  readonly kind: string;
  /** As people write it: `client setinfo`; `unknown command` where neither server has its first word. */
  readonly command: string;
  /** Its name (CLIENT SETNAME), or the host that it came from. */
  readonly client: string;
  readonly count: number;
}

/** Why every key of a workload is suspect until a backfill has copied them. */
export const NOT_COPIED = 'keys from before the dual write are not copied yet';

/** Keys that one command has to itself, and the commands that wait for them. */
export interface ReservationsSnapshot {
  /** How many reservations there are, by their age. */
  readonly byAge: Readonly<Record<(typeof RESERVATION_AGES)[number], number>>;
  /** Age of the oldest, in ms; 0 where there is none. */
  readonly oldestMs: number;
  /** For how long the command has waited that has waited longest for its keys, in ms; 0 where none waits. */
  readonly longestWaitMs: number;
}

export const RESERVATION_AGES = ['under-1s', 'under-10s', 'older'] as const;
/** A reservation that is older than this, in ms, has outlived its operation, or its server does not answer. */
export const OLD_RESERVATION_MS = 10_000;

/** A shard of this process that is not started yet, and why. */
export interface NotStarted {
  readonly shard: string;
  readonly problem: string;
}

/** The users of the source have no writes while the target answers clients. */
export interface FenceSnapshot {
  /** Since when (ISO 8601); null if it is wanted, and is not there. */
  readonly since: string | null;
  /** Users that have lost their writes. */
  readonly users: readonly string[];
  /** Why it is not as the stages want it; null if it is. */
  readonly problem: string | null;
}

export interface ShardSnapshot {
  readonly name: string;
  readonly source: ServerSnapshot;
  readonly target: ServerSnapshot;
  /** Connected now. */
  readonly clients: number;
  /** Memory that clients take: unread replies, unfinished commands, queued transactions. */
  readonly clientBytes: number;
  /** Clients that the proxy has closed, or not taken, by the limit that it was for. */
  readonly clientsClosed: Readonly<Record<string, number>>;
  /** Replies of a server at which the proxy failed: it threw. What they may have changed is suspect. */
  readonly replyFailures: number;
  /** Commands of clients that were answered. */
  readonly operations: number;
  /** Pairs of replies: `matched` + the sum of `allowed` + the sum of `mismatches`. */
  readonly compared: number;
  readonly matched: number;
  /** By rule. */
  readonly allowed: Readonly<Record<string, number>>;
  /** By kind. */
  readonly mismatches: Readonly<Record<string, number>>;
  /** By reason: inconclusive pairs. */
  readonly inconclusive: Readonly<Record<string, number>>;
  /** Differences about which the servers are being asked: they have no verdict yet. */
  readonly undecided: number;
  /**
   * By form, such as `lmpop` and `expire GT`: calls of what only one of the two servers supports; without what breaks
   * no client.
   */
  readonly unsupported: Readonly<Record<string, number>>;
  readonly crossWorkload: { readonly split: number; readonly refused: number };
  /** Commands on keys that are another shard's, where several share a target: the source alone answers them. */
  readonly otherShardCommands: number;
  /** Reads that a replica of the source answered: of workloads in `off`, where the plan allows it. */
  readonly replicaReads: number;
  /** Commands that the authority refused, and that were therefore not repeated. */
  readonly unmirroredErrors: number;
  /** `PROXY` is what the proxy itself refused. */
  readonly clientErrors: ClientErrorsSnapshot;
  /** Of which commands and clients, the most frequent first. */
  readonly clientErrorOrigins: readonly ClientErrorOrigin[];
  readonly latency: { readonly source: LatencySnapshot; readonly target: LatencySnapshot };
  /** By how much the target's clock is ahead of the source's; 0 where they agree. */
  readonly clockAheadMs: number;
  readonly mirror: MirrorSnapshot;
  readonly reservations: ReservationsSnapshot;
  readonly suspects: SuspectsSnapshot;
  /** Null unless the plan says `hashFieldTtl: strip`. */
  readonly fieldTtls: FieldTtlsSnapshot | null;
  readonly workloads: readonly WorkloadSnapshot[];
  /** Changes of stage that were carried out. */
  readonly flips: number;
  /** Why repairs and deletes are frozen; null if they are not. */
  readonly frozen: string | null;
  /** Null if the source is not fenced, and need not be. */
  readonly fence: FenceSnapshot | null;
  /** Slots of a cluster that left their master, in words; empty if each is in its place, or there is no cluster. */
  readonly movedSlots: string;
  /** Keys that are counted in, the most frequent first, whatever class the plan gives them. */
  readonly counting: readonly CountingSnapshot[];
  /** Null if every authority has answered since the start. */
  readonly outage: OutageSnapshot | null;
  /** Workloads whose clients were sent to the mirror because their authority was lost. */
  readonly failovers: number;
  /** The backfill or verification that is under way, or was the last; null if there was none. */
  readonly job: JobSnapshot | null;
  /** The last job of each other kind since the proxy started. */
  readonly earlierJobs: readonly JobSnapshot[];
  readonly uptimeMs: number;
}

/**
 * What a shard reports besides to a scrape. No server is asked for it while they wait, so what only servers tell is
 * up to a minute old, or null.
 */
export interface WatchSnapshot {
  /** Whether the process holds the shard's lease there. */
  readonly leases: Readonly<Record<Side, boolean>>;
  /** Bound of the effects that wait for the mirror. */
  readonly queueLimitBytes: number;
  /** Of each workload, what blocks its next stage; empty behind the last. */
  readonly workloads: readonly WorkloadWatch[];
  /** Of the workloads that count, whether they are safe on the target's nodes. */
  readonly guard: readonly { readonly workload: string; readonly verdict: string }[];
  /** Clients that are connected to the source bypassing the proxy; null if it does not list them. */
  readonly bypassing: number | null;
  /** Writes that the source has run at least and the proxy did not send, since the start. */
  readonly passedWrites: number;
  /** Whether the source's counts of writes can be compared with the proxy's now. */
  readonly passedWritesKnown: boolean;
  /** Of the last minute; zeros where nothing was answered. */
  readonly latency: Readonly<Record<Side, LatencySnapshot>>;
  /** When they end, in ms since 1970, by whose they are. */
  readonly certificates: Readonly<Record<string, number>>;
}

export interface WorkloadWatch {
  readonly workload: string;
  /** By gate: `yes`, `no` or `unknown`. */
  readonly gates: Readonly<Record<string, string>>;
  /** Both in ms since 1970: when it entered its stage, and when all its keys were verified last; null if never. */
  readonly since: number;
  readonly verifiedAt: number | null;
  /** Of its commands in the last minute; zeros where nothing was answered. */
  readonly latency: Readonly<Record<Side, LatencySnapshot>>;
}

/** A receiver of notifications. Counts are totals since the start of the process. */
export interface ReceiverSnapshot {
  readonly name: string;
  /** Notifications that wait. */
  readonly queued: number;
  /** Those that it accepted. */
  readonly sent: number;
  /** Attempts that failed, and were repeated. */
  readonly failedAttempts: number;
  /** The queue was full, they became too old, or the receiver refused them. */
  readonly dropped: Readonly<Record<'full' | 'expired' | 'refused', number>>;
}

/** All that a scrape gets of a shard. */
export interface ScrapedShard extends ShardSnapshot {
  readonly watch: WatchSnapshot;
}

/** The sum of a table of counts. */
export const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((a, b) => a + b, 0);
