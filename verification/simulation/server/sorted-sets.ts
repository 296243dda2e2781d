/** Commands of sorted sets, those that block among them. */
import { popFirst, store } from './collections.js';
import { double, doubleOf, formatDouble, needCount, needDouble, needInteger, needPositive, waitOf } from './numbers.js';
import { lower, Options } from './options.js';
import {
  arrayOf,
  bulk,
  bulkOrNil,
  bulks,
  EMPTY_ARRAY,
  integer,
  nil,
  Refusal,
  SYNTAX,
  WRONG_TYPE,
  ZERO,
  type Protocol,
} from './reply.js';
import { randomOf } from './random.js';
import { needCursor, NOTHING_SCANNED, scanCollection } from './scan.js';
import { SortedSet, type Member } from './sorted-set.js';
import type { Client, Database, Run, State } from './state.js';

/** More members than this, and ZSCAN goes on in steps. */
const SMALL = 128;
const NO_MEMBERS: readonly Member[] = [];

const setAt = ({ database }: Client, key: string): SortedSet | undefined => database.getAs(key, 'zset');

/** Members with their scores: in one array, or in RESP3 an array each. */
function withScores(members: readonly Member[], protocol: Protocol): string {
  const nested = protocol === 3;
  let reply = arrayOf(nested ? members.length : members.length * 2);
  for (const { member, score } of members) reply += (nested ? arrayOf(2) : '') + bulk(member) + double(score, protocol);
  return reply;
}

const listed = (members: readonly Member[], scores: boolean, protocol: Protocol): string =>
  scores ? withScores(members, protocol) : bulks(members.map(({ member }) => member));

const NAN = new Refusal('ERR resulting score is not a number (NaN)');

/** ZADD, and ZINCRBY as ZADD with INCR. */
const add =
  (increments: boolean): Run =>
  (client, args) => {
    const { database, protocol } = client;
    const [, key] = args;
    const flags = new Set<string>(increments ? ['incr'] : []);
    let at = 2;
    for (; at < args.length && ADD_OPTIONS.has(lower(args[at])); at++) flags.add(lower(args[at]));
    const [nx, xx, gt, lt] = ['nx', 'xx', 'gt', 'lt'].map((flag) => flags.has(flag));
    const incr = flags.has('incr');
    const count = args.length - at;
    if (count % 2 === 1 || count === 0) throw SYNTAX;
    if (nx && xx) throw new Refusal('ERR XX and NX options at the same time are not compatible');
    if ((gt && nx) || (lt && nx) || (gt && lt))
      throw new Refusal('ERR GT, LT, and/or NX options at the same time are not compatible');
    if (incr && count > 2) throw new Refusal('ERR INCR option supports a single increment-element pair');
    const scores: number[] = [];
    for (let i = at; i < args.length; i += 2) scores.push(needDouble(args[i]));
    let set = setAt(client, key);
    if (set === undefined) {
      if (xx) return incr ? nil(protocol) : ZERO;
      database.add(key, 'zset', (set = new SortedSet()));
    }
    let [added, updated, result]: [number, number, number | null] = [0, 0, null];
    try {
      for (let i = 0; i < scores.length; i++) {
        const member = args[at + 1 + i * 2];
        const old = set.scores.get(member);
        let score = scores[i];
        if (old === undefined) {
          if (xx) continue;
          set.set(member, stored(client.server, score));
          added++;
        } else {
          if (nx) continue;
          if (incr) score += old;
          if (Number.isNaN(score)) throw NAN;
          if ((lt && score >= old) || (gt && score <= old)) continue;
          if (score !== old) {
            set.set(member, stored(client.server, score));
            updated++;
          }
        }
        result = score;
      }
    } finally {
      if (added + updated > 0) database.touch(key);
    }
    if (incr) return result === null ? nil(protocol) : double(result, protocol);
    return integer(flags.has('ch') ? added + updated : added);
  };

/** A small sorted set of Redis 7 has whole numbers as such: a zero has no sign. */
const stored = ({ engine }: State, score: number): number => (engine === 'redis' ? score + 0 : score);

const ADD_OPTIONS = new Set(['nx', 'xx', 'ch', 'incr', 'gt', 'lt']);

interface Bound<T> {
  readonly value: T;
  readonly isOpen: boolean;
}

const NO_FLOAT = new Refusal('ERR min or max is not a float');

