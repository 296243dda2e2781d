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
 * - `plain`: one key a counter.
 * - `library`: the applications use the counters package, whose writers own their keys.
 * - `per-region`: the proxy rewrites plain counters to that layout.
 */
export const COUNTER_LAYOUTS = ['plain', 'library', 'per-region'] as const;
export type CounterLayout = (typeof COUNTER_LAYOUTS)[number];

export const WORKLOAD_CLASSES = ['read-mostly', 'counter', 'leaderboard', 'critical', 'general'] as const;
export type WorkloadClass = (typeof WORKLOAD_CLASSES)[number];

/** What people can be notified of. */
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

/** Settings of the servers whose difference clients can see: the gate `servers` compares them. */
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

/** What `gates.acceptSettings` may name: such a setting, or all those that a server does not show. */
export const ACCEPTABLE_SETTINGS = [...VISIBLE_SETTINGS, 'unreadable'] as const;
export type AcceptableSetting = (typeof ACCEPTABLE_SETTINGS)[number];

/**
 * Commands that KeyDB does not check against key patterns as Redis 7 does: what `gates.acceptRights` may name. A test
 * compares them with what both servers enforce (command/rights.generated.ts).
 */
export const WIDER_COMMANDS = ['sort', 'debug', 'keydb.hrename'] as const;
export type WiderRight = (typeof WIDER_COMMANDS)[number];

export const RECEIVER_KINDS = ['webhook', 'slack', 'pagerduty', 'alertmanager'] as const;
export type ReceiverKind = (typeof RECEIVER_KINDS)[number];

export interface Plan {
  readonly version: 1;
  readonly name: string;
  /** Empty for a plan with `cluster`, until the slot maps of both sides are read (`upstream/cluster.ts`). */
  readonly shards: readonly ShardPlan[];
  readonly cluster: ClusterPlan | null;
  /** Workloads, in the order in which keys are matched: the first that names a key has it. */
  readonly workloads: readonly WorkloadPlan[];
  /** Has the keys that no workload names. Its name is `default`, its `keys` and `channels` are empty. */
  readonly default: WorkloadPlan;
  readonly gates: Gates;
  /** What else must hold before a promotion. */
  readonly checks: readonly CheckPlan[];
  /** Programs that run before or after each stage change, in this order. */
  readonly hooks: readonly HookPlan[];
  /** What takes a workload back by itself; null: nothing. */
  readonly guard: GuardPlan | null;
  /** What takes a workload from 1 to 100 % of its keys by itself; null: nothing. */
  readonly rollout: RolloutPlan | null;
  readonly topology: Topology;
  /**
   * What follows when an authority restarted or was replaced: nothing is copied until the operator decides, or it
   * is taken as it is.
   */
  readonly onAuthorityChange: 'ask' | 'accept';
  /**
   * Hashes whose fields expire, which the target cannot hold: such a key is not copied, or copied without the fields'
   * times to live.
   */
  readonly hashFieldTtl: 'refuse' | 'strip';
  /** Front threads of each shard. */
  readonly threads: 'auto' | number;
  /** Whether the native module may read and write the clients' sockets. */
  readonly sockets: 'auto' | 'node';
  /** What follows when an authority dies; a workload may say otherwise. */
  readonly failover: 'manual' | 'automatic';
  readonly admin: AdminPlan;
  /** Absolute path of the directory of the durable state. */
  readonly state: string;
  readonly limits: Limits;
  /** Names or addresses of clients that may be connected to a source bypassing the proxy. */
  readonly knownClients: readonly string[];
  /** ACL users that no client of the proxy uses. */
  readonly knownUsers: readonly string[];
  /** What keeps clients from writing to a source directly while its target answers clients. */
  readonly fence: 'off' | 'acl';
  readonly ledger: LedgerPlan;
  /** The receiver of traces and metrics; null: none. */
  readonly opentelemetry: OpenTelemetryPlan | null;
  /** The receivers of notifications. */
  readonly notify: readonly ReceiverPlan[];
}

