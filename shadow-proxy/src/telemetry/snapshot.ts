/**
 * What a shard reports about itself at one time. The data path counts in plain numbers, and fills this in when asked.
 * Metrics, the status page and the verdict only read it. Counts are totals since the start of the process.
 *
 * Room: telemetry: what people watch: counters, metrics, ledger, log.
 * Called by: every room after it.
 * Calls: text, io, route, plan, command, compare.
 */
import type { CountingKind } from '../command/counting-kind.js';
import type { Side, Stage, StagePoint } from '../route/stage.js';
import type { WorkloadClass } from '../plan/plan.js';

export interface ServerSnapshot {
  /** The URL without its password. */
  readonly url: string;
  /** Null until the first connection. */
  readonly runId: string | null;
  /**
   * The replication ID, which identifies the history of the data; null until the first connection, or if the server
   * does not show it.
   */
  readonly replId: string | null;
  /** `master`, `slave` or `active-replica`; null until the first connection. */
  readonly role: string | null;
  /** Redis version that the server reports (KeyDB 6.3.4 says 6.3.4); null until the first connection. */
  readonly version: string | null;
  /**
   * Whether the server answers. Null if no workload uses it, so that it is not checked: the target while all are `off`,
   * the source once all are `complete`.
   */
  readonly up: boolean | null;
  /** Why the server is not used although it answers; null if it may be used. */
  readonly problem: string | null;
  /** Databases that refuse the proxy's writes as a mirror, with the server's own error: their keys are suspect. */
  readonly refusedDatabases: readonly { readonly db: number; readonly why: string }[];
  /** Whether the server has just refused a write because its memory is full. */
  readonly full: boolean;
  /**
   * Keys that the server has evicted, and expired, while keys were written to both servers, since the proxy started.
   */
  readonly evicted: number;
  readonly expired: number;
  /** When an eviction was last seen (ISO 8601); null if never. */
  readonly evictedAt: string | null;
  /** Whether the server has evicted keys in the last minute. */
  readonly evicting: boolean;
  /** How long the server has not answered, in ms; 0 if it answers, or no client is sent to it. */
  readonly silentMs: number;
  /** Connections that were closed because nothing arrived on them while the server answered on others. */
  readonly silentConnections: number;
}

/** All in microseconds. */
export interface LatencySnapshot {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly count: number;
}

export interface MirrorSnapshot {
  /** Age of the oldest effect that the mirror has not confirmed, in ms; 0 if none waits. */
  readonly lagMs: number;
  readonly queuedBytes: number;
  readonly queuedEffects: number;
  /** Effects that were dropped; their keys became suspects. */
  readonly dropped: number;
  readonly connected: boolean;
}

/** Hashes whose fields have a TTL at the source and none on the mirror. */
export interface FieldTtlsSnapshot {
  /** Number of keys that are known to have such fields. */
  readonly keys: number;
  /** TTLs of fields that copies have left out since the start; each copy of a key counts. */
  readonly stripped: number;
}

export interface SuspectsSnapshot {
  /** Keys that are suspect now. */
  readonly total: number;
  readonly byReason: Readonly<Record<string, number>>;
}

/** Automatic moves of a workload. */
export interface AutomaticSnapshot {
  /** Whether the plan has a guard, and a rollout, for the workload. */
  readonly guard: boolean;
  readonly rollout: boolean;
  /** The guard's limits that the workload exceeds now, with the observed values. */
  readonly exceeds: readonly string[];
  /**
   * Why the workload is not promoted automatically. With `paused`, the guard may still move it back. Null if it may be
   * promoted.
   */
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
  /** Share of the reads that are compared while the source answers, in percent; absent if all are. */
  readonly shadowReads?: number;
  readonly compared: number;
  readonly matched: number;
  readonly allowed: number;
  readonly mismatches: number;
  readonly inconclusive: number;
  readonly suspects: number;
  /** Why every key of the workload is suspect; null if that is not so. */
  readonly suspect: string | null;
  /**
   * Whether the mirror has confirmed every acknowledged effect, no key is suspect, and no difference waits for its
   * verdict.
   */
  readonly clean: boolean;
  /**
   * Writes by clients although only another region may write the workload; the plan says whether they are refused or
   * only counted.
   */
  readonly secondWriterWrites: number;
  /** Calls of forms that only one of the two servers supports, by form. */
  readonly unsupported: Readonly<Record<string, number>>;
  /** Errors that clients got and that the other server would not have given, by form or command. */
  readonly newErrors: Readonly<Record<string, number>>;
  readonly byCommand?: Readonly<Record<string, number>>;
  readonly automatic: AutomaticSnapshot;
}