function scoreBound(text: string): Bound<number> {
  const isOpen = text.startsWith('(');
  const given = (isOpen ? text.slice(1) : text).trimStart();
  const value = given === '' ? 0 : doubleOf(given);
  if (Number.isNaN(value)) throw NO_FLOAT;
  return { value, isOpen };
}

/** Whether a score lies between the bounds. */
function scoreTest(min: string, max: string): (score: number) => boolean {
  const [low, high] = [scoreBound(min), scoreBound(max)];
  return (score) =>
    (low.isOpen ? score > low.value : score >= low.value) && (high.isOpen ? score < high.value : score <= high.value);
}

/** A bound of strings: `-` is before, `+` behind all of them. */
type LexBound = Bound<string> | '-' | '+';

function lexBound(text: string): LexBound {
  if (text === '-' || text === '+') return text;
  if (text[0] !== '(' && text[0] !== '[') throw new Refusal('ERR min or max not valid string range item');
  return { value: text.slice(1), isOpen: text[0] === '(' };
}

const isAbove = (member: string, bound: LexBound): boolean =>
  typeof bound === 'string' ? bound === '-' : bound.isOpen ? member > bound.value : member >= bound.value;
const isBelow = (member: string, bound: LexBound): boolean =>
  typeof bound === 'string' ? bound === '+' : bound.isOpen ? member < bound.value : member <= bound.value;

function isEmptyRange(min: LexBound, max: LexBound): boolean {
  if (min === '+' || max === '-') return true;
  if (min === '-' || max === '+') return false;
  return min.value > max.value || (min.value === max.value && (min.isOpen || max.isOpen));
}

/** As a server searches: it takes it for granted that all scores are the same. */
function lexRange(
  members: readonly Member[],
  min: LexBound,
  max: LexBound,
  isReverse: boolean,
  skipped: number,
): Member[] {
  if (members.length === 0 || isEmptyRange(min, max)) return [];
  if (!isAbove(members[members.length - 1].member, min) || !isBelow(members[0].member, max)) return [];
  const ordered = isReverse ? [...members].reverse() : members;
  const begins = ({ member }: Member): boolean => (isReverse ? isBelow(member, max) : isAbove(member, min));
  const goesOn = ({ member }: Member): boolean => (isReverse ? isAbove(member, min) : isBelow(member, max));
  const first = ordered.findIndex(begins);
  if (first < 0 || !goesOn(ordered[first])) return [];
  const from = first + skipped;
  const end = ordered.findIndex((each, i) => i >= from && !goesOn(each));
  return ordered.slice(from, end < 0 ? undefined : end);
}

/** The ranks from `start` to `end`, both counted as ZRANGE does. */
function rankBounds(length: number, start: number, end: number): readonly [number, number] {
  const from = Math.max(0, start < 0 ? length + start : start);
  const to = Math.min(length - 1, end < 0 ? length + end : end);
  return from > to ? [0, 0] : [from, to + 1];
}

type By = 'rank' | 'score' | 'lex';

interface RangeForm {
  readonly by: By | null;
  readonly isReverse: boolean | null;
  readonly scores: boolean;
}

/** ZRANGE and all its relatives; the range's key is argument `at`. */
function rangeOf(client: Client, args: readonly string[], at: number, form: RangeForm) {
  let { by, isReverse } = form;
  let [scores, offset, limit] = [false, 0, -1];
  const options = new Options(args, at + 3);
  while (options.more) {
    const word = options.word();
    if (form.scores && word === 'withscores') scores = true;
    else if (word === 'limit' && options.left >= 2)
      [offset, limit] = [needInteger(options.next()), needInteger(options.next())];
    else if (word === 'rev' && isReverse === null) isReverse = true;
    else if (word === 'bylex' && by === null) by = 'lex';
    else if (word === 'byscore' && by === null) by = 'score';
    else throw SYNTAX;
  }
  by ??= 'rank';
  isReverse ??= false;
  if (limit !== -1 && by === 'rank')
    throw new Refusal('ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX');
  if (scores && by === 'lex') throw new Refusal('ERR syntax error, WITHSCORES not supported in combination with BYLEX');
  const [first, second] = [args[at + 1], args[at + 2]];
  const [min, max] = isReverse && by !== 'rank' ? [second, first] : [first, second];
  const pick = pickerOf(by, min, max, isReverse);
  const ordered = setAt(client, args[at])?.ordered() ?? NO_MEMBERS;
  const members = offset < 0 && by !== 'rank' ? NO_MEMBERS : pick(ordered, offset);
  return { members: by === 'rank' || limit < 0 ? members : members.slice(0, limit), scores };
}

