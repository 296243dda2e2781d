/**
 * Lists, hashes, sets and sorted sets, without clients that wait.
 *
 * Needs real servers: replies to commands of collections, beside those of the model.
 */
import { duels, type Words } from './duel.js';
import type { Random } from './random.js';

const KEYS = ['a', 'b', 'c', 'd'];
const MEMBERS = ['m0', 'm1', 'm2', 'm3', 'm4', '1', '22', ''];
const COUNTS = ['0', '1', '2', '3', '-1', '-2', '100', 'x', '1.5'];
const SCORES = ['0', '-0', '1', '2', '-1.5', '0.25', '1e3', 'inf', '-inf', '3', '+5', 'nan', 'x', ''];
const BOUNDS = ['-inf', '+inf', '0', '(0', '1', '(1', '2.5', '(-1.5', '1000', 'x', '(', ''];
const LEX = ['-', '+', '[m1', '(m1', '[m3', '(', '[', 'm1'];

function lists(random: Random): Words {
  const key = (): string => random.pick(KEYS);
  const member = (): string => random.pick(MEMBERS);
  const count = (): string => random.pick(COUNTS);
  const end = (): string => random.pick(['LEFT', 'RIGHT', 'left', 'UP']);
  return random.pick<() => Words>([
    () => [random.pick(['LPUSH', 'RPUSH', 'LPUSH', 'RPUSH', 'LPUSHX', 'RPUSHX']), key(), ...random.some(MEMBERS, 4)],
    () => [random.pick(['LPOP', 'RPOP']), key()],
    () => [random.pick(['LPOP', 'RPOP']), key(), count()],
    () => ['LLEN', key()],
    () => ['LINDEX', key(), count()],
    () => ['LSET', key(), count(), member()],
    () => ['LRANGE', key(), count(), count()],
    () => ['LTRIM', key(), random.pick(['0', '-5', '1']), random.pick(['-1', '4', '6', count()])],
    () => ['LREM', key(), count(), member()],
    () => ['LINSERT', key(), random.pick(['BEFORE', 'AFTER', 'after', 'NEAR']), member(), member()],
    () => [
      'LPOS',
      key(),
      member(),
      ...random.pick([
        [],
        ['RANK', count()],
        ['COUNT', count()],
        ['RANK', count(), 'COUNT', count()],
        ['MAXLEN', count()],
        ['RANK'],
      ]),
    ],
    () => ['RPOPLPUSH', key(), key()],
    () => ['LMOVE', key(), key(), end(), end()],
    () => [
      'LMPOP',
      random.pick(['1', '2', '0', 'x', '9']),
      key(),
      key(),
      end(),
      ...random.pick([[], ['COUNT', count()], ['ZZ']]),
    ],
    () => ['LMPOP', '1', key(), end(), ...random.pick([[], ['COUNT', count()]])],
  ])();
}

/** What SORT says of a set that it does not sort has another order. */
function listsSorted(random: Random): Words {
  if (!random.chance(0.1)) return lists(random);
  const key = random.pick(KEYS);
  return random.pick<Words>([
    ['SORT', key, ...random.pick([[], ['ALPHA'], ['ALPHA', 'DESC'], ['BY', 'nosort'], ['BY'], ['FOO']])],
    ['SORT', key, 'ALPHA', 'LIMIT', random.pick(COUNTS), random.pick(COUNTS)],
  ]);
}

function hashes(random: Random): Words {
  const key = (): string => random.pick(KEYS);
  const member = (): string => random.pick(MEMBERS);
  const value = (): string => random.pick([...MEMBERS, '10', '2.5', '9223372036854775807', 'v'.repeat(80)]);
  return random.pick<() => Words>([
    () => [random.pick(['HSET', 'HMSET']), key(), ...random.some(MEMBERS, 3).flatMap((field) => [field, value()])],
    () => ['HSET', key(), member(), value(), member()],
    () => ['HSETNX', key(), member(), value()],
    () => ['HGET', key(), member()],
    () => ['HMGET', key(), ...random.some(MEMBERS, 3)],
    () => [random.pick(['HGETALL', 'HKEYS', 'HVALS', 'HLEN']), key()],
    () => ['HEXISTS', key(), member()],
    () => ['HSTRLEN', key(), member()],
    () => ['HDEL', key(), ...random.some(MEMBERS, 4)],
    () => ['HINCRBY', key(), member(), random.pick(['1', '-5', '9223372036854775807', 'x'])],
    () => ['HINCRBYFLOAT', key(), member(), random.pick(['0.1', '-2.25', '1e3', 'inf', 'nan', 'x'])],
    () => ['HRANDFIELD', key(), random.pick(['0', '100', 'x']), ...random.pick([[], ['ZZ']])],
  ])();
}

