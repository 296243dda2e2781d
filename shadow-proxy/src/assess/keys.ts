/**
 * A sample of a server's keys, from the first page of SCAN on: what they are, and no value is read. SCAN gives them in
 * the order of their hashes, so a sample is a fair one; Redis from 7.4 on gives those of a cluster slot by slot.
 */
import type { Asker } from '../upstream/asker.js';
import { text, type Reply } from '../resp/decode.js';

export interface SampledKey {
  readonly db: number;
  readonly name: Buffer;
  readonly type: string;
  /** Such as `int` for a string that is a whole number; empty if the server does not say. */
  readonly encoding: string;
  /** As `MEMORY USAGE` estimates it; 0 where the server does not say. */
  readonly bytes: number;
  /** The number of elements of a collection, asked for from `MANY_BYTES` on; null for other keys. */
  readonly elements: number | null;
  /** Null for a key that does not expire. */
  readonly ttlMs: number | null;
}

/** KeyDB answers a COUNT of 100 or more from a snapshot, which harms it: upstream/scan-page.ts. */
const PAGE_KEYS = 99;
/** Less than this is no large key, however many elements it has. */
const MANY_BYTES = 64 * 1024;
const LENGTHS: Readonly<Record<string, string>> = {
  list: 'LLEN',
  set: 'SCARD',
  hash: 'HLEN',
  zset: 'ZCARD',
  stream: 'XLEN',
};

/**
 * A few small questions a key, page by page; ends early where SCAN or SELECT is refused.
 * @param databases keys of each: a database is sampled by its share of them
 * @param most keys of all databases together
 */
export async function* sampleKeys(
  asker: Asker,
  databases: ReadonlyMap<number, number>,
  most: number,
): AsyncGenerator<SampledKey, void, undefined> {
  const all = [...databases.values()].reduce((sum, keys) => sum + keys, 0);
  let left = most;
  for (const [db, keys] of databases) {
    // A server in cluster mode has one database, and need not be asked for it.
    if (db !== 0 || databases.size > 1) if ((await asker.may('SELECT', db)) === null) return;
    const spare = Math.max(0, left - Math.ceil((most * keys) / all));
    let cursor = '0';
    do {
      if (left <= spare) break;
      const page = await asker.may('SCAN', cursor, 'COUNT', Math.min(PAGE_KEYS, left - spare));
      if (page === null) return;
      const names = page.items![1].items!.slice(0, left - spare).map(({ data }) => data!);
      left -= names.length;
      yield* await describe(asker, db, names);
      cursor = text(page.items![0]);
    } while (cursor !== '0');
  }
}

/** Without those that have expired or were deleted meanwhile. */
async function describe(asker: Asker, db: number, names: readonly Buffer[]): Promise<SampledKey[]> {
  const replies = await asker.all(
    names.flatMap((name) => [
      ['TYPE', name],
      ['PTTL', name],
      ['MEMORY', 'USAGE', name],
      ['OBJECT', 'ENCODING', name],
    ]),
  );
  const found = names.map((name, i) => {
    const [type, ttl, bytes, encoding] = replies.slice(4 * i, 4 * i + 4);
    return {
      db,
      name,
      type: text(type),
      encoding: encoding.type === '$' ? text(encoding) : '',
      bytes: numberOf(bytes) ?? 0,
      ttlMs: Math.max(-1, numberOf(ttl) ?? -1),
    };
  });
  const there = found.filter(({ type }) => type !== 'none');
  const long = there.filter(({ type, bytes }) => bytes >= MANY_BYTES && type in LENGTHS);
  const lengths = await asker.all(long.map(({ type, name }) => [LENGTHS[type], name]));
  const elements = new Map(long.map((key, i) => [key, numberOf(lengths[i])]));
  return there.map((key) => ({
    ...key,
    elements: elements.get(key) ?? null,
    ttlMs: key.ttlMs === -1 ? null : key.ttlMs,
  }));
}

/** Null for anything but a number: an error, or a key that has expired. */
const numberOf = (reply: Reply): number | null => (reply.type === ':' ? Number(text(reply)) : null);
