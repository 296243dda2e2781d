/**
 * What a key holds, free of any encoding. All bytes are Buffers; those that come from `decodeDump` are
 * views of the payload, so keep them no longer than the payload may live.
 */
export type Value = StringValue | ListValue | SetValue | HashValue | ZsetValue | StreamValue;

export interface StringValue {
  readonly type: 'string';
  readonly bytes: Buffer;
}

/** Head first. */
export interface ListValue {
  readonly type: 'list';
  readonly items: readonly Buffer[];
}

/** Distinct, in no meaningful order. */
export interface SetValue {
  readonly type: 'set';
  readonly members: readonly Buffer[];
}

/** Distinct fields, in no meaningful order. */
export interface HashValue {
  readonly type: 'hash';
  readonly fields: readonly HashField[];
}

export interface HashField {
  readonly field: Buffer;
  readonly value: Buffer;
  /** When the field expires, in Unix milliseconds (Redis 7.4 and later); absent when it does not. */
  readonly expireAt?: number;
}

/** Distinct members, in no meaningful order; a score is never NaN. */
export interface ZsetValue {
  readonly type: 'zset';
  readonly members: readonly ZsetMember[];
}

export interface ZsetMember {
  readonly member: Buffer;
  readonly score: number;
}

/** Both halves are unsigned 64-bit numbers. */
export interface StreamId {
  readonly ms: bigint;
  readonly seq: bigint;
}

export interface StreamValue {
  readonly type: 'stream';
  /** In the order of their IDs, without deleted entries. May be empty. */
  readonly entries: readonly StreamEntry[];
  readonly lastId: StreamId;
  /** What Redis counts since 7.0; null if the server that wrote the payload does not. */
  readonly counters: StreamCounters | null;
  readonly groups: readonly StreamGroup[];
  /**
   * The payload counts its entries wrongly; servers restore and serve such a stream, with that XLEN. `entries` are
   * those that XRANGE serves.
   */
  readonly miscounted?: true;
}

export interface StreamEntry {
  readonly id: StreamId;
  /** Fields and values, alternating. */
  readonly fields: readonly Buffer[];
}

export interface StreamCounters {
  readonly entriesAdded: bigint;
  readonly maxDeletedId: StreamId;
}

export interface StreamGroup {
  readonly name: Buffer;
  readonly lastId: StreamId;
  /** Entries that the group has read (Redis 7.0 and later); null when the server does not know. */
  readonly entriesRead: bigint | null;
  readonly consumers: readonly StreamConsumer[];
  /** Pending entries that XNACK has taken from their consumers (Redis 8.8); absent if there are none. */
  readonly released?: number;
}

export interface StreamConsumer {
  readonly name: Buffer;
  /** Unix milliseconds of the last attempt to read. */
  readonly seenAt: bigint;
  /** Unix milliseconds of the last successful read, -1 for never; null before Redis 7.2. */
  readonly activeAt: bigint | null;
  /** In the order of their IDs; an entry may be pending although it has been deleted. */
  readonly pending: readonly PendingEntry[];
}

export interface PendingEntry {
  readonly id: StreamId;
  /** Unix milliseconds. */
  readonly deliveredAt: bigint;
  readonly deliveries: bigint;
}
