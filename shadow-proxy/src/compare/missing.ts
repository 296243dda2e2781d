/**
 * What each command answers when its key does not exist. So one of two differing replies may show that its server
 * lacked the key. The replies are those of Redis 7.0.15 and KeyDB 6.3.4.
 */
import { isError, isNull, text, type Reply } from '../resp/decode.js';
import { integerOf, isEmpty, isString, word } from './shape.js';
import type { CommandView } from './verdict.js';

type Looks = (reply: Reply, args: readonly Buffer[]) => boolean;

const integer =
  (value: (args: readonly Buffer[]) => number): Looks =>
  (reply, args) => {
    const expected = value(args);
    return Number.isSafeInteger(expected) && integerOf(reply) === BigInt(expected);
  };
const number = (arg: Buffer | undefined): number => Number(arg?.toString('latin1'));
const size = (arg: Buffer | undefined): number => arg?.length ?? NaN;

const isNil: Looks = (reply) => isNull(reply);
const isZero = integer(() => 0);
const isOne = integer(() => 1);
const isMinusTwo = integer(() => -2);
const isEmptyList: Looks = (reply) => isEmpty(reply);
const isNilOrEmpty: Looks = (reply) => isNull(reply) || isEmpty(reply);
const isEmptyString: Looks = (reply) => isString(reply) && reply.data!.length === 0;
const isNone: Looks = (reply) => reply.type === '+' && text(reply) === 'none';
const isAllNil: Looks = (reply) => reply.items !== null && reply.items.every(isNull);
const isAllZero: Looks = (reply) => reply.items !== null && reply.items.every((item) => integerOf(item) === 0n);
const isLastPage: Looks = (reply) =>
  reply.items?.length === 2 && text(reply.items[0]) === '0' && isEmpty(reply.items[1]);
const says =
  (pattern: RegExp): Looks =>
  (reply) =>
    isError(reply) && pattern.test(text(reply));
const isNoSuchKey = says(/^ERR no such key/);
const isNoGroup = says(/^NOGROUP /);
const needsKey = says(/requires the key to exist/);
const isOk: Looks = (reply) => reply.type === '+' && text(reply) === 'OK';
/** The reply is the number that was to be added: the sum began at 0. */
const isNumber =
  (value: (args: readonly Buffer[]) => number): Looks =>
  (reply, args) =>
    !isError(reply) && reply.data !== null && Number(text(reply)) === value(args);

const table = (rows: readonly (readonly [Looks, string])[]): ReadonlyMap<string, Looks> =>
  new Map(rows.flatMap(([looks, names]) => names.split(' ').map((name) => [name, looks] as const)));

const READS = table([
  [isNil, 'get hget lindex zscore zrank zrevrank geodist dump randomkey'],
  [isNil, 'object|encoding object|idletime object|freq object|refcount memory|usage'],
  [isNilOrEmpty, 'lpos hrandfield srandmember zrandmember xread mget'],
  [isEmptyString, 'getrange substr lcs'],
  [isZero, 'strlen getbit bitcount llen scard hlen hstrlen zcard zcount zlexcount xlen pfcount'],
  [isZero, 'exists touch sismember hexists sintercard zintercard'],
  [isMinusTwo, 'ttl pttl expiretime pexpiretime'],
  [isNone, 'type'],
  [
    isEmptyList,
    'lrange smembers sinter sunion sdiff hgetall hkeys hvals sort_ro xrange xrevrange keys zinter zunion zdiff',
  ],
  [isEmptyList, 'zrange zrangebyscore zrangebylex zrevrange zrevrangebyscore zrevrangebylex'],
  [isEmptyList, 'geosearch georadius_ro georadiusbymember_ro'],
  [isAllNil, 'hmget zmscore geopos geohash'],
  [isAllZero, 'smismember bitfield_ro'],
  [isLastPage, 'hscan sscan zscan scan'],
  [isNoSuchKey, 'xinfo|stream xinfo|groups xinfo|consumers debug|object'],
  [isNoGroup, 'xpending'],
  [integer((args) => (number(args[2]) === 0 ? 0 : -1)), 'bitpos'],
]);

const distinct = (args: readonly Buffer[], step: number): number =>
  new Set(args.filter((_, i) => i % step === 0).map((arg) => arg.toString('latin1'))).size;

