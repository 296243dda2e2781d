/** What two servers hold, key by key, read with ordinary commands: it shares no code with the proxy's own comparison. */
import { Redis } from 'ioredis';

/** By how much two times to live may differ, in ms. */
const TTL_MS = 250;

interface Address {
  readonly host: string;
  readonly port: number;
}

interface Key {
  readonly type: string;
  readonly value: string;
  /** Milliseconds, -1 without. */
  readonly ttl: number;
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
export async function keyspace({ host, port }: Address): Promise<Map<string, Key>> {
  const client = new Redis({ host, port, retryStrategy: () => null });
  try {
    const all = new Map<string, Key>();
    const databases = [...(await client.info('keyspace')).matchAll(/^db(\d+):/gm)].map((match) => Number(match[1]));
    for (const db of databases) {
      await client.select(db);
      const keys = (await client.callBuffer('KEYS', '*')) as Buffer[];
      await Promise.all(
        keys.map(async (key) => {
          const [type, ttl] = await Promise.all([client.type(key), client.pttl(key)]);
          if (type !== 'none') all.set(`${db}:${key.toString('latin1')}`, { type, ttl, value: await read(client, type, key) });
        }),
      );
    }
    return all;
  } finally {
    client.disconnect();
  }
}

async function read(client: Redis, type: string, key: Buffer): Promise<string> {
  const reply = await client.callBuffer(...READS[type](key));
  if (type === 'set') return JSON.stringify((reply as Buffer[]).map(text).sort());
  if (type === 'hash') {
    const flat = (reply as Buffer[]).map(text);
    return JSON.stringify(flat.flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1]]] : [])).sort());
  }
  return JSON.stringify(nested(reply));
}

const text = (bytes: Buffer): string => bytes.toString('latin1');
const nested = (reply: unknown): unknown => (Buffer.isBuffer(reply) ? text(reply) : Array.isArray(reply) ? reply.map(nested) : reply);

/** How the two differ: a line for each key, empty where they are equal. */
export async function differences(source: Address, target: Address): Promise<string[]> {
  const [a, b] = await Promise.all([keyspace(source), keyspace(target)]);
  const found: string[] = [];
  for (const [id, key] of a) {
    const twin = b.get(id);
    if (twin === undefined) found.push(`${id} is not on the target: ${key.value.slice(0, 120)}`);
    else if (twin.type !== key.type || twin.value !== key.value) found.push(`${id}: ${key.type} ${key.value.slice(0, 200)} ≠ ${twin.type} ${twin.value.slice(0, 200)}`);
    else if (key.ttl < 0 !== twin.ttl < 0 || Math.abs(key.ttl - twin.ttl) > TTL_MS) found.push(`${id}: a time to live of ${key.ttl} ms ≠ ${twin.ttl} ms`);
  }
  for (const id of b.keys()) if (!a.has(id)) found.push(`${id} is on the target only`);
  return found.sort();
}
