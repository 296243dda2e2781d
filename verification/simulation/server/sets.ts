/** Commands of sets. */
import { store } from './collections.js';
import { needCount, needInteger, needPositive } from './numbers.js';
import { Options } from './options.js';
import {
  arrayOf,
  bulk,
  bulkOrNil,
  bulks,
  integer,
  nil,
  ONE,
  Refusal,
  setOf,
  SYNTAX,
  ZERO,
  type Protocol,
} from './reply.js';
import { distinct, randomOf } from './random.js';
import { needCursor, NOTHING_SCANNED, scanCollection } from './scan.js';
import type { Client, Run } from './state.js';

/** More members than this, and SSCAN goes on in steps. */
const SMALL = 512;
const EMPTY: ReadonlySet<string> = new Set();

const setReply = (members: readonly string[], protocol: Protocol): string =>
  setOf(members.length, protocol) + members.map(bulk).join('');

type Combine = (sets: readonly ReadonlySet<string>[]) => string[];

/** Members of all sets, up to `most` of them. */
const intersectionOf = ([first, ...others]: readonly ReadonlySet<string>[], most: number): string[] => {
  const found: string[] = [];
  for (const member of first) {
    if (found.length >= most) break;
    if (others.every((other) => other.has(member))) found.push(member);
  }
  return found;
};
const intersection: Combine = (sets) => intersectionOf(sets, Infinity);
const union: Combine = (sets) => [...new Set(sets.flatMap((set) => [...set]))];
const difference: Combine = ([first, ...others]) =>
  [...first].filter((member) => !others.some((other) => other.has(member)));

const setsOf = ({ database }: Client, keys: readonly string[]): ReadonlySet<string>[] =>
  keys.map((key) => database.getAs(key, 'set') ?? EMPTY);

const combined =
  (combine: Combine): Run =>
  (client, args) =>
    setReply(combine(setsOf(client, args.slice(1))), client.protocol);

const stored =
  (combine: Combine): Run =>
  (client, args) =>
    store(client.database, args[1], 'set', new Set(combine(setsOf(client, args.slice(2)))));

const cardinality: Run = (client, args) => {
  const refusal = new Refusal('ERR numkeys should be greater than 0');
  const count = needCount(args[1], refusal);
  if (count > args.length - 2) throw new Refusal("ERR Number of keys can't be greater than number of args");
  let limit = 0;
  const options = new Options(args, 2 + count);
  while (options.more) {
    if (options.word() !== 'limit') throw SYNTAX;
    const negative = new Refusal("ERR LIMIT can't be negative");
    limit = needPositive(options.next(), negative);
  }
  const sets = setsOf(client, args.slice(2, 2 + count));
  return integer(intersectionOf(sets, limit === 0 ? Infinity : limit).length);
};

export const SET_COMMANDS: Readonly<Record<string, Run>> = {
  sadd({ database }, args) {
    const [, key] = args;
    const set = database.getOrAdd(key, 'set', () => new Set());
    const before = set.size;
    for (let i = 2; i < args.length; i++) set.add(args[i]);
    if (set.size > before) database.touch(key);
    return integer(set.size - before);
  },
  srem({ database }, args) {
    const [, key] = args;
    const set = database.getAs(key, 'set');
    if (set === undefined) return ZERO;
    let count = 0;
    for (let i = 2; i < args.length; i++) if (set.delete(args[i])) count++;
    if (count > 0) {
      database.deleteIfEmpty(key, set.size);
      database.touch(key);
    }
    return integer(count);
  },
  smove({ database }, [, from, to, member]) {
    const set = database.getAs(from, 'set');
    if (set === undefined) return ZERO;
    const target = database.getAs(to, 'set');
    if (from === to) return set.has(member) ? ONE : ZERO;
    if (!set.delete(member)) return ZERO;
    database.deleteIfEmpty(from, set.size);
    database.touch(from);
    const next = target ?? database.getOrAdd(to, 'set', () => new Set());
    next.add(member);
    database.touch(to);
    return ONE;
  },
  sismember: ({ database }, [, key, member]) => (database.getAs(key, 'set')?.has(member) ? ONE : ZERO),
  smismember({ database }, args) {
    const set = database.getAs(args[1], 'set');
    return (
      arrayOf(args.length - 2) +
      args
        .slice(2)
        .map((member) => (set?.has(member) ? ONE : ZERO))
        .join('')
    );
  },
  scard: ({ database }, [, key]) => integer(database.getAs(key, 'set')?.size ?? 0),
  smembers: ({ database, protocol }, [, key]) => setReply([...(database.getAs(key, 'set') ?? EMPTY)], protocol),
  spop({ database, server, protocol }, args) {
    const [, key] = args;
    if (args.length > 3) throw SYNTAX;
    const count = args.length === 3 ? needPositive(args[2]) : null;
    const set = database.getAs(key, 'set');
    if (set === undefined) return count === null ? nil(protocol) : setReply([], protocol);
    const members = distinct([...set], count ?? 1, server);
    for (const member of members) set.delete(member);
    if (members.length > 0) {
      database.deleteIfEmpty(key, set.size);
      database.touch(key);
    }
    return count === null ? bulk(members[0]) : setReply(members, protocol);
  },
  srandmember({ database, server, protocol }, args) {
    if (args.length > 3) throw SYNTAX;
    if (args.length === 2) {
      const set = database.getAs(args[1], 'set');
      return bulkOrNil(set && [...set][server.below(set.size)], protocol);
    }
    const count = needInteger(args[2]);
    return bulks(randomOf([...(database.getAs(args[1], 'set') ?? EMPTY)], count, server));
  },
  sinter: combined(intersection),
  sunion: combined(union),
  sdiff: combined(difference),
  sinterstore: stored(intersection),
  sunionstore: stored(union),
  sdiffstore: stored(difference),
  sintercard: cardinality,
  sscan({ database, server }, args) {
    needCursor(args[2]);
    const set = database.getAs(args[1], 'set');
    return set === undefined ? NOTHING_SCANNED : scanCollection(server, args, set, (member) => [member], SMALL);
  },
};