function pickerOf(
  by: By,
  min: string,
  max: string,
  isReverse: boolean,
): (members: readonly Member[], skipped?: number) => readonly Member[] {
  switch (by) {
    case 'rank': {
      const [start, end] = [needInteger(min), needInteger(max)];
      return (members) => {
        const ordered = isReverse ? [...members].reverse() : members;
        return ordered.slice(...rankBounds(ordered.length, start, end));
      };
    }
    case 'score': {
      const isIn = scoreTest(min, max);
      return (members, skipped = 0) => {
        const found = members.filter(({ score }) => isIn(score));
        return (isReverse ? found.reverse() : found).slice(skipped);
      };
    }
    case 'lex': {
      const [low, high] = [lexBound(min), lexBound(max)];
      return (members, skipped = 0) => lexRange(members, low, high, isReverse, skipped);
    }
  }
}

const range =
  (by: By | null, isReverse: boolean | null): Run =>
  (client, args) => {
    const { members, scores } = rangeOf(client, args, 1, { by, isReverse, scores: true });
    return listed(members, scores, client.protocol);
  };

const removeRange =
  (by: By): Run =>
  ({ database }, args) => {
    const [, key, min, max] = args;
    const pick = pickerOf(by, min, max, false);
    const set = database.getAs(key, 'zset');
    if (set === undefined) return ZERO;
    const members = pick(set.ordered());
    for (const { member } of members) set.delete(member);
    if (members.length > 0) {
      database.deleteIfEmpty(key, set.size);
      database.touch(key);
    }
    return integer(members.length);
  };

type Operation = 'union' | 'inter' | 'diff';
type Aggregate = (a: number, b: number) => number;

const AGGREGATES: Readonly<Record<string, Aggregate>> = {
  // Infinity and minus infinity make 0.
  sum: (a, b) => (Number.isNaN(a + b) ? 0 : a + b),
  min: Math.min,
  max: Math.max,
};

/** The scores of a key that has a set or a sorted set. */
function scoresOf(database: Database, key: string): ReadonlyMap<string, number> {
  const entry = database.get(key);
  if (entry === undefined) return new Map();
  if (entry.type === 'zset') return (entry.value as SortedSet).scores;
  if (entry.type !== 'set') throw WRONG_TYPE;
  return new Map(Array.from(entry.value as Set<string>, (member) => [member, 1]));
}

/** ZUNION, ZINTER, ZDIFF and their STORE forms; `numkeys` is argument `at`. */
function combine(client: Client, args: readonly string[], at: number, operation: Operation, stores: boolean) {
  const { database, server } = client;
  const command = args[0].toLowerCase();
  const count = needInteger(args[at]);
  if (count < 1)
    throw new Refusal(
      server.engine === 'redis'
        ? `ERR at least 1 input key is needed for '${command}' command`
        : `ERR at least 1 input key is needed for ${command}`,
    );
  if (count > args.length - at - 1) throw SYNTAX;
  const sets = args.slice(at + 1, at + 1 + count).map((key) => scoresOf(database, key));
  const weights = sets.map(() => 1);
  let [scores, aggregate] = [false, AGGREGATES.sum];
  const options = new Options(args, at + 1 + count);
  while (options.more) {
    const word = options.word();
    if (operation !== 'diff' && word === 'weights' && options.left >= count)
      for (let i = 0; i < count; i++)
        weights[i] = needDouble(options.next(), new Refusal('ERR weight value is not a float'));
    else if (operation !== 'diff' && word === 'aggregate' && options.more) {
      const found = AGGREGATES[options.word()];
      if (found === undefined) throw SYNTAX;
      aggregate = found;
    } else if (word === 'withscores' && !stores) scores = true;
    else throw SYNTAX;
  }
  return { result: combined(sets, weights, operation, aggregate), scores };
}