/** One side of a cluster as the plan names it. */
export interface ClusterSide extends Pick<ServerEndpoint, 'label' | 'tls' | 'username' | 'password'> {
  /** Nodes that tell the others. */
  readonly seeds: readonly Address[];
}

export interface ClusterReplicas {
  /** The first shard's, at the host of `listen`; each further one has the next. */
  readonly port: number;
  /** As that of the cluster. */
  readonly announce: string;
}

export interface ClusterPlan {
  readonly source: ClusterSide;
  /** A cluster, or one standalone server. */
  readonly target: ClusterSide;
  /** The first shard's; each further one has the next port. */
  readonly listen: Listen;
  /** `host:port` of the first shard for clients; each further one has the next port, unless `{shard}` is in it. */
  readonly announce: string;
  /** Slots at which a further shard begins. */
  readonly cuts: readonly number[];
  /** Where clients read that may read from replicas; null where they may not. */
  readonly replicas: ClusterReplicas | null;
  /** The first shard's own admin address; each further one has the next port. Null where they have the plan's. */
  readonly admin: AdminPlan | null;
}

export interface ReplicaDoor {
  readonly listen: Listen;
  /** The shard's address as clients get it. */
  readonly announce: Address;
}

export interface ShardPlan {
  readonly name: string;
  readonly listen: Listen;
  readonly source: Endpoint;
  readonly target: Endpoint;
  /** The keys that this shard, and no other, has on a shared target; null where it does not say. */
  readonly owns: Owns | null;
  /** True where another shard of the plan has the same target, or this one says which keys it has there. */
  readonly sharedTarget: boolean;
  /** The slots of a cluster that it serves; null where the source is no cluster. */
  readonly slots: readonly SlotRange[] | null;
  /** True where the source's master has slots of other shards, too. */
  readonly sharedSource: boolean;
  /** The shard's address as clients of the cluster get it; null if the source is no cluster. */
  readonly announce: Address | null;
  /** Where its clients read that may read from replicas; null where they may not. */
  readonly replica: ReplicaDoor | null;
  /** The region of its target; null where the topology has none. */
  readonly region: string | null;
  /** The shard's own admin address; where null, the plan's. */
  readonly admin: AdminPlan | null;
}

/** Its stage and percent are the first ones only; afterwards the durable state holds. */
export interface WorkloadPlan extends StagePoint {
  readonly name: string;
  readonly keys: readonly string[];
  readonly channels: readonly string[];
  readonly class: WorkloadClass;
  /** The one region whose node may write it; null where each may. */
  readonly writer: string | null;
  readonly counterLayout: CounterLayout;
  readonly failover: Plan['failover'];
  readonly gates: Gates;
}

/** By name of the workload, `default` among them. */
export type Stages = Readonly<Record<string, StagePoint>>;

/** The evidence that a workload needs before it may move to its next stage. */
export interface Gates {
  readonly minCompared: number;
  readonly minMinutes: number;
  readonly maxMismatches: number;
  /** Target's p99 divided by source's. */
  readonly maxP99Ratio: number;
  /** Of the pairs of replies, 0 to 1. */
  readonly maxAllowedShare: number;
  /** Of the pairs of replies, 0 to 1. */
  readonly maxInconclusiveShare: number;
  /** Age of the last verification of all keys, in hours. */
  readonly maxVerifyHours: number;
  /** Hours without a client using a command that one server does not support. */
  readonly unsupportedHours: number;
  /** What may be used all the same, by form, with the reason. */
  readonly allowUnsupported: Readonly<Record<string, string>>;
  /** Settings that may differ, or may be unknown. */
  readonly acceptSettings: readonly AcceptableSetting[];
  /** Commands that KeyDB may run on keys outside a user's patterns. */
  readonly acceptRights: readonly WiderRight[];
  /** Whether a rollback must have been rehearsed before `live`. */
  readonly drill: boolean;
  /** Whether `live` is taken by ever larger shares of the keys. */
  readonly steps: boolean;
}