function sets(random: Random): Words {
  const key = (): string => random.pick(KEYS);
  const member = (): string => random.pick(MEMBERS);
  return random.pick<() => Words>([
    () => ['SADD', key(), ...random.some(MEMBERS, 5)],
    () => ['SADD', key(), ...random.some(MEMBERS, 5)],
    () => ['SREM', key(), ...random.some(MEMBERS, 3)],
    () => ['SMOVE', key(), key(), member()],
    () => ['SISMEMBER', key(), member()],
    () => ['SMISMEMBER', key(), ...random.some(MEMBERS, 3)],
    () => [random.pick(['SCARD', 'SMEMBERS']), key()],
    () => [random.pick(['SINTER', 'SUNION', 'SDIFF']), ...random.some(KEYS, 3)],
    () => [random.pick(['SINTERSTORE', 'SUNIONSTORE', 'SDIFFSTORE']), key(), ...random.some(KEYS, 3)],
    () => [
      'SINTERCARD',
      random.pick(['1', '2', '0', 'x', '9']),
      key(),
      key(),
      ...random.pick([[], ['LIMIT', '1'], ['LIMIT', '-1'], ['ZZ', '1']]),
    ],
    () => ['SRANDMEMBER', key(), random.pick(['0', 'x'])],
    () => ['SPOP', key(), random.pick(['0', '-1', 'x', '100'])],
    () => ['SPOP', 'nothing'],
    () => ['SSCAN', random.pick([key(), 'nothing']), 'x'],
  ])();
}

