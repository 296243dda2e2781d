/**
 * What the answers of a proxy have, field by field: the one place where what came over the network becomes what its
 * type says. A field that a type gains without a check here does not compile. More than is expected may be there.
 */
import type { StagePoint } from '../route/stage.js';
import type { FencedClient, FenceReport } from '../stages/fence-gate.js';
import type { Gate } from '../stages/gates.js';
import type { NextStage, ShardEvidence } from '../stages/next-stage.js';
import type { Promotion, Rollback } from '../stages/promotion.js';
import type { HookRun, StageChange } from '../stages/stage-change.js';
import type { HistoryEvent } from '../storage/history.js';
import type { LedgerTail } from '../telemetry/ledger.js';
import type {
  AutomaticSnapshot,
  ClientErrorOrigin,
  CountingSnapshot,
  FenceSnapshot,
  FieldTtlsSnapshot,
  JobDifference,
  JobFailure,
  JobPause,
  JobSnapshot,
  LatencySnapshot,
  MirrorSnapshot,
  NotStarted,
  OutageSnapshot,
  OutageWorkload,
  ReservationsSnapshot,
  ServerSnapshot,
  ShardSnapshot,
  SuspectsSnapshot,
  WorkloadSnapshot,
} from '../telemetry/snapshot.js';

/** What is wrong with a value, such as `shards[0].clients, a number`; null where it is as it should be. */
export type Check = (value: unknown, at: string) => string | null;

/** What a shard of any release reports of itself. */
export interface ShardNames {
  readonly name: string;
  readonly workloads: readonly { readonly name: string }[];
}

/** A check for each field that a type has; for one that may be absent, if it is looked at. */
type Fields<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: Check } & {
  readonly [K in keyof T]?: Check;
};

const primitive =
  (type: 'string' | 'number' | 'boolean'): Check =>
  (value, at) =>
    typeof value === type ? null : `${at}, a ${type}`;
const text = primitive('string');
const number = primitive('number');
const flag = primitive('boolean');

const nullable =
  (check: Check): Check =>
  (value, at) =>
    value === null ? null : check(value, at);

const list =
  (check: Check): Check =>
  (value, at) =>
    Array.isArray(value) ? first(value.map((each, i) => () => check(each, `${at}[${i}]`))) : `${at}, a list`;

/** A table of counts, and the like. */
const table =
  (check: Check): Check =>
  (value, at) =>
    isObject(value)
      ? first(
          Object.entries(value).map(
            ([name, each]) =>
              () =>
                check(each, `${at}.${name}`),
          ),
        )
      : `${at}, an object`;

export const object =
  <T>(fields: Fields<T>): Check =>
  (value, at) =>
    isObject(value)
      ? first(
          Object.entries(fields as Readonly<Record<string, Check>>).map(
            ([name, check]) =>
              () =>
                check(value[name], at === '' ? name : `${at}.${name}`),
          ),
        )
      : `${at}, an object`;

const absent =
  (check: Check): Check =>
  (value, at) =>
    value === undefined ? null : check(value, at);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function first(checks: readonly (() => string | null)[]): string | null {
  for (const check of checks) {
    const problem = check();
    if (problem !== null) return problem;
  }
  return null;
}

const counts = table(number);
const point = object<StagePoint>({ stage: text, percent: number });

// ── /api/status ─────────────────────────────────────────────────────────────────────────────────────────────────