function combined(
  sets: readonly ReadonlyMap<string, number>[],
  weights: readonly number[],
  operation: Operation,
  aggregate: Aggregate,
): Map<string, number> {
  const result = new Map<string, number>();
  const weighted = (i: number, score: number): number => {
    const value = score * weights[i];
    return Number.isNaN(value) ? 0 : value;
  };
  const [first, ...others] = sets;
  if (operation === 'union') {
    // Servers begin with the smallest, which shows where sums are rounded.
    const smallestFirst = sets.map((set, i) => ({ set, i })).sort((a, b) => a.set.size - b.set.size);
    for (const { set, i } of smallestFirst)
      for (const [member, score] of set) {
        const old = result.get(member);
        result.set(member, old === undefined ? weighted(i, score) : aggregate(old, weighted(i, score)));
      }
    return result;
  }
  for (const [member, score] of first) {
    if (operation === 'diff') {
      if (!others.some((set) => set.has(member))) result.set(member, score);
    } else if (others.every((set) => set.has(member)))
      result.set(
        member,
        others.reduce((sum, set, i) => aggregate(sum, weighted(i + 1, set.get(member)!)), weighted(0, score)),
      );
  }
  return result;
}

const combination =
  (operation: Operation): Run =>
  (client, args) => {
    const { result, scores } = combine(client, args, 1, operation, false);
    return listed(new SortedSet(result).ordered(), scores, client.protocol);
  };

const combinationStore =
  (operation: Operation): Run =>
  (client, args) => {
    const { result } = combine(client, args, 2, operation, true);
    const { database, server } = client;
    return store(
      database,
      args[1],
      'zset',
      new SortedSet(Array.from(result, ([member, score]) => [member, stored(server, score)])),
    );
  };

const cardinality: Run = ({ database }, args) => {
  const count = needInteger(args[1]);
  if (count < 1) throw new Refusal("ERR at least 1 input key is needed for 'zintercard' command");
  if (count > args.length - 2) throw SYNTAX;
  const [first, ...others] = args.slice(2, 2 + count).map((key) => scoresOf(database, key));
  let limit = 0;
  const options = new Options(args, 2 + count);
  while (options.more) {
    if (options.word() !== 'limit' || !options.more) throw SYNTAX;
    const negative = new Refusal("ERR LIMIT can't be negative");
    limit = needPositive(options.next(), negative);
  }
  let found = 0;
  for (const member of first.keys()) if (others.every((set) => set.has(member))) found++;
  return integer(limit === 0 ? found : Math.min(limit, found));
};

type End = 'min' | 'max';

/** Up to `count` members from one end, the outermost first. */
function take(database: Database, key: string, set: SortedSet, end: End, count: number): Member[] {
  const ordered = set.ordered();
  const taken = end === 'min' ? ordered.slice(0, count) : ordered.slice(-count).reverse();
  for (const { member } of taken) set.delete(member);
  database.deleteIfEmpty(key, set.size);
  database.touch(key);
  return taken;
}

const pop =
  (end: End): Run =>
  (client, args) => {
    const { database, protocol, server } = client;
    if (args.length > 3) throw SYNTAX;
    let count: number | null = null;
    if (args.length === 3) {
      count = server.engine === 'redis' ? needPositive(args[2]) : needInteger(args[2]);
      if (count <= 0 && server.engine === 'keydb') return EMPTY_ARRAY;
    }
    const set = setAt(client, args[1]);
    if (set === undefined || count === 0) return EMPTY_ARRAY;
    const taken = take(database, args[1], set, end, count ?? 1);
    if (count !== null) return withScores(taken, protocol);
    return arrayOf(2) + bulk(taken[0].member) + double(taken[0].score, protocol);
  };

const blockingPop =
  (end: End): Run =>
  (client, args) => {
    const ms = waitOf(args[args.length - 1], client.server.engine === 'redis' ? 'up' : 'down');
    const popFrom = (key: string, set: SortedSet): string => {
      const [{ member, score }] = take(client.database, key, set, end, 1);
      return arrayOf(3) + bulk(key) + bulk(member) + double(score, client.protocol);
    };
    return popFirst(client, 'zset', args.slice(1, -1), popFrom, ms);
  };

/** ZMPOP and BZMPOP: `numkeys key … MIN|MAX [COUNT n]` from argument `at` on. */
function popMany(client: Client, args: readonly string[], at: number, waits: boolean): string {
  const count = needCount(args[at], new Refusal('ERR numkeys should be greater than 0'));
  const where = at + 1 + count;
  if (where >= args.length) throw SYNTAX;
  const end = lower(args[where]);
  if (end !== 'min' && end !== 'max') throw SYNTAX;
  let most: number | null = null;
  const options = new Options(args, where + 1);
  while (options.more) {
    if (options.word() !== 'count' || most !== null) throw SYNTAX;
    most = needCount(options.next(), new Refusal('ERR count should be greater than 0'));
  }
  const popFrom = (key: string, set: SortedSet): string => {
    const taken = take(client.database, key, set, end, most ?? 1);
    const rows = taken.map(({ member, score }) => arrayOf(2) + bulk(member) + double(score, client.protocol));
    return arrayOf(2) + bulk(key) + arrayOf(rows.length) + rows.join('');
  };
  return popFirst(client, 'zset', args.slice(at + 1, where), popFrom, waits ? waitOf(args[1], 'up') : null);
}