function sortedSets(random: Random): Words {
  const key = (): string => random.pick(KEYS);
  const member = (): string => random.pick(MEMBERS);
  const score = (): string => (random.chance(0.1) ? random.pick(SCORES) : random.pick(SCORES.slice(0, 9)));
  const bound = (): string => random.pick(BOUNDS);
  const count = (): string => random.pick(COUNTS);
  const lex = (): string => random.pick(LEX);
  const limit = (): string[] =>
    random.pick([[], [], ['LIMIT', '0', '2'], ['LIMIT', '1', '-1'], ['LIMIT', count(), count()], ['LIMIT', '1']]);
  const scores = (): string[] => random.pick([[], ['WITHSCORES'], ['ZZ']]);
  const combination = (): string[] => [
    random.pick(['1', '2', '2', '0', 'x', '9']),
    key(),
    key(),
    ...random.pick([
      [],
      ['WEIGHTS', '2', '0.5'],
      ['WEIGHTS', 'x', '1'],
      ['AGGREGATE', random.pick(['SUM', 'MIN', 'max', 'AVG'])],
      ['WITHSCORES'],
    ]),
  ];
  return random.pick<() => Words>([
    () => ['ZADD', key(), ...random.some(MEMBERS, 3).flatMap((each) => [score(), each])],
    () => ['ZADD', key(), ...random.some(MEMBERS, 3).flatMap((each) => ['0', each])],
    () => ['ZADD', key(), ...random.some(['NX', 'XX', 'GT', 'LT', 'CH', 'INCR', 'ch'], 2), score(), member()],
    () => [
      'ZADD',
      key(),
      ...random.some(['NX', 'XX', 'GT', 'LT', 'CH', 'INCR'], 2),
      score(),
      member(),
      score(),
      member(),
    ],
    () => ['ZINCRBY', key(), score(), member()],
    () => ['ZREM', key(), ...random.some(MEMBERS, 2)],
    () => ['ZSCORE', key(), member()],
    () => ['ZMSCORE', key(), ...random.some(MEMBERS, 3)],
    () => ['ZCARD', key()],
    () => [random.pick(['ZRANK', 'ZREVRANK']), key(), member()],
    () => ['ZCOUNT', key(), bound(), bound()],
    () => ['ZLEXCOUNT', key(), lex(), lex()],
    () => [
      'ZRANGE',
      key(),
      count(),
      count(),
      ...random.pick([[], ['REV'], ['WITHSCORES'], ['REV', 'WITHSCORES'], ['LIMIT', '0', '1']]),
    ],
    () => ['ZRANGE', key(), bound(), bound(), 'BYSCORE', ...random.pick([[], ['REV']]), ...limit(), ...scores()],
    () => ['ZRANGE', key(), lex(), lex(), 'BYLEX', ...random.pick([[], ['REV']]), ...limit(), ...scores()],
    () => ['ZREVRANGE', key(), count(), count(), ...scores()],
    () => [random.pick(['ZRANGEBYSCORE', 'ZREVRANGEBYSCORE']), key(), bound(), bound(), ...scores(), ...limit()],
    () => [random.pick(['ZRANGEBYLEX', 'ZREVRANGEBYLEX']), key(), lex(), lex(), ...limit()],
    () => ['ZRANGESTORE', key(), key(), count(), count(), ...random.pick([[], ['REV'], ['WITHSCORES']])],
    () => ['ZRANGESTORE', key(), key(), bound(), bound(), 'BYSCORE', ...limit()],
    () => ['ZREMRANGEBYRANK', key(), count(), random.pick(['0', '1', '-3', 'x'])],
    () => ['ZREMRANGEBYSCORE', key(), bound(), bound()],
    () => ['ZREMRANGEBYLEX', key(), lex(), lex()],
    () => [random.pick(['ZUNION', 'ZINTER', 'ZDIFF']), ...combination()],
    () => [random.pick(['ZUNIONSTORE', 'ZINTERSTORE', 'ZDIFFSTORE']), key(), ...combination()],
    () => ['ZINTERCARD', '2', key(), key(), ...random.pick([[], ['LIMIT', '1'], ['LIMIT', '-1'], ['ZZ']])],
    () => [random.pick(['ZPOPMIN', 'ZPOPMAX']), key(), ...random.pick([[], [count()], ['1', '2']])],
    () => [
      'ZMPOP',
      random.pick(['1', '2', '0']),
      key(),
      key(),
      random.pick(['MIN', 'MAX', 'MID']),
      ...random.pick([[], ['COUNT', count()]]),
    ],
    () => ['ZMPOP', '1', key(), random.pick(['MIN', 'max']), ...random.pick([[], ['COUNT', count()]])],
    () => ['ZRANDMEMBER', key(), random.pick(['0', 'x']), ...random.pick([[], ['ZZ']])],
  ])();
}

/** Any type, expiry, transactions, and the protocol's two versions. */
function mixed(random: Random): Words {
  const key = (): string => random.pick(KEYS);
  return random.pick<() => Words>([
    () => lists(random),
    () => hashes(random),
    () => sets(random),
    () => sortedSets(random),
    () => ['DEL', ...random.some(KEYS, 2)],
    () => ['DEL', ...random.some(KEYS, 2)],
    () => ['RENAME', key(), key()],
    () => ['COPY', key(), key(), ...random.pick([[], ['REPLACE']])],
    () => ['SET', key(), 'text'],
    () => ['EXPIRE', key(), random.pick(['1000', '-1'])],
    () => ['TYPE', key()],
    () => ['MULTI'],
    () => ['EXEC'],
    () => ['EXEC'],
    () => ['WATCH', key()],
    () => ['HELLO', random.pick(['2', '3', '3', '4', 'x'])].slice(0, 2),
  ])();
}

duels('answers commands of lists as the server does', 11, 3000, listsSorted);
duels('answers commands of hashes as the server does', 12, 3000, hashes);
duels('answers commands of sets as the server does', 13, 3000, sets);
duels('answers commands of sorted sets as the server does', 14, 4000, sortedSets);
duels('answers commands of any collection as the server does', 15, 5000, mixed);
