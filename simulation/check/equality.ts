/** Which keys differ between the two servers, kept up to date with each change. */
import type { SortedSet } from '../server/sorted-set.js';
import { formatId, pendingInOrder, type Stream } from '../server/stream.js';
import type { Entry } from '../server/values.js';
import { partsOf, type KeyName } from '../world/key-name.js';
import type { ServerHost } from '../world/server-host.js';

/** By how much the expiry of a key may differ, in milliseconds, where the clocks agree. */
const TTL_TOLERANCE_MS = 50;

export class Equality {
  /** Keys that differ, with the time since when. */
  readonly differing = new Map<KeyName, number>();

  constructor(
    private readonly source: ServerHost,
    private readonly target: ServerHost,
    /** Keys that differ for another reason: they count as equal. */
    private readonly isLeftOut: (name: string) => boolean = () => false,
  ) {}

  /** Compares what was changed since the last call; `each` hears of what differs. */
  update(now: number, each?: (key: KeyName) => void): void {
    for (const { changed } of [this.source, this.target]) {
      if (changed.size === 0) continue;
      for (const key of changed) {
        if (!this.compare(key, now)) each?.(key);
      }
      changed.clear();
    }
  }

  /** Whether the key is equal, as clients would see it now. */
  compare(key: KeyName, now: number): boolean {
    const equal = isEqual(this.source.entry(key), this.target.entry(key), this.source.unixMs);
    if (equal || this.isLeftOut(partsOf(key).name)) this.differing.delete(key);
    else if (!this.differing.has(key)) this.differing.set(key, now);
    return equal;
  }

  /** Compares all keys of both. */
  compareAll(now: number): void {
    for (const { model } of [this.source, this.target])
      for (const [db, keys] of model.keyspace()) for (const key of keys.keys()) this.compare(`${db} ${key}`, now);
    for (const key of [...this.differing.keys()]) this.compare(key, now);
  }

  isOnTargetAlone(key: KeyName): boolean {
    return this.source.entry(key) === undefined && this.target.entry(key) !== undefined;
  }

  show(key: KeyName): string {
    return `${key}: source ${show(this.source.entry(key))}, target ${show(this.target.entry(key))}`;
  }
}

function isEqual(a: Entry | undefined, b: Entry | undefined, now: number): boolean {
  if (a === undefined || b === undefined) {
    const other = a ?? b;
    // One of the two may expire a moment before the other.
    return other === undefined || (other.expireAt !== -1 && other.expireAt - now <= TTL_TOLERANCE_MS);
  }
  if (a.type !== b.type) return false;
  if (Math.abs(a.expireAt - b.expireAt) > TTL_TOLERANCE_MS) return false;
  return a.value === b.value || plain(a) === plain(b);
}

/** The value as text: collections without an order are sorted. */
function plain({ type, value }: Entry): string {
  switch (type) {
    case 'string':
      return value as string;
    case 'list':
      return JSON.stringify(value);
    case 'hash':
      return JSON.stringify([...(value as Map<string, string>)].sort());
    case 'set':
      return JSON.stringify([...(value as Set<string>)].sort());
    case 'zset':
      return JSON.stringify((value as SortedSet).ordered().map(({ member, score }) => [member, String(score)]));
    case 'stream':
      return plainStream(value as Stream);
  }
}

/** Times and counts of deliveries are left out: the servers set them by their own clocks. */
function plainStream({ entries, lastId, groups }: Stream): string {
  return JSON.stringify([
    formatId(lastId),
    entries.map(({ id, fields }) => [formatId(id), ...fields]),
    [...groups.values()]
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, lastId: last, consumers, pending }) => [
        name,
        formatId(last),
        [...consumers.keys()].sort(),
        pendingInOrder(pending).map(({ id, consumer }) => [formatId(id), consumer.name]),
      ]),
  ]);
}

const show = (entry: Entry | undefined): string =>
  entry === undefined
    ? 'lacks it'
    : `has ${plain(entry).slice(0, 80)}${entry.expireAt === -1 ? '' : `, expires at ${entry.expireAt}`}`;
