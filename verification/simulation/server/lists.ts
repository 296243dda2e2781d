/** Commands of lists, those that block among them. */
import { popFirst } from './collections.js';
import { needCount, needInteger, needPositive, waitOf } from './numbers.js';
import { lower, Options } from './options.js';
import {
  arrayOf,
  bulk,
  bulkOrNil,
  bulks,
  EMPTY_ARRAY,
  integer,
  nil,
  nilArray,
  NO_SUCH_KEY,
  OK,
  Refusal,
  SYNTAX,
  WRONG_TYPE,
  ZERO,
} from './reply.js';
import type { Client, Database, Run } from './state.js';

type End = 'left' | 'right';

const take = (list: string[], end: End): string => (end === 'left' ? list.shift()! : list.pop()!);
const put = (list: string[], end: End, value: string): void =>
  void (end === 'left' ? list.unshift(value) : list.push(value));

/** Up to `count` elements from one end, the outermost first. */
function takeMany(database: Database, key: string, list: string[], end: End, count: number): string[] {
  const taken = end === 'left' ? list.splice(0, count) : list.splice(-count, count).reverse();
  removed(database, key, list);
  return taken;
}

function removed(database: Database, key: string, list: string[]): void {
  database.deleteIfEmpty(key, list.length);
  database.touch(key);
}

const push =
  (end: End, onlyExisting: boolean): Run =>
  ({ database }, args) => {
    const [, key] = args;
    let list = database.getAs(key, 'list');
    if (list === undefined) {
      if (onlyExisting) return ZERO;
      database.add(key, 'list', (list = []));
    }
    for (let i = 2; i < args.length; i++) put(list, end, args[i]);
    database.touch(key);
    return integer(list.length);
  };

const pop =
  (end: End, command: string): Run =>
  ({ database, server, protocol }, args) => {
    const [, key] = args;
    if (args.length > 3) throw new Refusal(`ERR wrong number of arguments for '${command}' command`);
    const count = args.length === 3 ? needPositive(args[2]) : null;
    const isRedis = server.engine === 'redis';
    if (count === 0 && !isRedis) return nilArray(protocol);
    const list = database.getAs(key, 'list');
    if (list === undefined) return count !== null && isRedis ? nilArray(protocol) : nil(protocol);
    if (count === 0) return EMPTY_ARRAY;
    if (count !== null) return bulks(takeMany(database, key, list, end, count));
    const value = take(list, end);
    removed(database, key, list);
    return bulk(value);
  };

/** The part of a list from `start` to `end`, both counted as LRANGE does. */
function bounds(length: number, start: number, end: number): readonly [number, number] {
  const from = Math.max(0, start < 0 ? length + start : start);
  const to = Math.min(length - 1, end < 0 ? length + end : end);
  return from > to ? [0, 0] : [from, to + 1];
}

const position: Run = ({ database, server, protocol }, args) => {
  let [rank, count, most]: [number, number | null, number] = [1, null, 0];
  const options = new Options(args, 3);
  while (options.more) {
    const word = options.word();
    if (!options.more) throw SYNTAX;
    const value = options.next();
    if (word === 'rank') {
      rank = needInteger(value);
      if (rank === 0)
        throw new Refusal(
          server.engine === 'redis'
            ? "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list"
            : "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second, ...",
        );
    } else if (word === 'count' || word === 'maxlen') {
      const refusal = new Refusal(`ERR ${word.toUpperCase()} can't be negative`);
      const number = needPositive(value, refusal);
      if (word === 'count') count = number;
      else most = number;
    } else throw SYNTAX;
  }
  const list = database.getAs(args[1], 'list') ?? [];
  const found: number[] = [];
  let matched = 0;
  const looked = most === 0 ? list.length : Math.min(most, list.length);
  for (let i = 0; i < looked; i++) {
    const at = rank > 0 ? i : list.length - 1 - i;
    if (list[at] !== args[2] || ++matched < Math.abs(rank)) continue;
    found.push(at);
    if (count === null || found.length === count) break;
  }
  if (count !== null) return arrayOf(found.length) + found.map(integer).join('');
  return found.length === 0 ? nil(protocol) : integer(found[0]);
};

const remove: Run = ({ database }, args) => {
  const count = needInteger(args[2]);
  const list = database.getAs(args[1], 'list');
  if (list === undefined) return ZERO;
  const most = count === 0 ? Infinity : Math.abs(count);
  let deleted = 0;
  const step = count < 0 ? -1 : 1;
  for (let at = count < 0 ? list.length - 1 : 0; at >= 0 && at < list.length && deleted < most; at += step)
    if (list[at] === args[3]) {
      list.splice(at, 1);
      deleted++;
      if (step === 1) at--;
    }
  if (deleted > 0) removed(database, args[1], list);
  return integer(deleted);
};

const insert: Run = ({ database }, args) => {
  const where = lower(args[2]);
  if (where !== 'before' && where !== 'after') throw SYNTAX;
  const list = database.getAs(args[1], 'list');
  if (list === undefined) return ZERO;
  const at = list.indexOf(args[3]);
  if (at < 0) return integer(-1);
  list.splice(where === 'after' ? at + 1 : at, 0, args[4]);
  database.touch(args[1]);
  return integer(list.length);
};

