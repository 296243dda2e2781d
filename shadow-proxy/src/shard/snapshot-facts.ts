/** Collects the numbers for a shard's snapshot from the parts of the shard. */
import type { Jobs } from '../copy/job/jobs.js';
import type { Failover } from '../health/failover.js';
import type { HealthMonitor } from '../health/monitor.js';
import type { SlotWatch } from '../health/slot-watch.js';
import { monotonicMs, unixMs } from '../io/clock.js';
import type { Authorities } from '../pipeline/authorities.js';
import { reservationsOf } from '../pipeline/key-locks.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { workloadIn } from '../plan/plan.js';
import type { Workload } from '../route/router.js';
import { authoritiesOf, otherSide, SIDES, type Side } from '../route/stage.js';
import type { Clients } from '../session/clients.js';
import type { Fence } from '../stages/fence.js';
import type { Automatic } from '../stages/automatic.js';
import type { Flipper } from '../stages/flip.js';
import type { Adjudicator } from '../suspects/adjudicator.js';
import type { Suspects } from '../suspects/suspects.js';
import type { DeferredPairs } from '../suspects/deferred.js';
import type { Settings } from './settings.js';
import type {
  ConditionFacts,
  MirrorFacts,
  ServerFacts,
  ShardFacts,
  WorkloadConditionFacts,
  WorkloadFacts,
} from './snapshot.js';

/** The parts that know the condition of a shard. */
export interface ConditionParts {
  readonly sequencer: Sequencer;
  readonly suspects: Suspects;
  readonly adjudicator: Pick<Adjudicator, 'undecided' | 'asksOf'>;
  readonly deferred: Pick<DeferredPairs, 'pending'>;
  readonly monitor: Pick<HealthMonitor, 'silentMs'>;
  readonly failover: Pick<Failover, 'snapshot' | 'count'>;
  readonly jobs: Pick<Jobs, 'snapshot' | 'earlier'>;
  readonly authorities: Pick<Authorities, 'frozen'>;
}

/** What counts clients and their commands. */
export type CountedClients = Pick<Clients, 'sessions' | 'limits' | 'counts' | 'errors' | 'counterWatch' | 'replicas'>;

export interface ObservedParts extends ConditionParts {
  readonly name: string;
  /** When the shard was built, in ms of the monotonic clock. */
  readonly since: number;
  readonly settings: Pick<Settings, 'plan'>;
  readonly clients: CountedClients;
  /** Connections that were closed because they were silent. */
  readonly silenced: Readonly<Record<Side, number>>;
  readonly flipper: Pick<Flipper, 'flips'>;
  readonly fence: Pick<Fence, 'snapshot'>;
  readonly automatic: Pick<Automatic, 'snapshot'>;
  readonly slotWatch: Pick<SlotWatch, 'describe'>;
}

const NO_SUSPECTS = { total: 0, acknowledged: 0 };

/** @param now in ms of the monotonic clock */
export function conditionFactsOf(parts: ConditionParts, now = monotonicMs()): ConditionFacts {
  const { sequencer, suspects, failover, monitor } = parts;
  const { workloads } = sequencer.router;
  const suspectsOf = suspects.byWorkload();
  const mirrored = mirroredBy(workloads);
  return {
    plain: {
      frozen: parts.authorities.frozen,
      outage: failover.snapshot((side) => monitor.silentMs(side)),
      failovers: failover.count,
      job: parts.jobs.snapshot(),
    },
    mirrors: {
      source: mirrorFacts(sequencer, 'source', now, mirrored.includes('source')),
      target: mirrorFacts(sequencer, 'target', now, mirrored.includes('target')),
    },
    dropped: sequencer.dropped,
    asked: parts.adjudicator.undecided + parts.deferred.pending,
    suspects: { total: suspects.size, byReason: suspects.byReason() },
    workloads: workloads.map((workload) =>
      conditionOfWorkload(workload, suspectsOf.get(workload) ?? NO_SUSPECTS, suspects.workloads, parts),
    ),
  };
}

