/** Which keys differ between the two servers, kept up to date with each change. */
import type { SortedSet } from '../server/sorted-set.js';
import { compareIds, formatId, pendingInOrder, type Stream } from '../server/stream.js';
import type { Entry } from '../server/values.js';
import { keyName, partsOf, type KeyName } from '../world/key-name.js';
import type { ServerHost } from '../world/server-host.js';

/** By how much the expiry of a key may differ, in milliseconds, by the clocks of both servers. */
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
    const equal = isEqual(lifeOf(this.source, key), lifeOf(this.target, key));
    if (equal || this.isLeftOut(partsOf(key).name)) this.differing.delete(key);
    else if (!this.differing.has(key)) this.differing.set(key, now);
    return equal;
  }

  /** Compares all keys of both. */
  compareAll(now: number): void {
    for (const { model } of [this.source, this.target])
      for (const [db, keys] of model.keyspace()) for (const key of keys.keys()) this.compare(keyName(db, key), now);
    for (const key of [...this.differing.keys()]) this.compare(key, now);
  }

  isAloneOn(server: ServerHost, key: KeyName): boolean {
    const other = server === this.source ? this.target : this.source;
    return server.entry(key) !== undefined && other.entry(key) === undefined;
  }

  show(key: KeyName): string {
    return `${key}: source ${show(this.source.entry(key))}, target ${show(this.target.entry(key))}`;
  }
}

/** What a server holds at a key, and for how long by its own clock. */
interface Life {
  readonly entry: Entry;
  /** Infinity where it does not expire. */
  readonly leftMs: number;
}

function lifeOf(server: ServerHost, key: KeyName): Life | undefined {
  const entry = server.entry(key);
  return entry && { entry, leftMs: entry.expireAt === -1 ? Infinity : entry.expireAt - server.unixMs };
}

function isEqual(a: Life | undefined, b: Life | undefined): boolean {
  if (a === undefined || b === undefined) {
    const other = a ?? b;
    // One of the two may expire a moment before the other.
    return other === undefined || other.leftMs <= TTL_TOLERANCE_MS;
  }
  if (a.entry.type !== b.entry.type) return false;
  if (a.leftMs !== b.leftMs && !(Math.abs(a.leftMs - b.leftMs) <= TTL_TOLERANCE_MS)) return false;
  return a.entry.value === b.entry.value || SAME[a.entry.type](a.entry.value, b.entry.value);
}

type Values = readonly string[];
const sameList = (a: Values, b: Values): boolean => a.length === b.length && a.every((each, at) => each === b[at]);

/** Whether two values of a type are the same. Those of hashes and sets have no order. */
const SAME: Readonly<Record<Entry['type'], (a: unknown, b: unknown) => boolean>> = {
  string: (a, b) => a === b,
  list: (a, b) => sameList(a as Values, b as Values),
  hash: (a, b) => sameFields(a as ReadonlyMap<string, string>, b as ReadonlyMap<string, string>),
  set: (a, b) => sameMembers(a as ReadonlySet<string>, b as ReadonlySet<string>),
  zset: (a, b) => sameFields((a as SortedSet).scores, (b as SortedSet).scores),
  stream: (a, b) => sameStream(a as Stream, b as Stream),
};

function sameFields<T>(a: ReadonlyMap<string, T>, b: ReadonlyMap<string, T>): boolean {
  if (a.size !== b.size) return false;
  for (const [field, value] of a) if (b.get(field) !== value) return false;
  return true;
}

function sameMembers(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  if (a.size !== b.size) return false;
  for (const member of a) if (!b.has(member)) return false;
  return true;
}

/** Of groups, what `plainStream` shows of them. */
function sameStream(a: Stream, b: Stream): boolean {
  if (compareIds(a.lastId, b.lastId) !== 0 || a.entries.length !== b.entries.length) return false;
  for (const [at, { id, fields }] of a.entries.entries())
    if (compareIds(id, b.entries[at].id) !== 0 || !sameList(fields, b.entries[at].fields)) return false;
  if (a.groups.size === 0 && b.groups.size === 0) return true;
  return plainStream(a) === plainStream(b);
}

/** The value as text: collections without an order are sorted. */
export function plain({ type, value }: Entry): string {
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
