/**
 * Makes a `ShardSnapshot` from the counts of a shard's parts: a pure function. `snapshot-facts.ts` collects the counts.
 */
import { HARMLESS } from '../command/forms.js';
import { increment, type WorkloadCounters } from '../telemetry/workload-counters.js';
import type { Side, StagePoint } from '../route/stage.js';
import type {
  AutomaticSnapshot,
  ServerSnapshot,
  ShardSnapshot,
  SuspectsSnapshot,
  WorkloadSnapshot,
} from '../telemetry/snapshot.js';

/** A server counts as evicting for this time after its last eviction, in ms. */
const EVICTING_MS = 60_000;

/** What is known about one of the two servers. */
export type ServerFacts = Omit<ServerSnapshot, 'up' | 'evictedAt' | 'evicting'> & {
  readonly up: boolean;
  /** Whether clients or a mirror use the server. */
  readonly isUsed: boolean;
  /** When an eviction was last seen, in ms since 1970; null if never. */
  readonly evictedAt: number | null;
};

/** What is known about the mirror lane to one of the two servers. */
export interface MirrorFacts {
  readonly lagMs: number;
  readonly queuedBytes: number;
  readonly queuedEffects: number;
  /** Keys that wait in the lane for a verdict. */
  readonly gates: number;
  /** Whether the server has confirmed everything. */
  readonly isEmpty: boolean;
  readonly connected: boolean;
  /** Whether the server mirrors a workload. */
  readonly isNeeded: boolean;
}

/** What shows whether a workload is clean. */
export interface WorkloadConditionFacts extends StagePoint {
  readonly name: string;
  /** Why every key of the workload is suspect; null if they are not. */
  readonly suspect: string | null;
  /** Both sides if only a share of the keys is live. */
  readonly mirrors: readonly Side[];
  /** Number of suspect keys; and how many of them may lack an acknowledged effect on the mirror. */
  readonly suspects: { readonly total: number; readonly acknowledged: number };
  /** Whether both servers are being asked about a difference on a key of the workload. */
  readonly asked: boolean;
}

export interface WorkloadFacts extends WorkloadConditionFacts {
  readonly workloadClass: WorkloadSnapshot['class'];
  /** Writes of clients here although another region writes the workload; see `CommandCounts`. */
  readonly secondWriterWrites: number;
  /** Share of the reads that are compared while the source answers, in percent. */
  readonly shadowReads: number;
  readonly counters: WorkloadCounters;
  readonly byCommand: Readonly<Record<string, number>>;
  readonly automatic: AutomaticSnapshot;
}

/** Fields that are copied into the snapshot unchanged. */
type UnchangedFields = Pick<
  ShardSnapshot,
  | 'name'
  | 'clients'
  | 'clientBytes'
  | 'clientsClosed'
  | 'replyFailures'
  | 'operations'
  | 'crossWorkload'
  | 'otherShardCommands'
  | 'replicaReads'
  | 'clientErrors'
  | 'clientErrorOrigins'
  | 'latency'
  | 'clockAheadMs'
  | 'reservations'
  | 'flips'
  | 'frozen'
  | 'fence'
  | 'movedSlots'
  | 'fieldTtls'
  | 'counting'
  | 'outage'
  | 'failovers'
  | 'job'
  | 'earlierJobs'
  | 'uptimeMs'
>;

/** What shows the condition of a shard. */
export interface ConditionFacts {
  readonly plain: Pick<UnchangedFields, 'frozen' | 'outage' | 'failovers' | 'job'>;
  readonly mirrors: Readonly<Record<Side, MirrorFacts>>;
  /** Effects dropped because the queue was full. */
  readonly dropped: number;
  /** Differences about which both servers are being asked. */
  readonly asked: number;
  readonly suspects: SuspectsSnapshot;
  readonly workloads: readonly WorkloadConditionFacts[];
}

export interface ShardFacts extends ConditionFacts {
  readonly plain: UnchangedFields;
  /** The present time, in ms since 1970. */
  readonly now: number;
  readonly servers: Readonly<Record<Side, ServerFacts>>;
  readonly workloads: readonly WorkloadFacts[];
}

export type WorkloadCondition = Pick<WorkloadSnapshot, 'name' | 'stage' | 'percent' | 'suspects' | 'suspect' | 'clean'>;