export function factsOf(parts: ObservedParts): ShardFacts {
  const { sequencer, clients } = parts;
  const now = monotonicMs();
  const { workloads, positions, otherShards } = sequencer.router;
  const ofOtherShards = sequencer.counters.of(otherShards);
  const used = [...mirroredBy(workloads), ...authoritiesOf(positions)];
  const condition = conditionFactsOf(parts, now);
  return {
    ...condition,
    plain: {
      name: parts.name,
      ...condition.plain,
      clients: clients.sessions.size,
      clientBytes: clients.limits.bytes,
      clientsClosed: { ...clients.limits.closed },
      replyFailures: sequencer.failures.count,
      operations: clients.counts.operations,
      crossWorkload: { split: clients.counts.split, refused: clients.counts.refused },
      replicaReads: clients.replicas?.reads ?? 0,
      otherShardCommands: ofOtherShards.reads + ofOtherShards.writes,
      clientErrors: clients.errors.snapshot(),
      clientErrorOrigins: clients.errors.origins,
      latency: { source: sequencer.latencies.source.snapshot(), target: sequencer.latencies.target.snapshot() },
      clockAheadMs: sequencer.mirrors.target.clockAheadMs,
      reservations: reservationsOf(
        SIDES.flatMap((side) => [...sequencer.lanes[side].allLocks()]),
        now,
      ),
      flips: parts.flipper.flips,
      fence: parts.fence.snapshot(),
      movedSlots: parts.slotWatch.describe(),
      fieldTtls: sequencer.fieldTtls && { keys: sequencer.fieldTtls.size, stripped: sequencer.fieldTtls.stripped },
      counting: clients.counterWatch.snapshot(),
      earlierJobs: parts.jobs.earlier(),
      uptimeMs: now - parts.since,
    },
    now: unixMs(),
    servers: {
      source: serverFacts(parts, 'source', used.includes('source')),
      target: serverFacts(parts, 'target', used.includes('target')),
    },
    workloads: workloads.map((workload, at) => workloadFacts(workload, condition.workloads[at], parts)),
  };
}

/** The sides that mirror a workload. */
const mirroredBy = (workloads: readonly Workload[]): Side[] =>
  SIDES.filter((side) =>
    workloads.some(
      ({ position: { keylessRule } }) => keylessRule.mirrorsWrites && otherSide(keylessRule.authority) === side,
    ),
  );

function serverFacts({ sequencer, monitor, silenced }: ObservedParts, side: Side, isUsed: boolean): ServerFacts {
  const {
    endpoint,
    runId,
    up,
    full,
    identity,
    problem,
    losses,
    traits: { version },
  } = sequencer.servers[side];
  return {
    url: endpoint.label,
    runId: runId || null,
    replId: identity?.replId || null,
    role: identity?.role || null,
    version: version || null,
    up,
    isUsed,
    problem,
    refusedDatabases: sequencer.mirrors[side].refused,
    full,
    evicted: losses.evicted,
    expired: losses.expired,
    evictedAt: losses.evictedAt,
    silentMs: monitor.silentMs(side),
    silentConnections: silenced[side],
  };
}

function mirrorFacts({ mirrors, lanes }: Sequencer, side: Side, now: number, isNeeded: boolean): MirrorFacts {
  const mirror = mirrors[side];
  return {
    lagMs: mirror.lagMs(now),
    queuedBytes: mirror.queuedBytes,
    queuedEffects: mirror.queued,
    gates: mirror.gates,
    isEmpty: mirror.isEmpty && [...lanes[otherSide(side)].allLocks()].every(({ withheld }) => withheld === 0),
    connected: mirror.connected,
    isNeeded,
  };
}

const conditionOfWorkload = (
  workload: Workload,
  suspects: WorkloadFacts['suspects'],
  whole: Suspects['workloads'],
  { adjudicator }: Pick<ConditionParts, 'adjudicator'>,
): WorkloadConditionFacts => ({
  name: workload.name,
  stage: workload.position.stage,
  percent: workload.position.percent,
  suspect: whole.of(workload),
  mirrors: workload.position.whole ? [otherSide(workload.position.keylessRule.authority)] : SIDES,
  suspects,
  asked: adjudicator.asksOf(workload),
});

const workloadFacts = (
  workload: Workload,
  condition: WorkloadConditionFacts,
  { automatic, clients, sequencer, settings }: ObservedParts,
): WorkloadFacts => ({
  ...condition,
  workloadClass: workloadIn(settings.plan, workload.name).class,
  counters: sequencer.counters.of(workload),
  secondWriterWrites: clients.counts.secondWriterWrites(workload),
  shadowReads: workloadIn(settings.plan, workload.name).shadowReads,
  byCommand: clients.counts.byCommand(workload),
  automatic: automatic.snapshot(workload),
});
