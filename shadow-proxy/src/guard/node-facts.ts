/** Facts that were read from the live nodes of a topology; unknown facts are null. */

export interface Peer {
  /** `host:port`, as the node reports it. */
  readonly address: string;
  readonly up: boolean;
}

/** A client that is connected now, and whose last command was a write. */
export interface Writer {
  /** The client's name, or its host. */
  readonly who: string;
  readonly command: string;
}

export interface NodeFacts {
  /** The node's address, for people. */
  readonly label: string;
  readonly runId: string;
  readonly version: string;
  readonly isKeydb: boolean;
  /** `master`, `slave` or `active-replica`. */
  readonly role: string;
  readonly readOnly: boolean;
  readonly masters: readonly Peer[];
  readonly replicas: readonly Peer[];
  readonly backlogBytes: number;
  /** Growth of the node's replication stream while it was watched, in bytes per second. */
  readonly streamBytesPerSecond: number;
  /** Full resyncs that the node has served since it started. */
  readonly syncFull: number;
  readonly aof: boolean;
  /** 0: no limit. */
  readonly maxmemory: number;
  readonly policy: string;
  readonly evicted: number;
  readonly clock: { readonly offsetMs: number; readonly errorMs: number };
  /** Calls since the node started. They include those that its peers sent, except for scripts. */
  readonly calls: ReadonlyMap<string, number>;
  /** Null if the node does not list its clients. */
  readonly writers: readonly Writer[] | null;
}

export interface UnreadNode {
  readonly label: string;
  readonly why: string;
}

/** Nodes that replicate from each other, directly or not. */
export interface Cluster {
  /** The shards whose target is one of the nodes, each with its region in the plan. */
  readonly shards: readonly { readonly name: string; readonly region: string | null; readonly runId: string | null }[];
  readonly nodes: readonly NodeFacts[];
  readonly unread: readonly UnreadNode[];
}

/** Whether clients may write to the node. */
export const acceptsWrites = ({ role, readOnly }: NodeFacts): boolean => role !== 'slave' || !readOnly;

export const isActive = ({ role }: NodeFacts): boolean => role === 'active-replica';

/**
 * Whether KeyDB keeps one object, and so one time of change, for all keys that hold the same whole number from 0 to
 * 9999. These are Redis's shared integers; they are not used with a memory limit and an LRU or LFU policy. A full
 * resync compares these times.
 */
export const sharesIntegers = ({ maxmemory, policy }: NodeFacts): boolean => maxmemory === 0 || !/l[rf]u/.test(policy);
