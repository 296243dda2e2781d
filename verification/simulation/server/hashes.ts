/** Commands of hashes. */
import { addFloats, doubleOf, int64Of, MAX_INT64, MIN_INT64, needInteger } from './numbers.js';
import { lower } from './options.js';
import {
  arrayOf,
  bulk,
  bulkOrNil,
  bulks,
  integer,
  mapOf,
  NOT_FLOAT,
  NOT_INTEGER,
  OK,
  ONE,
  Refusal,
  SYNTAX,
  ZERO,
} from './reply.js';
import { distinct, randomOf } from './random.js';
import { needCursor, NOTHING_SCANNED, scanCollection } from './scan.js';
import type { Client, Run } from './state.js';

/** More fields than this, and HSCAN goes on in steps. */
const SMALL = 512;

const hashFor = ({ database }: Client, key: string): Map<string, string> =>
  database.getOrAdd(key, 'hash', () => new Map());

const set =
  (command: 'hset' | 'hmset'): Run =>
  (client, args) => {
    if (args.length % 2 === 1) throw new Refusal(`ERR wrong number of arguments for '${command}' command`);
    const hash = hashFor(client, args[1]);
    const before = hash.size;
    for (let i = 2; i < args.length; i += 2) hash.set(args[i], args[i + 1]);
    client.database.touch(args[1]);
    return command === 'hset' ? integer(hash.size - before) : OK;
  };

const random: Run = ({ database, server, protocol }, args) => {
  if (args.length === 2) {
    const hash = database.getAs(args[1], 'hash');
    return bulkOrNil(hash && [...hash.keys()][server.below(hash.size)], protocol);
  }
  const count = needInteger(args[2]);
  if (args.length > 4 || (args.length === 4 && lower(args[3]) !== 'withvalues')) throw SYNTAX;
  const withValues = args.length === 4;
  if (withValues && Math.abs(count) > 2 ** 62) throw new Refusal('ERR value is out of range');
  const hash = database.getAs(args[1], 'hash') ?? new Map<string, string>();
  const rows = count >= 0 ? distinct([...hash], count, server) : randomOf([...hash], count, server);
  if (!withValues) return bulks(rows.map(([field]) => field));
  if (protocol === 2) return bulks(rows.flat());
  return arrayOf(rows.length) + rows.map((row) => bulks(row)).join('');
};

export const HASH_COMMANDS: Readonly<Record<string, Run>> = {
  hset: set('hset'),
  hmset: set('hmset'),
  hsetnx(client, [, key, field, value]) {
    const hash = hashFor(client, key);
    if (hash.has(field)) return ZERO;
    hash.set(field, value);
    client.database.touch(key);
    return ONE;
  },
  hget: ({ database, protocol }, [, key, field]) => bulkOrNil(database.getAs(key, 'hash')?.get(field), protocol),
  hmget({ database, protocol }, args) {
    const hash = database.getAs(args[1], 'hash');
    let reply = arrayOf(args.length - 2);
    for (let i = 2; i < args.length; i++) reply += bulkOrNil(hash?.get(args[i]), protocol);
    return reply;
  },
  hgetall({ database, protocol }, [, key]) {
    const hash = database.getAs(key, 'hash');
    let reply = mapOf(hash?.size ?? 0, protocol);
    for (const [field, value] of hash ?? []) reply += bulk(field) + bulk(value);
    return reply;
  },
  hkeys: ({ database }, [, key]) => bulks([...(database.getAs(key, 'hash')?.keys() ?? [])]),
  hvals: ({ database }, [, key]) => bulks([...(database.getAs(key, 'hash')?.values() ?? [])]),
  hlen: ({ database }, [, key]) => integer(database.getAs(key, 'hash')?.size ?? 0),
  hexists: ({ database }, [, key, field]) => (database.getAs(key, 'hash')?.has(field) ? ONE : ZERO),
  hstrlen: ({ database }, [, key, field]) => integer(database.getAs(key, 'hash')?.get(field)?.length ?? 0),
  hdel({ database }, args) {
    const [, key] = args;
    const hash = database.getAs(key, 'hash');
    if (hash === undefined) return ZERO;
    let count = 0;
    for (let i = 2; i < args.length; i++) if (hash.delete(args[i])) count++;
    if (count > 0) {
      database.deleteIfEmpty(key, hash.size);
      database.touch(key);
    }
    return integer(count);
  },
  hincrby(client, [, key, field, given]) {
    const by = int64Of(given);
    if (by === null) throw NOT_INTEGER;
    const old = int64Of(client.database.getAs(key, 'hash')?.get(field) ?? '0');
    if (old === null) throw new Refusal('ERR hash value is not an integer');
    const value = old + by;
    if (value > MAX_INT64 || value < MIN_INT64) throw new Refusal('ERR increment or decrement would overflow');
    hashFor(client, key).set(field, String(value));
    client.database.touch(key);
    return integer(value);
  },
  hincrbyfloat(client, [, key, field, by]) {
    if (Number.isNaN(doubleOf(by))) throw NOT_FLOAT;
    if (!Number.isFinite(doubleOf(by))) throw new Refusal('ERR value is NaN or Infinity');
    const held = client.database.getAs(key, 'hash')?.get(field) ?? '0';
    const value = addFloats(held, by, new Refusal('ERR hash value is not a float'), NOT_FLOAT);
    hashFor(client, key).set(field, value);
    client.database.touch(key);
    return bulk(value);
  },
  hrandfield: random,
  hscan({ database, server }, args) {
    needCursor(args[2]);
    const hash = database.getAs(args[1], 'hash');
    if (hash === undefined) return NOTHING_SCANNED;
    return scanCollection(server, args, hash, (field) => [field, hash.get(field)!], SMALL);
  },
};
