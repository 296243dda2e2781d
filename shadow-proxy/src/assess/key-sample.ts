/**
 * A sample of a server's keys, from the first pages of SCAN. Only facts about the keys are read, never a value. SCAN
 * returns keys in the order of their hashes, so the sample is fair; Redis from 7.4 on returns those of a cluster slot
 * by slot.
 */
import type { Asker } from '../upstream/asker.js';
import { text, type Reply } from '../resp/decode.js';

export interface SampledKey {
  readonly db: number;
  readonly name: Buffer;
  readonly type: string;
  /** The encoding, such as `int` for a string that is a whole number; empty if the server does not show it. */
  readonly encoding: string;
  /** The estimate of `MEMORY USAGE`; 0 if the server does not give one. */
  readonly bytes: number;
  /** The number of elements of a collection of `MANY_BYTES` or more; null for other keys. */
  readonly elements: number | null;
  /** Null for a key without a TTL. */
  readonly ttlMs: number | null;
}

/** KeyDB answers a COUNT of 100 or more from a snapshot, which harms it: upstream/scan-page.ts. */
const PAGE_KEYS = 99;
/** A key with fewer bytes is not large, however many elements it has. */
const MANY_BYTES = 64 * 1024;
const LENGTHS: Readonly<Record<string, string>> = {
  list: 'LLEN',
  set: 'SCARD',
  hash: 'HLEN',
  zset: 'ZCARD',
  stream: 'XLEN',
};

/**
 * Sends a few small questions for each key, page by page; ends early if SCAN or SELECT is refused.
 * @param databases number of keys of each database, which determines its share of the sample
 * @param most maximum number of keys from all databases together
 */
export async function* sampleKeys(
  asker: Asker,
  databases: ReadonlyMap<number, number>,
  most: number,
): AsyncGenerator<SampledKey, void, undefined> {
  const all = [...databases.values()].reduce((sum, keys) => sum + keys, 0);
  let left = most;
  for (const [db, keys] of databases) {
    // A server in cluster mode has one database, so SELECT is not needed.
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

/** Leaves out keys that have expired or were deleted meanwhile. */
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

/** Null if the reply is no number: an error, or a key that has expired. */
const numberOf = (reply: Reply): number | null => (reply.type === ':' ? Number(text(reply)) : null);