const server = object<ServerSnapshot>({
  ...{ url: text, runId: nullable(text), replId: nullable(text), role: nullable(text), version: nullable(text) },
  ...{ up: nullable(flag), problem: nullable(text), full: flag, evicted: number, expired: number },
  ...{ evictedAt: nullable(text), evicting: flag, silentMs: number, silentConnections: number },
  refusedDatabases: list(object<ServerSnapshot['refusedDatabases'][number]>({ db: number, why: text })),
});
const latency = object<LatencySnapshot>({ p50: number, p99: number, p999: number, count: number });
const automatic = object<AutomaticSnapshot>({
  ...{ guard: flag, rollout: flag, exceeds: list(text) },
  hold: nullable(
    object<NonNullable<AutomaticSnapshot['hold']>>({ why: text, at: text, reason: text, by: nullable(text) }),
  ),
});
const workload = object<WorkloadSnapshot>({
  ...{ name: text, class: text, stage: text, percent: number, operations: number, reads: number, writes: number },
  ...{ compared: number, matched: number, allowed: number, mismatches: number, inconclusive: number },
  ...{ suspects: number, suspect: nullable(text), clean: flag, secondWriterWrites: number },
  ...{ unsupported: counts, newErrors: counts, automatic },
});
const job = object<JobSnapshot>({
  ...{ kind: text, repair: flag, dryRun: flag, sample: number, automatic: flag, workloads: list(text), state: text },
  ...{ reason: nullable(text), limits: table(nullable(number)), startedAt: text, endedAt: nullable(text) },
  paused: nullable(object<JobPause>({ since: text, by: nullable(text), reason: nullable(text) })),
  ...{ total: number, scanned: number, seen: number, copied: number, verified: number, verifiedBy: counts },
  ...{ repaired: number, overwritten: number, deleted: number, keptForeign: number, failed: number, unsure: number },
  ...{ bytes: number, differences: counts, listed: counts, keysPerSecond: number, etaSeconds: nullable(number) },
  failures: list(object<JobFailure>({ db: number, key: text, why: text })),
  examples: list(object<JobDifference>({ db: number, key: text, kind: text })),
});
const outageWorkload = object<OutageWorkload>({
  ...{ name: text, policy: text, from: point, movedTo: nullable(point), why: nullable(text), next: text },
  ...{ unanswered: number, keys: list(text) },
  instead: absent(object<NonNullable<OutageWorkload['instead']>>({ text, command: text })),
});
const bothSides = (check: Check): Check => object<ShardSnapshot['latency']>({ source: check, target: check });

/** A shard in `/api/status`. */
export const shardSnapshot = object<ShardSnapshot>({
  ...{ name: text, source: server, target: server, clients: number, clientBytes: number, clientsClosed: counts },
  ...{ replyFailures: number, operations: number, compared: number, matched: number, allowed: counts },
  ...{ mismatches: counts, inconclusive: counts, undecided: number, unsupported: counts },
  crossWorkload: object<ShardSnapshot['crossWorkload']>({ split: number, refused: number }),
  ...{ otherShardCommands: number, replicaReads: number, unmirroredErrors: number, clientErrors: bothSides(counts) },
  clientErrorOrigins: list(
    object<ClientErrorOrigin>({ side: text, kind: text, command: text, client: text, count: number }),
  ),
  ...{ latency: bothSides(latency), clockAheadMs: number },
  mirror: object<MirrorSnapshot>({
    ...{ lagMs: number, queuedBytes: number, queuedEffects: number, dropped: number, connected: flag },
  }),
  reservations: object<ReservationsSnapshot>({ byAge: counts, oldestMs: number, longestWaitMs: number }),
  suspects: object<SuspectsSnapshot>({ total: number, byReason: counts }),
  fieldTtls: nullable(object<FieldTtlsSnapshot>({ keys: number, stripped: number })),
  ...{ workloads: list(workload), flips: number, frozen: nullable(text), movedSlots: text },
  fence: nullable(object<FenceSnapshot>({ since: nullable(text), users: list(text), problem: nullable(text) })),
  counting: list(
    object<CountingSnapshot>({ workload: text, kind: text, prefix: text, commands: counts, perSecond: number }),
  ),
  outage: nullable(
    object<OutageSnapshot>({
      ...{ side: text, url: text, since: text, endedAt: nullable(text), workloads: list(outageWorkload) },
    }),
  ),
  ...{ failovers: number, job: nullable(job), earlierJobs: list(job), uptimeMs: number },
});
/** A shard in `/api/status` that is not started. */
export const notStarted = object<NotStarted>({ shard: text, problem: text });
/** The names alone of a shard in `/api/status`. */
export const named = object<ShardNames>({
  name: text,
  workloads: list(object<{ readonly name: string }>({ name: text })),
});

