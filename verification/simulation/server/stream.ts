/** A stream: entries in the order of their IDs, and the groups that read them. */

export interface Id {
  readonly ms: bigint;
  readonly seq: bigint;
}

export const ZERO_ID: Id = { ms: 0n, seq: 0n };

const MAX_64 = 2n ** 64n - 1n;
export const MAX_ID: Id = { ms: MAX_64, seq: MAX_64 };

export const compareIds = (a: Id, b: Id): number =>
  a.ms < b.ms ? -1 : a.ms > b.ms ? 1 : a.seq < b.seq ? -1 : a.seq > b.seq ? 1 : 0;
export const formatId = ({ ms, seq }: Id): string => `${ms}-${seq}`;

/** The next higher ID; null after the highest. */
export const nextId = ({ ms, seq }: Id): Id | null =>
  seq < MAX_64 ? { ms, seq: seq + 1n } : ms < MAX_64 ? { ms: ms + 1n, seq: 0n } : null;
/** The next lower ID; null before the lowest. */
export const previousId = ({ ms, seq }: Id): Id | null =>
  seq > 0n ? { ms, seq: seq - 1n } : ms > 0n ? { ms: ms - 1n, seq: MAX_64 } : null;

export interface StreamEntry {
  readonly id: Id;
  /** Fields and values, alternating. */
  readonly fields: readonly string[];
}

export interface Pending {
  readonly id: Id;
  consumer: Consumer;
  deliveredAt: number;
  deliveries: number;
}

export interface Consumer {
  readonly name: string;
  seenAt: number;
  /** By `formatId`. */
  readonly pending: Map<string, Pending>;
}

export interface Group {
  readonly name: string;
  lastId: Id;
  /** Entries that the group has read, as Redis 7 counts them; null where it does not know. */
  entriesRead: number | null;
  readonly consumers: Map<string, Consumer>;
  /** By `formatId`. */
  readonly pending: Map<string, Pending>;
}

export class Stream {
  entries: StreamEntry[] = [];
  lastId: Id = ZERO_ID;
  maxDeletedId: Id = ZERO_ID;
  entriesAdded = 0;
  readonly groups = new Map<string, Group>();

  /** The index of the first entry whose ID is `id` or higher. */
  indexOf(id: Id): number {
    let [low, high] = [0, this.entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareIds(this.entries[middle].id, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  find(id: Id): StreamEntry | undefined {
    const found = this.entries[this.indexOf(id)];
    return found !== undefined && compareIds(found.id, id) === 0 ? found : undefined;
  }
}

export const pendingInOrder = (pending: ReadonlyMap<string, Pending>): Pending[] =>
  [...pending.values()].sort((a, b) => compareIds(a.id, b.id));
