/** What was read of a Redis Cluster as a whole; what each of its masters says of itself is in its `InstanceFacts`. */
import type { SlotMaster } from '../../plan/cluster.js';

export interface ClusterFacts {
  /** `cluster_state` of the node that was asked. */
  readonly state: string;
  /** The masters that have slots, by their lowest slot: in the order of their `InstanceFacts`. */
  readonly masters: readonly MasterFacts[];
  /** Nodes that the others call failed, or do not reach: `host:port`. */
  readonly failed: readonly string[];
  /** Slots that no master serves. */
  readonly unserved: number;
  /** Slots that are being moved between masters. */
  readonly moving: number;
  /** Keys of each slot; null if a master refuses to count them. */
  readonly keysBySlot: Uint32Array | null;
}

export interface MasterFacts extends SlotMaster {
  /** `host:port` of each. */
  readonly replicas: readonly string[];
}