// ── of a shard, which each entry names ──────────────────────────────────────────────────────────────────────────

type OfShard<T> = T & { readonly shard: string };

/** An entry that names its shard, and no more is looked at. */
export const ofShard = object<{ readonly shard: string }>({ shard: text });
export const shardJob = object<OfShard<{ readonly job: JobSnapshot | null }>>({ shard: text, job: nullable(job) });
export const accepted = object<OfShard<{ readonly servers: readonly string[] }>>({ shard: text, servers: list(text) });

const gate = object<Gate>({ name: text, answer: text, evidence: text });
const hookRun = object<HookRun>({ name: text, when: text, ms: number, problem: nullable(text) });
const change = object<StageChange>({
  ...{ workload: text, from: point, to: point, heldMs: number, hooks: absent(list(hookRun)) },
});
const targetKeys = object<NonNullable<Promotion['targetKeys']>>({
  ...{ found: number, onSource: number, examples: list(text), looked: number, of: number, complete: flag },
});
export const promotion = object<OfShard<Promotion>>({
  ...{ shard: text, workload: text, from: point, to: point, gates: list(gate), change: nullable(change) },
  targetKeys: nullable(targetKeys),
});
export const rollback = object<OfShard<Rollback>>({ shard: text, workload: text, changes: list(change) });
export const fence = object<OfShard<FenceReport>>({
  ...{ shard: text, plan: text, since: nullable(text), hand: nullable(text), problem: nullable(text) },
  users: list(text),
  clients: list(object<FencedClient>({ name: text, address: text, user: text, command: text, idleSeconds: number })),
});
export const shardHistory = object<OfShard<{ readonly events: readonly HistoryEvent[] }>>({
  shard: text,
  events: list(object<Pick<HistoryEvent, 'event'>>({ event: text })),
});

const nextStage = object<NextStage>({
  ...{ workload: text, class: text, from: point, to: nullable(point), gates: list(gate) },
  evidence: object<NextStage['evidence']>({
    ...{ stage: text, percent: number, since: text, compared: number, allowed: counts, mismatches: counts },
    ...{ inconclusive: number, inconclusiveByScript: counts, minutes: number, hours: list(number) },
    verified: nullable(
      object<NonNullable<NextStage['evidence']['verified']>>({
        ...{ endedAt: text, keys: number, differences: number, failed: number, unsure: number },
      }),
    ),
    drill: nullable(object<NonNullable<NextStage['evidence']['drill']>>({ at: text, percent: number, heldMs: number })),
    unsupported: table(
      object<NextStage['evidence']['unsupported'][string]>({ lacks: text, calls: number, first: text, last: text }),
    ),
  }),
  latency: list(
    object<NextStage['latency'][number]>({
      ...{ server: text, p50: number, p99: number, p999: number, replies: number, minutes: number },
    }),
  ),
});
const reply = object<LedgerTail['latest'][number]['source']>({ type: text, bytes: number, hash: text });
const entry = object<LedgerTail['latest'][number]>({
  ...{ time: text, shard: text, workload: text, command: text, db: number, kind: text, authority: text },
  ...{ pattern: nullable(text), source: reply, target: reply, differsAt: number },
  key: nullable(object<NonNullable<LedgerTail['latest'][number]['key']>>({ hash: text, bytes: number })),
});
export const evidence = object<ShardEvidence>({
  ...{ shard: text, workloads: list(nextStage) },
  latencies: list(object<ShardEvidence['latencies'][number]>({ at: text, source: latency, target: latency })),
  mismatches: object<LedgerTail>({ total: number, notWritten: number, latest: list(entry) }),
});

/** An answer whose `part` is a list of such entries. */
export const listOf = (part: string, each: Check): Check =>
  object<Readonly<Record<string, unknown>>>({ [part]: list(each) });
