/** One line of an assessment, and what it is found from. */
import type { SlotMaster } from '../plan/cluster.js';
import type { Advice } from './cluster/advice.js';
import type { ClusterFacts } from './cluster/facts.js';
import type { SlotTraffic } from './cluster/traffic.js';
import type { SlotWeights } from './cluster/weights.js';
import type { InstanceFacts } from './facts.js';

/**
 * `go` speaks for a migration, `no-go` against it; `first` has to be done before it; `note` should be known;
 * `unknown` could not be found out.
 */
export type Weight = 'go' | 'no-go' | 'first' | 'note' | 'unknown';

export interface Finding {
  readonly about: string;
  readonly weight: Weight;
  readonly what: string;
  readonly means: string;
}

/** What only a managed Redis gives, which the operator may say that they need. */
export const MANAGED_ONLY: Readonly<Record<string, string>> = {
  sla: 'an availability contract (SLA)',
  patching: 'security patches installed by a provider',
  'global-datastore': 'replication between regions, run by a provider',
  serverless: 'automatic scaling with the load',
};

/** Sources that are the masters of one cluster. */
export interface ClusterQuestion {
  /** In the order of the sources. */
  readonly facts: ClusterFacts;
  readonly weights: SlotWeights;
  /** The masters of the target, if it is a cluster already. */
  readonly targetMasters: readonly SlotMaster[] | null;
  /** Traffic by slot; null if MONITOR was not asked for. */
  readonly traffic: ReadonlyMap<number, SlotTraffic> | null;
  /** Null if there are more masters than the kit was tried with. */
  readonly advice: Advice | null;
  /** Commands per second that one proxy should get. */
  readonly capacity: number;
}

export interface Question {
  readonly sources: readonly InstanceFacts[];
  readonly cluster: ClusterQuestion | null;
  readonly target: InstanceFacts | null;
  /** Keys of `MANAGED_ONLY`. */
  readonly requires: readonly string[];
  /** Commands a second that one proxy was measured to take (docs/capacity.md). */
  readonly proxyOps: number;
}
