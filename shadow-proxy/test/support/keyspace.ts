/**
 * What two servers hold, key by key, read with ordinary commands: it shares no code with the proxy's own comparison.
 */
import { Redis } from 'ioredis';

/** By how much the ends of two keys may differ, in ms: the proxy tolerates 50 on either side of a copy. */
const TTL_MS = 150;

interface Address {
  readonly host: string;
  readonly port: number;
  readonly username?: string;
  readonly password?: string;
  /** Set for a server that speaks TLS. */
  readonly tls?: object;
}

interface Key {
  readonly type: string;
  readonly value: string;
  /** When it ends, in Unix ms by the server's clock; null where it stays. */
  readonly endsAt: number | null;
}

const READS: Readonly<Record<string, (key: Buffer) => [string, ...(Buffer | string)[]]>> = {
  string: (key) => ['GET', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  hash: (key) => ['HGETALL', key],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
  stream: (key) => ['XRANGE', key, '-', '+'],
};

/** Every key of every database, as `db:key`. */
export async function keyspace({ host, port, username, password, tls }: Address): Promise<Map<string, Key>> {
  const client = new Redis({
    ...{ host, port, username, password, retryStrategy: () => null },
    ...(tls && { tls: { rejectUnauthorized: false } }),
  });
  try {
    const all = new Map<string, Key>();
    const databases = [...(await client.info('keyspace')).matchAll(/^db(\d+):/gm)].map((match) => Number(match[1]));
    for (const db of databases) {
      await client.select(db);
      const keys = (await client.callBuffer('KEYS', '*')) as Buffer[];
      await Promise.all(
        keys.map(async (key) => {
          const [type, endsAt] = await Promise.all([client.type(key), endOf(client, key)]);
          if (type !== 'none')
            all.set(`${db}:${key.toString('latin1')}`, { type, endsAt, value: await read(client, type, key) });
        }),
      );
    }
    return all;
  } finally {
    client.disconnect();
  }
}

/** At one moment of the server: when our replies are read says nothing on a busy machine. */
const ENDS_AT =
  "local ttl = redis.call('PTTL', KEYS[1]) if ttl < 0 then return false end local now = redis.call('TIME') return now[1] * 1000 + math.floor(now[2] / 1000) + ttl";

const endOf = (client: Redis, key: Buffer): Promise<number | null> =>
  client.eval(ENDS_AT, 1, key) as Promise<number | null>;

async function read(client: Redis, type: string, key: Buffer): Promise<string> {
  const reply = await client.callBuffer(...READS[type](key));
  if (type === 'set') return JSON.stringify((reply as Buffer[]).map(text).sort());
  if (type === 'hash') {
    const flat = (reply as Buffer[]).map(text);
    return JSON.stringify(flat.flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1]]] : [])).sort());
  }
  if (type === 'zset') return JSON.stringify((reply as Buffer[][]).map(([member, of]) => [text(member), score(of)]));
  return JSON.stringify(nested(reply));
}

/** The same number may be written with other digits, and zero with a sign. */
const score = (bytes: Buffer): string => String(Number(text(bytes).replace('inf', 'Infinity')) + 0);

const text = (bytes: Buffer): string => bytes.toString('latin1');
const nested = (reply: unknown): unknown =>
  Buffer.isBuffer(reply) ? text(reply) : Array.isArray(reply) ? reply.map(nested) : reply;

/** How the two differ: a line for each key, empty where they are equal. */
export const differences = (source: Address, target: Address): Promise<string[]> =>
  differencesOfAll([source], [target]);

/** Likewise of what the servers of each side hold together, each key on one of them. */
export async function differencesOfAll(sources: readonly Address[], targets: readonly Address[]): Promise<string[]> {
  const all = async (side: readonly Address[]): Promise<Map<string, Key>> =>
    new Map((await Promise.all(side.map(keyspace))).flatMap((keys) => [...keys]));
  const [a, b] = await Promise.all([all(sources), all(targets)]);
  const found: string[] = [];
  for (const [id, key] of a) {
    const twin = b.get(id);
    if (twin === undefined) found.push(`${id} is not on the target: ${key.value.slice(0, 120)}`);
    else if (twin.type !== key.type || twin.value !== key.value)
      found.push(`${id}: ${key.type} ${key.value.slice(0, 200)} ≠ ${twin.type} ${twin.value.slice(0, 200)}`);
    else if (
      key.endsAt === null || twin.endsAt === null
        ? key.endsAt !== twin.endsAt
        : Math.abs(key.endsAt - twin.endsAt) > TTL_MS
    ) {
      found.push(`${id}: it ends at ${key.endsAt} ≠ ${twin.endsAt} ms`);
    }
  }
  for (const id of b.keys()) if (!a.has(id)) found.push(`${id} is on the target only`);
  return found.sort();
}