const rank =
  (isReverse: boolean): Run =>
  (client, [, key, member]) => {
    const set = setAt(client, key);
    if (set === undefined || !set.scores.has(member)) return nil(client.protocol);
    const at = set.ordered().findIndex((each) => each.member === member);
    return integer(isReverse ? set.size - 1 - at : at);
  };

const random: Run = (client, args) => {
  const { protocol, server } = client;
  if (args.length === 2) {
    const set = setAt(client, args[1]);
    return bulkOrNil(set && [...set.scores.keys()][server.below(set.size)], protocol);
  }
  const count = needInteger(args[2]);
  if (args.length > 4 || (args.length === 4 && lower(args[3]) !== 'withscores')) throw SYNTAX;
  if (args.length === 4 && Math.abs(count) > 2 ** 62) throw new Refusal('ERR value is out of range');
  return listed(randomOf(setAt(client, args[1])?.ordered() ?? NO_MEMBERS, count, server), args.length === 4, protocol);
};

export const SORTED_SET_COMMANDS: Readonly<Record<string, Run>> = {
  zadd: add(false),
  zincrby: add(true),
  zrem({ database }, args) {
    const [, key] = args;
    const set = database.getAs(key, 'zset');
    if (set === undefined) return ZERO;
    let count = 0;
    for (let i = 2; i < args.length; i++) if (set.delete(args[i])) count++;
    if (count > 0) {
      database.deleteIfEmpty(key, set.size);
      database.touch(key);
    }
    return integer(count);
  },
  zremrangebyrank: removeRange('rank'),
  zremrangebyscore: removeRange('score'),
  zremrangebylex: removeRange('lex'),
  zscore(client, [, key, member]) {
    const score = setAt(client, key)?.scores.get(member);
    return score === undefined ? nil(client.protocol) : double(score, client.protocol);
  },
  zmscore(client, args) {
    const set = setAt(client, args[1]);
    let reply = arrayOf(args.length - 2);
    for (let i = 2; i < args.length; i++) {
      const score = set?.scores.get(args[i]);
      reply += score === undefined ? nil(client.protocol) : double(score, client.protocol);
    }
    return reply;
  },
  zcard: (client, [, key]) => integer(setAt(client, key)?.size ?? 0),
  zcount(client, [, key, min, max]) {
    const pick = pickerOf('score', min, max, false);
    return integer(pick(setAt(client, key)?.ordered() ?? NO_MEMBERS).length);
  },
  zlexcount(client, [, key, min, max]) {
    const pick = pickerOf('lex', min, max, false);
    return integer(pick(setAt(client, key)?.ordered() ?? NO_MEMBERS).length);
  },
  zrank: rank(false),
  zrevrank: rank(true),
  zrange: range(null, null),
  zrevrange: range('rank', true),
  zrangebyscore: range('score', false),
  zrevrangebyscore: range('score', true),
  zrangebylex: range('lex', false),
  zrevrangebylex: range('lex', true),
  zrangestore(client, args) {
    const { members } = rangeOf(client, args, 2, { by: null, isReverse: null, scores: false });
    return store(client.database, args[1], 'zset', new SortedSet(members.map(({ member, score }) => [member, score])));
  },
  zunion: combination('union'),
  zinter: combination('inter'),
  zdiff: combination('diff'),
  zunionstore: combinationStore('union'),
  zinterstore: combinationStore('inter'),
  zdiffstore: combinationStore('diff'),
  zintercard: cardinality,
  zpopmin: pop('min'),
  zpopmax: pop('max'),
  bzpopmin: blockingPop('min'),
  bzpopmax: blockingPop('max'),
  zmpop: (client, args) => popMany(client, args, 1, false),
  bzmpop: (client, args) => popMany(client, args, 2, true),
  zrandmember: random,
  zscan({ database, server }, args) {
    needCursor(args[2]);
    const set = database.getAs(args[1], 'zset');
    if (set === undefined) return NOTHING_SCANNED;
    return scanCollection(server, args, set.scores, (member) => [member, formatDouble(set.scores.get(member)!)], SMALL);
  },
};
