/**
 * The plan as the proxy works with it: checked, every default filled in, secrets and certificates read.
 * `load.ts` makes it from a file whose shape `schema.ts` defines.
 *
 * Room: plan: the plan file: schema, checks, defaults, reload.
 * Called by: every room after it.
 * Calls: text, route.
 */
import type { Owns, SlotRange } from '../route/owner.js';
import type { StagePoint } from '../route/stage.js';
import type { Address, Endpoint, Listen, ServerEndpoint } from './endpoint.js';

/**
 * - `plain`: each counter is one key.
 * - `library`: the applications use the counters package, whose writers own their keys.
 * - `per-region`: the proxy rewrites plain counters to one key for each region.
 */
export const COUNTER_LAYOUTS = ['plain', 'library', 'per-region'] as const;
export type CounterLayout = (typeof COUNTER_LAYOUTS)[number];

export const WORKLOAD_CLASSES = ['read-mostly', 'counter', 'leaderboard', 'critical', 'general'] as const;
export type WorkloadClass = (typeof WORKLOAD_CLASSES)[number];

export const LANE_NAMES = ['plain', 'clients'] as const;

/** Events that receivers can be notified of. */
export const NOTIFY_EVENTS = [
  'stage',
  'guard',
  'gate',
  'mismatch',
  'suspects',
  'frozen',
  'outage',
  'failover',
  'takeover',
] as const;
export type NotifyEvent = (typeof NOTIFY_EVENTS)[number];

/** Settings of the servers that clients notice if they differ. The gate `servers` compares them. */
export const VISIBLE_SETTINGS = [
  'client-output-buffer-limit',
  'client-query-buffer-limit',
  'databases',
  'hash-max-ziplist-entries',
  'hash-max-ziplist-value',
  'hll-sparse-max-bytes',
  'lua-time-limit',
  'maxclients',
  'maxmemory-policy',
  'min-replicas-to-write',
  'notify-keyspace-events',
  'proto-max-bulk-len',
  'set-max-intset-entries',
  'stop-writes-on-bgsave-error',
  'stream-node-max-bytes',
  'stream-node-max-entries',
  'timeout',
  'zset-max-ziplist-entries',
  'zset-max-ziplist-value',
] as const;
export type VisibleSetting = (typeof VISIBLE_SETTINGS)[number];

/** Values of `gates.acceptSettings`: such a setting, or `unreadable` for all those that a server does not show. */
export const ACCEPTABLE_SETTINGS = [...VISIBLE_SETTINGS, 'unreadable'] as const;
export type AcceptableSetting = (typeof ACCEPTABLE_SETTINGS)[number];

/**
 * Values of `gates.acceptRights`: commands that KeyDB does not check against key patterns as Redis 7 does. A test
 * compares them with what both servers enforce (command/rights.generated.ts).
 */
export const WIDER_COMMANDS = ['sort', 'debug', 'keydb.hrename'] as const;
export type WiderRight = (typeof WIDER_COMMANDS)[number];

export const RECEIVER_KINDS = ['webhook', 'slack', 'pagerduty', 'alertmanager'] as const;
export type ReceiverKind = (typeof RECEIVER_KINDS)[number];

