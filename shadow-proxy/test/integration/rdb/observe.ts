import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import type { LocalServer } from '../../../src/local/servers.js';

/** A reply with bytes as latin1 text, so that nothing is lost and differences can be read. */
export type Plain = string | number | null | readonly Plain[];

type Ask = (name: string, ...args: (string | number)[]) => Promise<Plain>;

/** What commands tell about a key: `[type, content]`, whatever its encoding and whichever server holds it. */
export async function observe(client: Redis, key: string): Promise<Plain> {
  const ask: Ask = async (name, ...args) => plain(await client.callBuffer(name, ...args));
  const type = (await ask('TYPE', key)) as string;
  switch (type) {
    case 'string':
      return [type, await ask('GET', key)];
    case 'list':
      return [type, await ask('LRANGE', key, 0, -1)];
    case 'set':
      return [type, sorted((await ask('SMEMBERS', key)) as Plain[])];
    case 'hash':
      return [type, sorted(pairs((await ask('HGETALL', key)) as Plain[]))];
    case 'zset':
      return [
        type,
        pairs((await ask('ZRANGE', key, 0, -1, 'WITHSCORES')) as Plain[]).map(([of, score]) => [of, number(score)]),
      ];
    case 'stream':
      return [type, await ask('XRANGE', key, '-', '+'), await observeStream(ask, key)];
    default:
      return [type];
  }
}

/** Old servers print scores with 17 digits, new ones with as few as are needed. */
const number = (text: Plain): string => {
  const value = Number(String(text).replace('inf', 'Infinity'));
  return Object.is(value, -0) ? '-0' : String(value);
};

/** Groups, consumers and what is pending, as far as every server since 6.0 reports it. */
async function observeStream(ask: Ask, key: string): Promise<Plain> {
  const info = await ask('XINFO', 'STREAM', key, 'FULL', 'COUNT', 0);
  const groups = (field(info, 'groups') as Plain[]).map((group) => {
    const consumers = (field(group, 'consumers') as Plain[]).map((of) => fields(of, ['name', 'seen-time', 'pending']));
    return [...fields(group, ['name', 'last-delivered-id', 'pending']), sorted(consumers)];
  });
  return [field(info, 'length'), field(info, 'last-generated-id'), groups];
}

/** What Redis counts since 7.0, of the stream and of each group, and since 7.2 of consumers. */
export async function observeCounters(client: Redis, key: string): Promise<Plain> {
  const info = plain(await client.callBuffer('XINFO', 'STREAM', key, 'FULL'));
  const groups = (field(info, 'groups') as Plain[]).map((group) => {
    const active = (field(group, 'consumers') as Plain[]).map((consumer) => activeTime(consumer as Plain[]));
    return [field(group, 'entries-read'), field(group, 'lag'), active];
  });
  return [fields(info, ['entries-added', 'max-deleted-entry-id', 'recorded-first-entry-id']), groups];
}

const activeTime = (consumer: readonly Plain[]): Plain =>
  pairs(consumer).find(([name]) => name === 'active-time') ?? null;

/** What follows the name in a flat list of names and values. */
function field(flat: Plain, name: string): Plain {
  const pair = pairs(flat as Plain[]).find(([of]) => of === name);
  assert.ok(pair, `no ${name} in ${JSON.stringify(flat)}`);
  return pair[1];
}

const fields = (flat: Plain, names: readonly string[]): Plain[] => names.map((name) => field(flat, name));

function plain(reply: unknown): Plain {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1');
  if (Array.isArray(reply)) return reply.map(plain);
  return reply as Plain;
}

function pairs(flat: readonly Plain[]): [Plain, Plain][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
}

function sorted<T extends Plain>(items: readonly T[]): T[] {
  const key = (item: T): string => JSON.stringify(item);
  return [...items].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
}

/** A connection for the time of `body`. */
export async function connected<T>(
  server: Pick<LocalServer, 'host' | 'port'>,
  body: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis({ host: server.host, port: server.port, maxRetriesPerRequest: 1, protocol: 2 });
  try {
    return await body(client);
  } finally {
    client.disconnect();
  }
}

export async function dump(client: Redis, key: string): Promise<Buffer> {
  const payload = await client.dumpBuffer(key);
  if (payload === null) throw new Error(`no key ${key}`);
  return payload;
}

/** Replaces the key. Rejects, with the payload in the message, when the server refuses it. */
export async function restore(client: Redis, key: string, payload: Buffer): Promise<void> {
  try {
    await client.call('RESTORE', key, 0, payload, 'REPLACE');
  } catch (error) {
    throw new Error(
      `port ${client.options.port}, ${payload.length} bytes ${payload.toString('hex').slice(0, 400)}: ${String(error)}`,
    );
  }
}
