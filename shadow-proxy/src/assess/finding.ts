/** One line of an assessment, and its input. */
import type { SlotMaster } from '../plan/cluster-shards.js';
import type { Advice } from './cluster/advice.js';
import type { ClusterFacts } from './cluster/cluster-facts.js';
import type { SlotTraffic } from './cluster/traffic.js';
import type { SlotWeights } from './cluster/weights.js';
import type { InstanceFacts } from './instance-facts.js';

/**
 * `go`: a reason for a migration. `no-go`: a reason against it. `first`: must be done before it. `note`: should be
 * known. `unknown`: could not be determined.
 */
export type Weight = 'go' | 'no-go' | 'first' | 'note' | 'unknown';

export interface Finding {
  readonly about: string;
  readonly weight: Weight;
  readonly what: string;
  readonly means: string;
}

/** Features that only a managed Redis has. The operator may say that they are needed. */
export const MANAGED_ONLY: Readonly<Record<string, string>> = {
  sla: 'an availability contract (SLA)',
  patching: 'security patches installed by a provider',
  'global-datastore': 'replication between regions, run by a provider',
  serverless: 'automatic scaling with the load',
};

/** Sources that are the masters of one cluster. */
export interface ClusterQuestion {
  /** The facts, in the order of the sources. */
  readonly facts: ClusterFacts;
  readonly weights: SlotWeights;
  /** The masters of the target, if it is a cluster already. */
  readonly targetMasters: readonly SlotMaster[] | null;
  /** Traffic by slot; null if MONITOR was not requested. */
  readonly traffic: ReadonlyMap<number, SlotTraffic> | null;
  /** Null if there are more masters than the kit was tested with. */
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
  /** Commands per second that one proxy handled in a measurement (docs/capacity.md). */
  readonly proxyOps: number;
}
