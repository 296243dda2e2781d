/** Facts about a Redis Cluster as a whole; those of each master are in its `InstanceFacts`. */
import type { SlotMaster } from '../../plan/cluster-shards.js';

export interface ClusterFacts {
  /** `cluster_state` of the node that was asked. */
  readonly state: string;
  /** The masters that have slots, by their lowest slot: in the same order as their `InstanceFacts`. */
  readonly masters: readonly MasterFacts[];
  /** Nodes that others report as failed, or cannot reach: `host:port`. */
  readonly failed: readonly string[];
  /** Number of slots that no master serves. */
  readonly unserved: number;
  /** Number of slots that are being moved between masters. */
  readonly moving: number;
  /** Number of keys in each slot; null if a master refuses to count them. */
  readonly keysBySlot: Uint32Array | null;
}

export interface MasterFacts extends SlotMaster {
  /** `host:port` of each replica. */
  readonly replicas: readonly string[];
}