/** A small part of a snapshot: whether the shard is clean, and what it is doing about it. */
export interface ShardCondition extends Pick<
  ShardSnapshot,
  'frozen' | 'outage' | 'failovers' | 'job' | 'undecided' | 'mirror' | 'suspects'
> {
  readonly workloads: readonly WorkloadCondition[];
}

/** What a snapshot says of the same facts, for a fraction of its cost. */
export function conditionOf(facts: ConditionFacts): ShardCondition {
  const { plain, mirrors, dropped, suspects, workloads } = facts;
  const { frozen, outage, failovers, job } = plain;
  const both = [mirrors.source, mirrors.target];
  return {
    ...{ frozen, outage, failovers, job },
    undecided: facts.asked + mirrors.source.gates + mirrors.target.gates,
    mirror: {
      lagMs: Math.max(...both.map(({ lagMs }) => lagMs)),
      queuedBytes: mirrors.source.queuedBytes + mirrors.target.queuedBytes,
      queuedEffects: mirrors.source.queuedEffects + mirrors.target.queuedEffects,
      dropped,
      connected: both.every(({ isNeeded, connected }) => connected || !isNeeded),
    },
    suspects,
    workloads: workloads.map((workload) =>
      workloadCondition(
        workload,
        workload.mirrors.every((side) => mirrors[side].isEmpty),
      ),
    ),
  };
}

const workloadCondition = (
  { name, stage, percent, suspects, suspect, asked }: WorkloadConditionFacts,
  mirrorIsEmpty: boolean,
): WorkloadCondition => ({
  ...{ name, stage, percent, suspects: suspects.total, suspect },
  clean: suspects.acknowledged === 0 && suspect === null && !asked && mirrorIsEmpty,
});

export function snapshotOf(facts: ShardFacts): ShardSnapshot {
  const { plain, now, servers, workloads } = facts;
  const counters = workloads.map((workload) => workload.counters);
  const total = (of: (each: WorkloadCounters) => number): number => counters.reduce((all, each) => all + of(each), 0);
  const condition = conditionOf(facts);
  return {
    ...plain,
    ...condition,
    source: serverSnapshot(servers.source, now),
    target: serverSnapshot(servers.target, now),
    compared: total((each) => each.compared),
    matched: total((each) => each.matched),
    allowed: merged(counters.map((each) => each.allowed)),
    mismatches: merged(counters.map((each) => each.mismatches)),
    inconclusive: merged(counters.map((each) => each.inconclusive)),
    unsupported: breaking(counters.map((each) => each.unsupported)),
    unmirroredErrors: total((each) => each.refused),
    workloads: workloads.map((workload, at) => workloadSnapshot(workload, condition.workloads[at])),
  };
}

function serverSnapshot({ isUsed, up, evictedAt, ...server }: ServerFacts, now: number): ServerSnapshot {
  return {
    ...server,
    up: isUsed ? up : null,
    evictedAt: evictedAt === null ? null : new Date(evictedAt).toISOString(),
    evicting: evictedAt !== null && now - evictedAt < EVICTING_MS,
  };
}

function workloadSnapshot(workload: WorkloadFacts, condition: WorkloadCondition): WorkloadSnapshot {
  const { counters, secondWriterWrites, shadowReads, byCommand, automatic } = workload;
  const { reads, writes, compared, matched, allowed, mismatches, inconclusive } = counters;
  return {
    ...condition,
    class: workload.workloadClass,
    operations: reads + writes,
    reads,
    writes,
    ...(shadowReads < 100 && { shadowReads }),
    compared,
    matched,
    allowed: sumOf(allowed),
    mismatches: sumOf(mismatches),
    inconclusive: sumOf(inconclusive),
    secondWriterWrites,
    unsupported: Object.fromEntries([...counters.unsupported].map(([form, { calls }]) => [form, calls])),
    newErrors: Object.fromEntries(counters.newErrors),
    byCommand,
    automatic,
  };
}

const sumOf = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((a, b) => a + b, 0);

function merged(all: readonly ReadonlyMap<string, number>[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const counts of all) for (const [name, count] of counts) increment(sums, name, count);
  return Object.fromEntries(sums);
}

/** Calls by form, without the forms that are harmless for clients. */
function breaking(all: readonly WorkloadCounters['unsupported'][]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const forms of all) for (const [form, { calls }] of forms) if (!(form in HARMLESS)) increment(sums, form, calls);
  return Object.fromEntries(sums);
}