export interface Plan {
  readonly version: 1;
  readonly name: string;
  /** Empty for a plan with `cluster`, until the slot maps of both sides are read (`upstream/open-plan.ts`). */
  readonly shards: readonly ShardPlan[];
  readonly cluster: ClusterPlan | null;
  /** Workloads in matching order: a key belongs to the first one whose patterns match. */
  readonly workloads: readonly WorkloadPlan[];
  /** The workload of keys that match no other one. Its name is `default`, its `keys` and `channels` are empty. */
  readonly default: WorkloadPlan;
  readonly gates: Gates;
  /** Further conditions of a promotion. */
  readonly checks: readonly CheckPlan[];
  /** Programs that run before or after each stage change, in this order. */
  readonly hooks: readonly HookPlan[];
  /** Moves workloads back automatically; null: off. */
  readonly guard: GuardPlan | null;
  /** Moves workloads from 1 to 100 % of their keys automatically; null: off. */
  readonly rollout: RolloutPlan | null;
  readonly topology: Topology;
  /**
   * After an authority was restarted or replaced: `ask` stops all copies until the operator decides, `accept` takes its
   * data as they are.
   */
  readonly onAuthorityChange: 'ask' | 'accept';
  /**
   * Hashes whose fields have a TTL, which the target cannot hold: `refuse` does not copy such a key, `strip` copies it
   * without these TTLs.
   */
  readonly hashFieldTtl: 'refuse' | 'strip';
  /** Front threads of each shard. */
  readonly threads: 'auto' | number;
  /** Whether the native module may read and write the clients' sockets. */
  readonly sockets: 'auto' | 'node';
  /** Whether the names of lanes at the servers also name their clients. */
  readonly laneNames: (typeof LANE_NAMES)[number];
  /** What happens when an authority is down; a workload may have its own value. */
  readonly failover: 'manual' | 'automatic';
  readonly admin: AdminPlan;
  /** The address at which the process answers as a Sentinel; null: none. */
  readonly sentinel: SentinelPlan | null;
  /** Absolute path of the directory of the durable state. */
  readonly state: string;
  readonly limits: Limits;
  /** Of each backfill and verify, where it has no limit of its own. */
  readonly jobs: JobLimitsPlan;
  /** Names or addresses of clients that may be connected to a source bypassing the proxy. */
  readonly knownClients: readonly string[];
  /** ACL users that no client of the proxy uses. */
  readonly knownUsers: readonly string[];
  /** How clients are kept from writing to a source directly while its target answers clients. */
  readonly fence: 'off' | 'acl';
  readonly ledger: LedgerPlan;
  /** The receiver of traces and metrics; null: none. */
  readonly opentelemetry: OpenTelemetryPlan | null;
  /** The receivers of notifications. */
  readonly notify: readonly ReceiverPlan[];
}

/** One side of a cluster as the plan names it. */
export interface ClusterSide extends Pick<ServerEndpoint, 'label' | 'tls' | 'username' | 'password'> {
  /** Nodes that are asked for the other nodes. */
  readonly seeds: readonly Address[];
}

export interface ClusterReplicas {
  /** Port of the first shard's replica, at the host of `listen`; each further shard has the next port. */
  readonly port: number;
  /** Has the same form as `announce` of the cluster. */
  readonly announce: string;
}

export interface ClusterPlan {
  readonly source: ClusterSide;
  /** A cluster, or one standalone server. */
  readonly target: ClusterSide;
  /** Address of the first shard; each further shard has the next port. */
  readonly listen: Listen;
  /**
   * `host:port` of the first shard for clients; each further shard has the next port, unless the text contains
   * `{shard}`.
   */
  readonly announce: string;
  /** Slots at which a further shard begins. */
  readonly cuts: readonly number[];
  /** Where clients read that may read from replicas; null if they may not. */
  readonly replicas: ClusterReplicas | null;
  /** The first shard's own admin address; each further shard has the next port. Null if they use the plan's. */
  readonly admin: AdminPlan | null;
}

export interface ReplicaDoor {
  readonly listen: Listen;
  /** The shard's replica address, as clients get it. */
  readonly announce: Address;
}

export interface ShardPlan {
  readonly name: string;
  readonly listen: Listen;
  readonly source: Endpoint;
  readonly target: Endpoint;
  /** The keys on a shared target that belong to this shard only; null if the plan does not say. */
  readonly owns: Owns | null;
  /** Whether another shard of the plan has the same target, or `owns` limits the shard's keys there. */
  readonly sharedTarget: boolean;
  /** The slots of the cluster that the shard serves; null if the source is no cluster. */
  readonly slots: readonly SlotRange[] | null;
  /** Whether the source's master has slots of other shards, too. */
  readonly sharedSource: boolean;
  /** The shard's address as clients of the cluster get it; null if the source is no cluster. */
  readonly announce: Address | null;
  /** Where the shard's clients read that may read from replicas; null if they may not. */
  readonly replica: ReplicaDoor | null;
  /** The region of the target; null if the topology has none. */
  readonly region: string | null;
  /** The shard's own admin address; null: the plan's. */
  readonly admin: AdminPlan | null;
}