/** Commands on keys of one prefix whose result depends on the earlier value. */
export interface CountingSnapshot {
  readonly workload: string;
  readonly kind: CountingKind;
  /** The prefix, such as `rl:user:*`. */
  readonly prefix: string;
  /** Number of commands since the start, by name; estimated if there are more than 100 of a kind in a second. */
  readonly commands: Readonly<Record<string, number>>;
  /** The rate over the last one to two minutes. */
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
  /**
   * The kind of difference: the mirror lacks the key (`missing`), only the mirror has it (`extra`), or another `type`,
   * `value` or `ttl`.
   */
  readonly kind: string;
}

/** What a job may take. Null: not limited; absent: as the plan says, or not limited where this is what holds. */
export interface JobLimits {
  readonly keysPerSecond?: number | null;
  readonly bytesPerSecond?: number | null;
  /** The highest 99th percentile of the authority's replies, in ms. */
  readonly maxP99Ms?: number | null;
  /** The highest 99th percentile of the mirror's replies, in ms. */
  readonly maxMirrorP99Ms?: number | null;
  /** How many bytes a replica of the mirror may lack. */
  readonly maxReplicaLagBytes?: number | null;
}

/** An operator lets a job wait. */
export interface JobPause {
  /** ISO 8601. */
  readonly since: string;
  readonly by: string | null;
  readonly reason: string | null;
}

/** A backfill, a verification, or a restore to an authority. */
export interface JobSnapshot {
  readonly kind: 'backfill' | 'verify' | 'restore';
  /** Whether differing keys are copied. */
  readonly repair: boolean;
  /** Whether keys are only counted. */
  readonly dryRun: boolean;
  /** Percent of the keys. */
  readonly sample: number;
  /** Whether the proxy itself started the job. */
  readonly automatic: boolean;
  readonly workloads: readonly string[];
  readonly state: 'running' | 'done' | 'stopped' | 'failed';
  /** Why the job waits, or has ended early; null if neither. */
  readonly reason: string | null;
  /** What holds now. */
  readonly limits: JobLimits;
  /** Since when an operator lets it wait; null where none does. */
  readonly paused: JobPause | null;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly endedAt: string | null;
  /**
   * Number of keys of the authorities, including those of other workloads: as counted when the job began, and at least
   * `scanned`. For a finished job, `scanned`.
   */
  readonly total: number;
  /** How many of them the scan has passed. */
  readonly scanned: number;
  /** Keys of the job's workloads among all keys that the scan has read. */
  readonly seen: number;
  readonly copied: number;
  readonly verified: number;
  /** Number of compared keys, by workload; a workload that is missing here had no key. */
  readonly verifiedBy: Readonly<Record<string, number>>;
  readonly repaired: number;
  /**
   * Keys of the mirror that a copy has replaced, and that the kit is not known to have written; a dry run counts what
   * would happen.
   */
  readonly overwritten: number;
  /** Keys that the authority lacks: deleted from the mirror, or kept because the kit did not write them. */
  readonly deleted: number;
  readonly keptForeign: number;
  /** Keys that could not be copied or compared. */
  readonly failed: number;
  /** Keys that differ and were already known to be suspect. */
  readonly unsure: number;
  readonly bytes: number;
  /**
   * Differences by kind: `missing`, `extra`, `foreign`, `type`, `value`, `ttl`; also `contested`, `undeclared` and
   * `unowned` if shards share a target.
   */
  readonly differences: Readonly<Record<string, number>>;
  /**
   * Keys that the scan met and that are not the job's: `no-workload`, `other-shard`. `miscounted`: streams that count
   * their own entries wrongly, copied as they are.
   */
  readonly listed: Readonly<Record<string, number>>;
  readonly keysPerSecond: number;
  /** Null if it is unknown. */
  readonly etaSeconds: number | null;
  /** The first failures. */
  readonly failures: readonly JobFailure[];
  /** The first differences. */
  readonly examples: readonly JobDifference[];
}

/** An authority that does not answer, or the last one that did not. */
export interface OutageSnapshot {
  readonly side: Side;
  /** Redacted. */
  readonly url: string;
  /** ISO 8601. */
  readonly since: string;
  /** When the server answered again, or clients were no longer sent to it; null while they wait. */
  readonly endedAt: string | null;
  /** The workloads of which the server was the authority. */
  readonly workloads: readonly OutageWorkload[];
}

