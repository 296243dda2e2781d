/** What one node of a cluster knows of it. */
export interface ClusterNode {
  /** 40 hexadecimal digits. */
  readonly id: string;
  readonly host: string;
  readonly port: number;
  /** The ID of its master; null for a master. */
  readonly masterId: string | null;
  /** First and last slot of each range; empty for a replica. */
  readonly slots: readonly (readonly [number, number])[];
}

/** What one node knows of its cluster. */
export interface ClusterView {
  /** The ID of this node. */
  readonly id: string;
  readonly nodes: readonly ClusterNode[];
  /** Slots that this node is moving (CLUSTER SETSLOT MIGRATING), and to which node. */
  readonly leaving: ReadonlyMap<number, ClusterNode>;
}