/** Stage and percent hold at the first start only; afterwards the durable state has them. */
export interface WorkloadPlan extends StagePoint {
  readonly name: string;
  readonly keys: readonly string[];
  readonly channels: readonly string[];
  readonly class: WorkloadClass;
  /** The only region whose node may write the workload; null if each may. */
  readonly writer: string | null;
  readonly counterLayout: CounterLayout;
  /** Share of the reads that are compared while the source answers, in percent; more than 0. */
  readonly shadowReads: number;
  readonly failover: Plan['failover'];
  readonly gates: Gates;
}

/** By the name of the workload, including `default`. */
export type Stages = Readonly<Record<string, StagePoint>>;

/** The evidence that a workload needs before it may move to its next stage. */
export interface Gates {
  readonly minCompared: number;
  readonly minMinutes: number;
  readonly maxMismatches: number;
  /** Maximum of the target's p99 divided by the source's. */
  readonly maxP99Ratio: number;
  /** Maximum share of compared replies with an allowed difference, 0 to 1. */
  readonly maxAllowedShare: number;
  /** Maximum share of inconclusive comparisons, 0 to 1. */
  readonly maxInconclusiveShare: number;
  /** Maximum age of the last verification of all keys, in hours. */
  readonly maxVerifyHours: number;
  /** Hours in which no client may have used a command that one server does not support. */
  readonly unsupportedHours: number;
  /** Unsupported forms of commands that block no gate, each with the reason. */
  readonly allowUnsupported: Readonly<Record<string, string>>;
  /** Settings that may differ or be unknown. */
  readonly acceptSettings: readonly AcceptableSetting[];
  /** Commands that KeyDB may run on keys outside a user's patterns. */
  readonly acceptRights: readonly WiderRight[];
  /** Whether a rollback must have been rehearsed before `live`. */
  readonly drill: boolean;
  /** Whether `live` must be reached in growing shares of the keys. */
  readonly steps: boolean;
}

export interface Topology {
  readonly mode: 'primary-replica' | 'active-active';
  readonly regions: readonly string[];
  /** What a proxy does with a write on a workload whose writer is another region. */
  readonly secondWriter: 'refuse' | 'count';
  /** How long the link between two nodes may be down without a full resync afterwards. */
  readonly outageMinutes: number;
}

export interface AdminPlan {
  readonly host: string;
  readonly port: number;
  /** The token that `Authorization: Bearer …` must have; null (on loopback only): none is required. */
  readonly token: string | null;
}

export interface SentinelPlan {
  readonly listen: Listen;
  /** The listener's address as clients and other Sentinels reach it. */
  readonly announce: Address;
  /** The user that clients log in as, and its password; a null password: no login is required. */
  readonly username: string;
  readonly password: string | null;
  /** At most one for each shard. */
  readonly masters: readonly SentinelMaster[];
}

export interface SentinelMaster {
  /** The name by which clients ask for the master. */
  readonly name: string;
  readonly shard: string;
  /** This process's address for the shard's clients. */
  readonly announce: Address;
}

export interface Limits {
  /** Maximum bytes of effects that wait for one shard's mirror; beyond it their keys become suspects. */
  readonly queueBytes: number;
  /** Maximum number of clients of one shard; further clients get an error and are closed. */
  readonly clients: number;
  /** Maximum bytes of replies that wait for one client that does not read; beyond it the client is closed. */
  readonly clientOutputBytes: number;
  /** Maximum bytes of memory of all clients of one shard; beyond it the largest client is closed first. */
  readonly totalClientBytes: number;
  /** Maximum bytes of commands that one client may queue between MULTI and EXEC. */
  readonly transactionBytes: number;
  /** Milliseconds for a client's TLS handshake and, where a password is needed, its login. */
  readonly loginMs: number;
  /** Milliseconds after which a client that sends nothing is closed; 0 is never. */
  readonly idleMs: number;
  /** Milliseconds for one attempt to connect to a server. */
  readonly connectMs: number;
  /** Milliseconds after which an authority that does not answer is down. */
  readonly downAfterMs: number;
  /** How long a connection may wait for a reply, in ms, while the server answers on others. */
  readonly silentMs: number;
  /** Milliseconds that a flip may hold a workload's commands before it aborts with nothing changed. */
  readonly flipMs: number;
  /** Milliseconds that a shutdown waits for commands in flight. */
  readonly drainMs: number;
  /** A key of this number of bytes, or of elements, or more is copied in chunks. */
  readonly largeKeyBytes: number;
  readonly largeKeyElements: number;
}

