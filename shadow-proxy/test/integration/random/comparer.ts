/**
 * Are two servers' keyspaces equal? Key by key, by what commands tell: it shares no code with the proxy and knows
 * nothing of it. Nobody may write while it works.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

export interface Difference {
  readonly db: number;
  /** Other bytes than printable ones are escaped. */
  readonly key: string;
  /**
   * `existence`, `type`, `value`, `expiry`; of streams also `last id`, `counters`, `groups`, `consumers`, `pending`.
   */
  readonly what: string;
  readonly a: string;
  readonly b: string;
}

export interface Comparison {
  /** Keys that at least one of the servers has. */
  readonly keys: number;
  readonly byType: Readonly<Record<string, number>>;
  readonly differences: readonly Difference[];
}

export interface ComparerOptions {
  readonly databases?: readonly number[];
  /** How much the expiry of a key may differ. */
  readonly ttlToleranceMs?: number;
}

const BATCH = 200;

/** Compares the servers `a` and `b`. @throws when a server refuses what is asked */
export async function compareKeyspaces(
  a: ServerAddress,
  b: ServerAddress,
  options: ComparerOptions = {},
): Promise<Comparison> {
  const { databases = [0, 1, 2, 3], ttlToleranceMs = 1000 } = options;
  const result = { keys: 0, byType: {} as Record<string, number>, differences: [] as Difference[] };
  for (const db of databases) {
    const [left, right] = [a, b].map(({ host, port }) => new Redis({ host, port, db, protocol: 2 }));
    try {
      const keys = await allKeys([left, right]);
      result.keys += keys.length;
      for (let at = 0; at < keys.length; at += BATCH) {
        const batch = keys.slice(at, at + BATCH);
        const [lefts, rights] = await Promise.all([read(left, batch), read(right, batch)]);
        for (const [i, key] of batch.entries()) {
          result.byType[lefts[i].type] = (result.byType[lefts[i].type] ?? 0) + 1;
          const found = compareEntries(lefts[i], rights[i], ttlToleranceMs);
          // Where only the last moment of a key is not the same moment, the end is.
          const expiring = found.length > 0 && (await outlived(left, right, key, lefts[i], rights[i], ttlToleranceMs));
          if (!expiring)
            result.differences.push(...found.map((difference) => ({ db, key: printable(key), ...difference })));
        }
      }
    } finally {
      left.disconnect();
      right.disconnect();
    }
  }
  return result;
}

async function allKeys(clients: readonly Redis[]): Promise<Buffer[]> {
  const found = new Map<string, Buffer>();
  for (const client of clients) {
    let cursor = '0';
    do {
      const [next, keys] = await client.scanBuffer(cursor, 'COUNT', 99);
      for (const key of keys) found.set(key.toString('latin1'), key);
      cursor = next.toString();
    } while (cursor !== '0');
  }
  return [...found.values()];
}

interface Entry {
  /** `none` where the server does not have the key. */
  readonly type: string;
  /** Milliseconds left; -1 if the key has no TTL, -2 if it does not exist. */
  readonly pttl: number;
  /** Text for each aspect that is compared. */
  readonly aspects: Readonly<Record<string, string>>;
}

/** How many milliseconds reading an entry may take; expiries that differ by less are not distinguished. */
const READING_MS = 50;

async function read(client: Redis, keys: readonly Buffer[]): Promise<Entry[]> {
  const heads = client.pipeline();
  for (const key of keys) heads.type(key).pttl(key);
  const replies = await ask(heads.exec());
  return Promise.all(keys.map((key, i) => readOne(client, key, String(replies[2 * i]), Number(replies[2 * i + 1]))));
}

async function readOne(client: Redis, key: Buffer, type: string, pttl: number): Promise<Entry> {
  const absent: Entry = { type: 'none', pttl: -2, aspects: {} };
  if (type === 'none') return absent;
  let aspects: Record<string, string>;
  try {
    aspects = type in READERS ? await READERS[type](client, key) : { value: `an unknown type ${type}` };
  } catch (error) {
    if ((await client.exists(key)) === 0) return absent;
    throw error;
  }
  // Redis 6.2 leaves a hash without a field behind where HINCRBYFLOAT fails: it is as good as no key.
  if (type === 'hash' && aspects.value === '') return absent;
  // It may have expired between the two looks: what the second saw is then no value.
  return pttl >= 0 && (await client.exists(key)) === 0 ? absent : { type, pttl, aspects };
}

async function ask(results: Promise<[Error | null, unknown][] | null>): Promise<unknown[]> {
  return ((await results) ?? []).map(([error, value]) => {
    if (error) throw error;
    return value;
  });
}

type Reader = (client: Redis, key: Buffer) => Promise<Record<string, string>>;