export interface OutageWorkload {
  readonly name: string;
  readonly policy: 'manual' | 'automatic';
  readonly from: StagePoint;
  /** The stage to which the clients were moved; null if they get an error. */
  readonly movedTo: StagePoint | null;
  /** Why the clients were not sent to the mirror; null if they were. */
  readonly why: string | null;
  /** What the operator can do. */
  readonly next: string;
  /**
   * An alternative for the operator, and its command for `shadow-compare`, valid in the present stage; absent if there
   * is none.
   */
  readonly instead?: { readonly text: string; readonly command: string };
  /** Keys of writes that were in flight: the result of these writes is unknown. */
  readonly unanswered: number;
  /** The first of these keys, redacted. */
  readonly keys: readonly string[];
}

/** Errors for a client that may not log in, or may not run a command. */
export const ACCESS_ERRORS = ['NOAUTH', 'WRONGPASS', 'NOPERM'] as const;

/** Errors that clients got since the start, by the server that was the authority, and by code such as `NOAUTH`. */
export type ClientErrorsSnapshot = Readonly<Record<Side, Readonly<Record<string, number>>>>;

/** Errors of one kind for one command of one client. */
export interface ClientErrorOrigin {
  readonly side: Side;
  readonly kind: string;
  /** As people write it: `client setinfo`; `unknown command` if neither server knows its first word. */
  readonly command: string;
  /** The client's name (CLIENT SETNAME), or its host. */
  readonly client: string;
  readonly count: number;
}

/** Why every key of a workload is suspect until a backfill has copied the keys. */
export const NOT_COPIED = 'keys from before the dual write are not copied yet';

/** Reservations: keys that one command has locked, and the commands that wait for them. */
export interface ReservationsSnapshot {
  /** Number of reservations by age. */
  readonly byAge: Readonly<Record<(typeof RESERVATION_AGES)[number], number>>;
  /** Age of the oldest reservation, in ms; 0 if there is none. */
  readonly oldestMs: number;
  /** How long the longest-waiting command has waited for its keys, in ms; 0 if none waits. */
  readonly longestWaitMs: number;
}

export const RESERVATION_AGES = ['under-1s', 'under-10s', 'older'] as const;
/** A reservation that is older than this, in ms, has outlived its command, or its server does not answer. */
export const OLD_RESERVATION_MS = 10_000;

/** A shard of this process that is not started yet, and why. */
export interface NotStarted {
  readonly shard: string;
  readonly problem: string;
}

/** The fence: the users of the source have no writes while the target answers clients. */
export interface FenceSnapshot {
  /** Since when (ISO 8601); null if the fence is wanted but not raised. */
  readonly since: string | null;
  /** Users that have lost their writes. */
  readonly users: readonly string[];
  /** Why the fence is not as the stages want it; null if it is. */
  readonly problem: string | null;
}