export interface LedgerPlan {
  /** Size of one file, in bytes. */
  readonly maxBytes: number;
  /** Number of files that are kept, including the current one. */
  readonly files: number;
  /** False: keys and replies are written in full. */
  readonly redact: boolean;
  /** Days after which lines are removed. */
  readonly keepDays: number;
}

/** A receiver of OTLP (OpenTelemetry Protocol) over HTTP. */
export interface OpenTelemetryPlan {
  /** Without `/v1/traces`. */
  readonly url: string;
  /** The values may be secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Share of the commands that are traced, 0 to 1. */
  readonly traceShare: number;
  /** Milliseconds between two exports of metrics; 0: none. */
  readonly metricsMs: number;
}

/** One receiver of notifications. */
export interface ReceiverPlan {
  /** The name in the log and in metrics. */
  readonly name: string;
  readonly kind: ReceiverKind;
  /** For Slack, the URL is a secret, too. */
  readonly url: string;
  /**
   * `webhook`: the key of the signature; `pagerduty`: the routing key; `alertmanager`: the bearer token, or null. Null
   * for Slack.
   */
  readonly secret: string | null;
  readonly events: readonly NotifyEvent[];
}

/** A check outside the kit that is asked before a promotion. */
export type CheckPlan = {
  readonly name: string;
  /** The workloads to whose promotions the check applies; null: all. */
  readonly workloads: readonly string[] | null;
  readonly deadlineMs: number;
} & (
  | {
      readonly kind: 'prometheus';
      /** Without a slash at its end. */
      readonly url: string;
      readonly query: string;
      readonly max: number | null;
      readonly min: number | null;
      readonly token: string | null;
    }
  | { readonly kind: 'http'; readonly url: string; readonly token: string | null }
  | { readonly kind: 'command'; readonly command: readonly string[] }
);

/** A program that runs before or after stage changes. */
export interface HookPlan {
  readonly name: string;
  readonly when: 'before' | 'after';
  readonly command: readonly string[];
  /** The workloads to whose changes the hook applies; null: all. */
  readonly workloads: readonly string[] | null;
  readonly deadlineMs: number;
}

/** Limits of workloads in `live` and `rampdown`, and the action if one is exceeded for `forSeconds`. */
export interface GuardPlan {
  /** `rollback`: the workload goes back to `shadow`. `stop`: it stays where it is, and its rollout stops. */
  readonly action: 'rollback' | 'stop';
  readonly forSeconds: number;
  /** Maximum share of the target's replies to clients that are errors, 0 to 1. */
  readonly maxErrorShare: number;
  /** Maximum of the target's p99 divided by the source's. */
  readonly maxP99Ratio: number;
  /** Maximum p99 of the target, in ms; null: no limit. */
  readonly maxP99Ms: number | null;
  /** Maximum number of mismatches since the workload entered its stage. */
  readonly maxMismatches: number;
  /** Names of `checks`; the answer no counts as an exceeded limit. */
  readonly checks: readonly string[];
  /** The workloads that are guarded; null: all. */
  readonly workloads: readonly string[] | null;
}

/** Absent: not limited. */
export interface JobLimitsPlan {
  /** The highest 99th percentile of the mirror's replies, in ms. */
  readonly maxMirrorP99Ms?: number;
  /** How many bytes a replica of the mirror may lack. */
  readonly maxReplicaLagBytes?: number;
}

export interface RolloutPlan {
  /** How long all gates of the next step must have been open. */
  readonly holdMinutes: number;
  /** A step may be taken only between these minutes since midnight (UTC); null: at any time. */
  readonly window: { readonly from: number; readonly to: number } | null;
  /** The workloads that are moved; null: all. */
  readonly workloads: readonly string[] | null;
}

/** Every workload of the plan in matching order, `default` last. */
export const allWorkloads = (plan: Plan): readonly WorkloadPlan[] => [...plan.workloads, plan.default];

/** The plan of a workload that the plan has. */
export const workloadIn = (plan: Plan, name: string): WorkloadPlan =>
  allWorkloads(plan).find((workload) => workload.name === name)!;

/** The admin HTTP of a shard: its own address, or the plan's. */
export const adminOf = (plan: Plan, shard: string): AdminPlan =>
  plan.shards.find(({ name }) => name === shard)?.admin ?? plan.admin;