export interface Topology {
  readonly mode: 'primary-replica' | 'active-active';
  readonly regions: readonly string[];
  /** What a proxy does with a write on a workload whose writer is another region. */
  readonly secondWriter: 'refuse' | 'count';
  /** For how long the link between two nodes may be cut without a full resync afterwards. */
  readonly outageMinutes: number;
}

export interface AdminPlan {
  readonly host: string;
  readonly port: number;
  /** Required as `Authorization: Bearer …`; null (loopback only) asks for none. */
  readonly token: string | null;
}

export interface Limits {
  /** Bytes of effects that wait for one shard's mirror; above it their keys become suspects. */
  readonly queueBytes: number;
  /** Maximum number of clients of one shard; the next is answered with an error and closed. */
  readonly clients: number;
  /** Bytes of replies that wait for one client which does not read; above it the client is closed. */
  readonly clientOutputBytes: number;
  /** Bytes of memory of all clients of one shard; beyond it the largest client is closed first. */
  readonly totalClientBytes: number;
  /** Bytes of commands that one client may queue between MULTI and EXEC. */
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
  /** From so many bytes, or elements, on a key is copied in chunks. */
  readonly largeKeyBytes: number;
  readonly largeKeyElements: number;
}

export interface LedgerPlan {
  /** Bytes of one file. */
  readonly maxBytes: number;
  /** Number of files that are kept, including the current one. */
  readonly files: number;
  /** False writes keys and replies in full. */
  readonly redact: boolean;
  /** Days after which lines are removed. */
  readonly keepDays: number;
}

/** A receiver of OTLP over HTTP. */
export interface OpenTelemetryPlan {
  /** Without `/v1/traces`. */
  readonly url: string;
  /** Secrets, perhaps. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of the commands, 0 to 1. */
  readonly traceShare: number;
  /** Milliseconds between two exports of metrics; 0: none. */
  readonly metricsMs: number;
}

/** Where notifications go. */
export interface ReceiverPlan {
  /** In the log and in metrics. */
  readonly name: string;
  readonly kind: ReceiverKind;
  /** A secret, too, where it is Slack's. */
  readonly url: string;
  /** `webhook`: signs; `pagerduty`: routing key; `alertmanager`: bearer token, or null. Slack has none. */
  readonly secret: string | null;
  readonly events: readonly NotifyEvent[];
}

/** Something outside the kit that is asked before a promotion. */
export type CheckPlan = {
  readonly name: string;
  /** The workloads whose promotions it is for; null: all. */
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
  /** The workloads for whose changes it runs; null: all. */
  readonly workloads: readonly string[] | null;
  readonly deadlineMs: number;
}

/** Limits of workloads in `live` and `rampdown`, and what follows where one is exceeded for so long. */
export interface GuardPlan {
  /** `rollback`: to `shadow`. `stop`: it stays where it is, and goes no further by itself. */
  readonly action: 'rollback' | 'stop';
  readonly forSeconds: number;
  /** Of the target's replies to clients, 0 to 1. */
  readonly maxErrorShare: number;
  /** Target's p99 divided by source's. */
  readonly maxP99Ratio: number;
  /** The target's; null: any. */
  readonly maxP99Ms: number | null;
  /** Since the workload entered its stage. */
  readonly maxMismatches: number;
  /** Names of `checks` whose no is a limit that is exceeded. */
  readonly checks: readonly string[];
  /** Null: all. */
  readonly workloads: readonly string[] | null;
}

export interface RolloutPlan {
  /** For so long all gates must have been open before the next step. */
  readonly holdMinutes: number;
  /** Minutes since midnight (UTC) between which a step may be taken; null: at any time. */
  readonly window: { readonly from: number; readonly to: number } | null;
  /** Null: all. */
  readonly workloads: readonly string[] | null;
}

/** Every workload of the plan in matching order, `default` last. */
export const allWorkloads = (plan: Plan): readonly WorkloadPlan[] => [...plan.workloads, plan.default];

/** The admin HTTP of a shard: its own, or the plan's. */
export const adminOf = (plan: Plan, shard: string): AdminPlan =>
  plan.shards.find(({ name }) => name === shard)?.admin ?? plan.admin;