const READERS: Record<string, Reader> = {
  string: async (client, key) => ({ value: printable(withoutCache((await client.getBuffer(key)) ?? Buffer.alloc(0))) }),
  list: async (client, key) => ({ value: text(await client.lrangeBuffer(key, 0, -1)) }),
  set: async (client, key) => ({ value: (await client.smembersBuffer(key)).map(printable).sort().join(' ') }),
  hash: async (client, key) => ({
    value: pairs((await client.callBuffer('HGETALL', key)) as Buffer[])
      .sort()
      .join(' '),
  }),
  // Equal scores in the order of the server, which is that of the members.
  zset: async (client, key) => {
    const flat = (await client.callBuffer('ZRANGE', key, '0', '-1', 'WITHSCORES')) as Buffer[];
    // Redis forgets the sign of a zero in a small sorted set, KeyDB does not; and Valkey writes other digits for the
    // same number.
    return {
      value: text(
        flat.map((item, i) =>
          i % 2 === 1 && Number.isFinite(Number(item)) ? Buffer.from(`${Number(item) + 0}`) : item,
        ),
      ),
    };
  },
  stream: readStream,
};

async function readStream(client: Redis, key: Buffer): Promise<Record<string, string>> {
  const value = text(await client.callBuffer('XRANGE', key, '-', '+'));
  const info = fields(await client.callBuffer('XINFO', 'STREAM', key));
  const groups = ((await client.callBuffer('XINFO', 'GROUPS', key)) as unknown[]).map(fields);
  const described: string[] = [];
  const consumers: string[] = [];
  const pending: string[] = [];
  for (const group of groups) {
    described.push(`${group.name}: ${group['last-delivered-id']}, ${group.pending} pending`);
    const members = ((await client.callBuffer('XINFO', 'CONSUMERS', key, group.name)) as unknown[]).map(fields);
    consumers.push(...members.map(({ name, pending: count }) => `${group.name}/${name}: ${count}`));
    const entries = (await client.callBuffer('XPENDING', key, group.name, '-', '+', '1000000')) as unknown[][];
    // Without the third: how long ago it was delivered.
    pending.push(
      ...entries.map(([id, consumer, , deliveries]) => `${group.name}: ${text([id, consumer, deliveries])}`),
    );
  }
  const sorted = (lines: string[]): string => lines.sort().join('; ');
  return {
    value,
    'last id': info['last-generated-id'],
    // Where the server counts; what its groups have read, each release estimates in its own way.
    ...('entries-added' in info && { counters: `${info['entries-added']} ${info['max-deleted-entry-id']}` }),
    groups: sorted(described),
    consumers: sorted(consumers),
    pending: sorted(pending),
  };
}

/** A flat array of names and values, as text. */
function fields(reply: unknown): Record<string, string> {
  const flat = reply as unknown[];
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[text(name), text(flat[i + 1])]] : [])));
}

const pairs = (flat: readonly Buffer[]): string[] =>
  flat.flatMap((field, i) => (i % 2 === 0 ? [`${printable(field)}=${printable(flat[i + 1])}`] : []));

/** A HyperLogLog keeps its last count in bytes 8 to 15, which reading it may rewrite. */
function withoutCache(value: Buffer): Buffer {
  if (value.length < 16 || value.toString('latin1', 0, 4) !== 'HYLL') return value;
  return Buffer.concat([value.subarray(0, 8), Buffer.alloc(8), value.subarray(16)]);
}

function text(value: unknown): string {
  if (Buffer.isBuffer(value)) return printable(value);
  return Array.isArray(value) ? `[${value.map(text).join(' ')}]` : String(value);
}

/** As keys are shown in differences. */
export function printable(bytes: Buffer): string {
  return bytes
    .toString('latin1')
    .replace(/[^\x21-\x7e]|\\/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

type Found = Omit<Difference, 'db' | 'key'>;

function compareEntries(a: Entry, b: Entry, tolerance: number): Found[] {
  if (a.type !== b.type)
    return [{ what: a.type === 'none' || b.type === 'none' ? 'existence' : 'type', a: a.type, b: b.type }];
  const found: Found[] = Object.keys(a.aspects)
    .filter((what) => what in b.aspects && a.aspects[what] !== b.aspects[what])
    .map((what) => ({ what, ...around(a.aspects[what], b.aspects[what]) }));
  const lasting = [a.pttl, b.pttl].filter((pttl) => pttl < 0).length;
  const apart = lasting === 1 || (lasting === 0 && Math.abs(a.pttl - b.pttl) > tolerance + READING_MS);
  return apart ? [...found, { what: 'expiry', a: String(a.pttl), b: String(b.pttl) }] : found;
}

/** Both texts around the first place where they differ. */
function around(a: string, b: string): { a: string; b: string } {
  let at = 0;
  while (a[at] === b[at]) at++;
  const cut = (value: string): string =>
    `${at > 40 ? '…' : ''}${value.slice(Math.max(0, at - 40), at + 60)}${value.length > at + 60 ? '…' : ''} (${value.length})`;
  return { a: cut(a), b: cut(b) };
}

/** Whether the only difference is that one side's key expired a little sooner: waits for the other to follow. */
async function outlived(
  left: Redis,
  right: Redis,
  key: Buffer,
  a: Entry,
  b: Entry,
  tolerance: number,
): Promise<boolean> {
  const rest = a.type === 'none' ? b.pttl : b.type === 'none' ? a.pttl : -1;
  if (rest < 0 || rest > tolerance) return false;
  await sleep(rest + 5);
  return (await left.exists(key)) + (await right.exists(key)) === 0;
}
