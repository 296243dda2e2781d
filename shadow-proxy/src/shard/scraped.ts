/**
 * What a shard reports to a scrape besides its snapshot: gates, guard, leases, certificates. Pure data.
 */
import { X509Certificate } from 'node:crypto';
import type { HeldLease } from '../lease/ownership.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import type { LatencyWindow } from '../storage/evidence.js';
import type { WatchSnapshot, WorkloadWatch } from '../telemetry/snapshot.js';
import { SIDES, type Side } from '../route/stage.js';
import type { NextStage } from '../stages/next-stage.js';
import type { Glance } from '../stages/evidence-collector.js';

export function watchOf(
  plan: Plan,
  shard: ShardPlan,
  leases: Readonly<Record<Side, Pick<HeldLease, 'held' | 'dialer'>>>,
  { outlook, guard, workloadLatencies, ...glance }: Glance,
): WatchSnapshot {
  return {
    ...glance,
    leases: { source: leases.source.held, target: leases.target.held },
    queueLimitBytes: plan.limits.queueBytes,
    workloads: outlook.map((next) => workloadWatch(next, workloadLatencies.get(next.workload)!)),
    guard: guard.map(({ workload, verdict }) => ({ workload, verdict })),
    certificates: certificatesOf(shard, leases),
  };
}

const workloadWatch = (
  { workload, gates, evidence: { since, verified } }: NextStage,
  { source, target }: LatencyWindow,
): WorkloadWatch => ({
  workload,
  gates: Object.fromEntries(gates.map(({ name, answer }) => [name, answer])),
  since: Date.parse(since),
  verifiedAt: verified && Date.parse(verified.endedAt),
  latency: { source, target },
});

/** The proxy's certificates from the plan, and the servers' as they were last seen. */
function certificatesOf(
  shard: ShardPlan,
  leases: Readonly<Record<Side, Pick<HeldLease, 'held' | 'dialer'>>>,
): Record<string, number> {
  const ends: Record<string, number | null> = { listener: endOf(shard.listen.tls?.cert) };
  for (const side of SIDES) {
    ends[side] = leases[side].dialer.certificateEndsAt;
    ends[`${side}-client`] = endOf(shard[side].tls?.cert);
  }
  return Object.fromEntries(Object.entries(ends).filter((each): each is [string, number] => each[1] !== null));
}

const endOf = (pem: Buffer | undefined): number | null =>
  pem === undefined ? null : Date.parse(new X509Certificate(pem).validTo);