/** ZADD key [options] score member …: the number of members. */
function zaddMembers(args: readonly Buffer[]): number {
  const first = args.findIndex((arg, i) => i > 1 && !/^(NX|XX|GT|LT|CH|INCR)$/.test(word(arg)));
  return first === -1 ? 0 : distinct(args.slice(first + 1), 2);
}

const hasOption = (args: readonly Buffer[], from: number, option: string): boolean =>
  args.some((arg, i) => i >= from && word(arg) === option);
/** SET key value [NX|XX] [GET]: NX sets the key only if it does not exist. */
const isFreshSet: Looks = (reply, args) =>
  hasOption(args, 3, 'NX') && !hasOption(args, 3, 'GET') ? isOk(reply, args) : isNull(reply);

const WRITES = table([
  [isOne, 'incr setnx hsetnx pfadd'],
  [integer(() => -1), 'decr'],
  [isNumber((args) => number(args[2])), 'incrby incrbyfloat zincrby'],
  [isNumber((args) => -number(args[2])), 'decrby'],
  [isNumber((args) => number(args[3])), 'hincrby hincrbyfloat'],
  [integer((args) => size(args[2])), 'append'],
  [integer((args) => number(args[2]) + size(args[3])), 'setrange'],
  [integer((args) => args.length - 2), 'lpush rpush'],
  [integer((args) => distinct(args.slice(2), 1)), 'sadd'],
  [integer((args) => distinct(args.slice(2), 2)), 'hset'],
  [integer(zaddMembers), 'zadd'],
  [isFreshSet, 'set'],
  [isNilOrEmpty, 'getset getdel getex lpop rpop spop lmove rpoplpush zpopmin zpopmax sort georadius georadiusbymember'],
  [
    isZero,
    'expire pexpire expireat pexpireat persist del unlink hdel srem zrem xdel xack lrem xtrim lpushx rpushx linsert',
  ],
  [isZero, 'setbit copy move smove zremrangebyrank zremrangebyscore zremrangebylex'],
  [isNoSuchKey, 'rename renamenx lset'],
  [isOk, 'restore'],
  [isNoGroup, 'xreadgroup xclaim xautoclaim'],
  [needsKey, 'xgroup|create xgroup|setid xgroup|destroy xgroup|createconsumer xgroup|delconsumer'],
]);

export const isRead = (command: CommandView): boolean => READS.has(command.name);

export type Side = 'authority' | 'mirror';

/** The side whose reply, and not the other's, is that for a missing key; null if that is unknown. */
export function missingOn(command: CommandView, authority: Reply, mirror: Reply): Side | null {
  if (command.name === 'exec') return null;
  if (command.name === 'mget') return missingOnAll(keysMissing(authority, mirror));
  const looks = READS.get(command.name) ?? WRITES.get(command.name) ?? isNil;
  const [a, m] = [looks(authority, command.args), looks(mirror, command.args)];
  return a === m ? null : a ? 'authority' : 'mirror';
}

function missingOnAll(missing: readonly { side: Side }[] | null): Side | null {
  return missing !== null && missing.every(({ side }) => side === missing[0].side) ? missing[0].side : null;
}

/**
 * The keys of an MGET, by their index, that one side has and the other lacks; null if the replies differ in any other
 * way.
 */
export function keysMissing(authority: Reply, mirror: Reply): readonly { index: number; side: Side }[] | null {
  const [a, m] = [authority.items, mirror.items];
  if (a === null || m === null || a.length !== m.length || authority.type !== mirror.type) return null;
  const missing: { index: number; side: Side }[] = [];
  for (const [index, value] of a.entries()) {
    const other = m[index];
    if (isNull(value) !== isNull(other)) missing.push({ index, side: isNull(value) ? 'authority' : 'mirror' });
    else if (!isNull(value) && !value.data!.equals(other.data!)) return null;
  }
  return missing.length > 0 ? missing : null;
}

/** Whether the command reads several keys: then the absence of one key changes the reply in other ways. */
export function readsSeveralKeys({ name, args }: CommandView): boolean {
  switch (name) {
    case 'exists':
    case 'touch':
    case 'pfcount':
    case 'sinter':
    case 'sunion':
    case 'sdiff':
      return args.length > 2;
    case 'lcs':
    case 'xread':
    case 'sort':
    case 'sort_ro':
      return true;
    case 'zinter':
    case 'zunion':
    case 'zdiff':
    case 'sintercard':
    case 'zintercard':
      return number(args[1]) > 1;
    default:
      return false;
  }
}
