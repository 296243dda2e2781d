/** What was read off the live nodes of a topology; what is unknown is null. */

export interface Peer {
  /** `host:port`, as the node names it. */
  readonly address: string;
  readonly up: boolean;
}

/** A client that is connected now, and whose last command writes. */
export interface Writer {
  /** Its name, or its host. */
  readonly who: string;
  readonly command: string;
}

export interface NodeFacts {
  /** Where it was asked, for people. */
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
  /** Bytes that its replication stream has grown by each second, while it was watched. */
  readonly streamBytesPerSecond: number;
  /** Full resyncs that it has served since it started. */
  readonly syncFull: number;
  readonly aof: boolean;
  /** 0: no limit. */
  readonly maxmemory: number;
  readonly policy: string;
  readonly evicted: number;
  readonly clock: { readonly offsetMs: number; readonly errorMs: number };
  /** Calls since it started; those that its peers sent are among them, but for scripts. */
  readonly calls: ReadonlyMap<string, number>;
  /** Null if it does not list its clients. */
  readonly writers: readonly Writer[] | null;
}

export interface UnreadNode {
  readonly label: string;
  readonly why: string;
}

/** Nodes that replicate from each other, whichever way. */
export interface Cluster {
  /** Names of the shards whose target is one of them, with the region that the plan says. */
  readonly shards: readonly { readonly name: string; readonly region: string | null; readonly runId: string | null }[];
  readonly nodes: readonly NodeFacts[];
  readonly unread: readonly UnreadNode[];
}

/** Whether clients may write there. */
export const acceptsWrites = ({ role, readOnly }: NodeFacts): boolean => role !== 'slave' || !readOnly;

export const isActive = ({ role }: NodeFacts): boolean => role === 'active-replica';

/**
 * Whether KeyDB keeps one object, and so one time of change, for all keys with the same whole number from 0 to 9999
 * (Redis' shared integers: not with a limit of memory and an LRU or LFU policy). A full resync goes by these times.
 */
export const sharesIntegers = ({ maxmemory, policy }: NodeFacts): boolean => maxmemory === 0 || !/l[rf]u/.test(policy);
