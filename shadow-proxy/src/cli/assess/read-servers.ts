/** Reads what `assess` needs: from the sources, the target, and a cluster's slots. */
import { MAX_SOURCE_MASTERS } from '../../assess/about-cluster.js';
import { PROXY_SHARE } from '../../assess/about-load.js';
import { advise, type Wanted } from '../../assess/cluster/advice.js';
import { MAX_MASTERS } from '../../assess/cluster/layout.js';
import { readSlots, type FoundCluster } from '../../assess/cluster/read-cluster.js';
import { SlotSample, type SlotTraffic } from '../../assess/cluster/traffic.js';
import { total, weigh } from '../../assess/cluster/weights.js';
import type { InstanceFacts } from '../../assess/instance-facts.js';
import type { ClusterQuestion } from '../../assess/finding.js';
import { monitor, type SeeKey } from '../../assess/monitor.js';
import { readInstance } from '../../assess/read-instance.js';
import { askingAll } from '../../upstream/asker.js';
import { announceMonitor } from '../monitor-option.js';
import { findSources, type Seeds, type Sources } from '../sources.js';

/** From docs/figures.json, shadow@1, rounded down: pipeline 1, stage shadow, on two shared cores. */
export const PROXY_OPS = 59_000;

export interface AssessRequest {
  readonly sources: readonly Seeds[];
  readonly target: Seeds | null;
  /** How long the load is watched. */
  readonly watchMs: number;
  /** How long MONITOR runs afterwards; null: not at all. */
  readonly monitorMs: number | null;
}

export interface Read {
  readonly sources: readonly InstanceFacts[];
  readonly target: InstanceFacts | null;
  /** The cluster to which the sources belong; null if they are single servers. */
  readonly cluster: FoundCluster | null;
  /** The target's masters, or its one server. */
  readonly targets: Sources | null;
  /** The cluster's traffic, if MONITOR ran. */
  readonly traffic: ReadonlyMap<number, SlotTraffic> | null;
}

/** Reads all servers at once, so that they are watched at the same time. @throws {AskError} */
export async function readAll({ sources, target, watchMs, monitorMs }: AssessRequest): Promise<Read> {
  const [from, to] = await Promise.all([findSources(sources), target && findSources([target])]);
  const read = await askingAll([...from.endpoints, ...(to?.endpoints.slice(0, 1) ?? [])], (endpoint, signal) =>
    readInstance(endpoint, { watchMs }, signal),
  );
  const facts = read.slice(0, from.endpoints.length);
  const there = read.at(from.endpoints.length) ?? null;
  const sample = from.cluster === null ? null : new SlotSample();
  const monitored = monitorMs === null ? facts : await monitorAll(facts, from, monitorMs, sample?.add.bind(sample));
  return {
    sources: monitored,
    target: there,
    cluster: from.cluster,
    targets: to,
    traffic: monitorMs === null ? null : (sample?.slots ?? null),
  };
}

/** MONITOR runs last, because it would distort the other measurements. */
function monitorAll(
  facts: readonly InstanceFacts[],
  { endpoints }: Sources,
  ms: number,
  seeKey: SeeKey | undefined,
): Promise<InstanceFacts[]> {
  announceMonitor(endpoints.length, ms);
  return askingAll(facts, async (source, signal, i) => ({
    ...source,
    monitored: await monitor(endpoints[i], ms, seeKey, signal),
  }));
}

/** With fewer commands per second, the distribution of the load is unknown. */
const IDLE_OPS = 100;

export interface Wish extends Pick<Wanted, 'kind'> {
  /** Number of masters; null: one for each of the source, at most `MAX_MASTERS`. */
  readonly masters: number | null;
  /** What is balanced; null: the load, or the memory if the cluster is idle. */
  readonly by: Wanted['by'] | null;
  /** Commands per second that one proxy handled in a measurement. */
  readonly proxyOps: number;
}

/** The slots of a cluster, and the recommended layout of the target; null if the sources are single servers. */
export async function questionOf(
  { sources, cluster, targets, traffic }: Read,
  wish: Wish,
): Promise<ClusterQuestion | null> {
  if (cluster === null) return null;
  const facts = await readSlots(cluster);
  const weights = weigh(facts, sources, traffic);
  const capacity = wish.proxyOps * PROXY_SHARE;
  const masters = wish.masters ?? Math.min(MAX_MASTERS, facts.masters.length);
  const by = wish.by ?? (total(weights.load) < IDLE_OPS ? 'memory' : 'load');
  return {
    facts,
    weights,
    traffic,
    targetMasters: targets?.cluster?.facts.masters ?? null,
    advice:
      facts.masters.length > MAX_SOURCE_MASTERS
        ? null
        : advise(facts.masters, weights, { kind: wish.kind, masters, by, capacity }),
    capacity,
  };
}