function endOf(text: string): End {
  const end = lower(text);
  if (end !== 'left' && end !== 'right') throw SYNTAX;
  return end;
}

/** Moves an element between two lists; null where the first is not there. */
function move({ database }: Client, from: string, to: string, out: End, into: End): string | null {
  const source = database.getAs(from, 'list');
  if (source === undefined) return null;
  let target = database.getAs(to, 'list');
  const value = take(source, out);
  if (target === undefined) database.add(to, 'list', (target = []));
  put(target, into, value);
  database.touch(to);
  removed(database, from, source);
  return bulk(value);
}

const blockingMove = (client: Client, from: string, to: string, out: End, into: End, ms: number): string => {
  const { database, protocol } = client;
  const entry = database.get(from);
  if (entry !== undefined && entry.type !== 'list') throw WRONG_TYPE;
  const now = move(client, from, to, out, into);
  if (now !== null) return now;
  if (client.mayNotBlock) return nil(protocol);
  client.block(
    {
      type: 'list',
      keys: [from],
      serve: () => (isList(database, from) ? move(client, from, to, out, into) : null),
      atTimeout: nilArray(protocol),
    },
    ms,
  );
  return '';
};

const isList = (database: Database, key: string): boolean => database.get(key)?.type === 'list';

const rounding = ({ server }: Client): 'up' | 'down' => (server.engine === 'redis' ? 'up' : 'down');

const blockingPop =
  (end: End): Run =>
  (client, args) => {
    const ms = waitOf(args[args.length - 1], rounding(client));
    const popFrom = (key: string, list: string[]): string => {
      const value = take(list, end);
      removed(client.database, key, list);
      return bulks([key, value]);
    };
    return popFirst(client, 'list', args.slice(1, -1), popFrom, ms);
  };

/** LMPOP and BLMPOP: `numkeys key … LEFT|RIGHT [COUNT n]` from argument `at` on. */
function popMany(client: Client, args: readonly string[], at: number, ms: number | null): string {
  const count = needCount(args[at], new Refusal('ERR numkeys should be greater than 0'));
  const where = at + 1 + count;
  if (where >= args.length) throw SYNTAX;
  const end = endOf(args[where]);
  let most: number | null = null;
  const options = new Options(args, where + 1);
  while (options.more) {
    if (options.word() !== 'count' || most !== null) throw SYNTAX;
    most = needCount(options.next(), new Refusal('ERR count should be greater than 0'));
  }
  const popFrom = (key: string, list: string[]): string =>
    arrayOf(2) + bulk(key) + bulks(takeMany(client.database, key, list, end, most ?? 1));
  return popFirst(client, 'list', args.slice(at + 1, where), popFrom, ms);
}

export const LIST_COMMANDS: Readonly<Record<string, Run>> = {
  lpush: push('left', false),
  rpush: push('right', false),
  lpushx: push('left', true),
  rpushx: push('right', true),
  lpop: pop('left', 'lpop'),
  rpop: pop('right', 'rpop'),
  llen: ({ database }, [, key]) => integer(database.getAs(key, 'list')?.length ?? 0),
  lindex({ database, protocol }, args) {
    const list = database.getAs(args[1], 'list');
    if (list === undefined) return nil(protocol);
    return bulkOrNil(list.at(needInteger(args[2])), protocol);
  },
  lset({ database }, args) {
    const list = database.getAs(args[1], 'list');
    if (list === undefined) throw NO_SUCH_KEY;
    const index = needInteger(args[2]);
    const at = index < 0 ? list.length + index : index;
    if (at < 0 || at >= list.length) throw new Refusal('ERR index out of range');
    list[at] = args[3];
    database.touch(args[1]);
    return OK;
  },
  lrange({ database }, args) {
    const [start, end] = [needInteger(args[2]), needInteger(args[3])];
    const list = database.getAs(args[1], 'list') ?? [];
    return bulks(list.slice(...bounds(list.length, start, end)));
  },
  ltrim({ database }, args) {
    const [start, end] = [needInteger(args[2]), needInteger(args[3])];
    const list = database.getAs(args[1], 'list');
    if (list === undefined) return OK;
    const [from, to] = bounds(list.length, start, end);
    list.splice(to);
    list.splice(0, from);
    removed(database, args[1], list);
    return OK;
  },
  lpos: position,
  lrem: remove,
  linsert: insert,
  rpoplpush: (client, [, from, to]) => move(client, from, to, 'right', 'left') ?? nil(client.protocol),
  lmove: (client, args) => move(client, args[1], args[2], endOf(args[3]), endOf(args[4])) ?? nil(client.protocol),
  lmpop: (client, args) => popMany(client, args, 1, null),
  blpop: blockingPop('left'),
  brpop: blockingPop('right'),
  brpoplpush: (client, args) =>
    blockingMove(client, args[1], args[2], 'right', 'left', waitOf(args[3], rounding(client))),
  blmove(client, args) {
    const [out, into] = [endOf(args[3]), endOf(args[4])];
    return blockingMove(client, args[1], args[2], out, into, waitOf(args[5], rounding(client)));
  },
  blmpop: (client, args) => popMany(client, args, 2, waitOf(args[1], 'up')),
};