export interface ShardSnapshot {
  readonly name: string;
  readonly source: ServerSnapshot;
  readonly target: ServerSnapshot;
  /** Clients that are connected now. */
  readonly clients: number;
  /** Bytes of memory of clients: unread replies, unfinished commands, queued transactions. */
  readonly clientBytes: number;
  /** Clients that the proxy has closed or refused, by the limit that was exceeded. */
  readonly clientsClosed: Readonly<Record<string, number>>;
  /**
   * Replies of a server that the proxy failed to handle, because it threw. Keys that they may have changed are suspect.
   */
  readonly replyFailures: number;
  /** Commands of clients that were answered. */
  readonly operations: number;
  /** Pairs of replies: `matched` + the sum of `allowed` + the sum of `mismatches`. */
  readonly compared: number;
  readonly matched: number;
  /** Allowed differences, by rule. */
  readonly allowed: Readonly<Record<string, number>>;
  /** Mismatches by kind. */
  readonly mismatches: Readonly<Record<string, number>>;
  /** Inconclusive pairs, by reason. */
  readonly inconclusive: Readonly<Record<string, number>>;
  /** Differences without a verdict yet, about which the servers are being asked. */
  readonly undecided: number;
  /**
   * Calls of forms that only one of the two servers supports, such as `lmpop` and `expire GT`; without forms that are
   * harmless for clients.
   */
  readonly unsupported: Readonly<Record<string, number>>;
  readonly crossWorkload: { readonly split: number; readonly refused: number };
  /** Commands on keys of another shard, if several share a target: only the source answers them. */
  readonly otherShardCommands: number;
  /** Reads that a replica of the source answered: for workloads in `off`, if the plan allows it. */
  readonly replicaReads: number;
  /** Commands that the authority refused, and that were therefore not replicated. */
  readonly unmirroredErrors: number;
  /** `PROXY` counts what the proxy itself refused. */
  readonly clientErrors: ClientErrorsSnapshot;
  /** The commands and clients with the most errors, the most frequent first. */
  readonly clientErrorOrigins: readonly ClientErrorOrigin[];
  readonly latency: { readonly source: LatencySnapshot; readonly target: LatencySnapshot };
  /** How far the target's clock is ahead of the source's, in ms; 0 if they agree. */
  readonly clockAheadMs: number;
  readonly mirror: MirrorSnapshot;
  readonly reservations: ReservationsSnapshot;
  readonly suspects: SuspectsSnapshot;
  /** Null unless the plan says `hashFieldTtl: strip`. */
  readonly fieldTtls: FieldTtlsSnapshot | null;
  readonly workloads: readonly WorkloadSnapshot[];
  /** Stage changes that were carried out. */
  readonly flips: number;
  /** Why repairs and deletes are frozen; null if they are not. */
  readonly frozen: string | null;
  /** Null if the source is not fenced, and need not be. */
  readonly fence: FenceSnapshot | null;
  /** Slots of a cluster that left their master, in words; empty if all are in place, or there is no cluster. */
  readonly movedSlots: string;
  /** Prefixes of keys that are used as counters, the most frequent first, whatever class the plan gives them. */
  readonly counting: readonly CountingSnapshot[];
  /** Null if every authority has answered since the start. */
  readonly outage: OutageSnapshot | null;
  /** Workloads whose clients were sent to the mirror because their authority was down. */
  readonly failovers: number;
  /** The present or last backfill or verification; null if there was none. */
  readonly job: JobSnapshot | null;
  /** The last job of each other kind since the proxy started. */
  readonly earlierJobs: readonly JobSnapshot[];
  readonly uptimeMs: number;
}

/**
 * What a shard reports to a scrape in addition. A scrape does not wait for servers, so facts that only servers know are
 * up to a minute old, or null.
 */
export interface WatchSnapshot {
  /** Whether the process holds the shard's lease at each server. */
  readonly leases: Readonly<Record<Side, boolean>>;
  /** Maximum bytes of effects that wait for the mirror. */
  readonly queueLimitBytes: number;
  /** What blocks the next stage, for each workload; empty after the last stage. */
  readonly workloads: readonly WorkloadWatch[];
  /** For the workloads that are counters, whether they are safe on the target's nodes. */
  readonly guard: readonly { readonly workload: string; readonly verdict: string }[];
  /** Clients that are connected to the source bypassing the proxy; null if the source does not list them. */
  readonly bypassing: number | null;
  /** Minimum number of writes since the start that the source has run and the proxy did not send. */
  readonly passedWrites: number;
  /** Whether the source's counts of writes can be compared with the proxy's now. */
  readonly passedWritesKnown: boolean;
  /** Latencies of the last minute; zeros if nothing was answered. */
  readonly latency: Readonly<Record<Side, LatencySnapshot>>;
  /** Expiry times of the certificates, in ms since 1970, by owner. */
  readonly certificates: Readonly<Record<string, number>>;
}

export interface WorkloadWatch {
  readonly workload: string;
  /** The answer of each gate: `yes`, `no` or `unknown`. */
  readonly gates: Readonly<Record<string, string>>;
  /**
   * Both in ms since 1970: when the workload entered its stage, and when all its keys were last verified; null if
   * never.
   */
  readonly since: number;
  readonly verifiedAt: number | null;
  /** Latencies of the workload's commands in the last minute; zeros if nothing was answered. */
  readonly latency: Readonly<Record<Side, LatencySnapshot>>;
}

/** A receiver of notifications. Counts are totals since the start of the process. */
export interface ReceiverSnapshot {
  readonly name: string;
  /** Notifications that wait. */
  readonly queued: number;
  /** Notifications that the receiver accepted. */
  readonly sent: number;
  /** Attempts that failed, and were repeated. */
  readonly failedAttempts: number;
  /** Dropped notifications: the queue was full, they became too old, or the receiver refused them. */
  readonly dropped: Readonly<Record<'full' | 'expired' | 'refused', number>>;
}

/** Everything that a scrape gets from a shard. */
export interface ScrapedShard extends ShardSnapshot {
  readonly watch: WatchSnapshot;
}

/** The sum of a table of counts. */
export const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((a, b) => a + b, 0);
