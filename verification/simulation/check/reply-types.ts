/** The replies that a command may get, by their first byte; `n` stands for nil. Any command may get an error. */
import type { Reply } from '../clients/replies.js';

const NAMES: Readonly<Record<string, string>> = {
  '+': 'AUTH CONFIG DISCARD QUIT FLUSHALL FLUSHDB HMSET LSET LTRIM MSET MULTI PING PSETEX RENAME RESET RESTORE SELECT SWAPDB TYPE UNWATCH WATCH',
  ':':
    'APPEND BITCOUNT COPY DBSIZE DECR DECRBY DEL EXISTS EXPIRE EXPIREAT HDEL HEXISTS HINCRBY HLEN HSET HSETNX INCR INCRBY LLEN ' +
    'LPUSH MOVE MSETNX PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PTTL PUBLISH RENAMENX RPUSH RPUSHX SADD SCARD SDIFFSTORE ' +
    'SETNX SETRANGE SINTERCARD SINTERSTORE SISMEMBER SMOVE SREM STRLEN SUNIONSTORE TOUCH TTL UNLINK XACK XDEL XLEN ' +
    'XTRIM ZCARD ZCOUNT ZDIFFSTORE ZINTERSTORE ZRANGESTORE ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE',
  $: 'ECHO GETRANGE HINCRBYFLOAT INCRBYFLOAT ZINCRBY',
  $n: 'BLMOVE BRPOPLPUSH DUMP GET GETDEL GETEX GETSET HGET LINDEX LMOVE RANDOMKEY RPOPLPUSH XADD ZSCORE',
  '*':
    'HGETALL HKEYS HMGET HSCAN HVALS KEYS LRANGE MGET SCAN SDIFF SINTER SMEMBERS SMISMEMBER SSCAN SUNION TIME ' +
    'HELLO XAUTOCLAIM XCLAIM XPENDING XRANGE XREVRANGE ZPOPMAX ZPOPMIN ZRANGE ZSCAN ZUNION',
  '*n': 'BLMPOP BLPOP BRPOP BZMPOP BZPOPMAX BZPOPMIN EXEC LMPOP XREAD XREADGROUP ZMPOP',
  '$*n': 'HRANDFIELD LPOP RPOP SPOP SRANDMEMBER ZRANDMEMBER',
  ':$n': 'OBJECT ZADD',
  '+:$*n': 'CLIENT EVAL EVALSHA SCRIPT',
  ':n': 'ZRANK',
  '+$n': 'SET',
  '+:': 'XGROUP',
};

const TYPES = new Map(
  Object.entries(NAMES).flatMap(([types, names]) => names.split(' ').map((name) => [name, types] as const)),
);

/** Every command that clients send. */
export const COMMANDS: readonly string[] = [...TYPES.keys()];

export const typeOf = (reply: Reply): string =>
  reply === null ? 'n' : typeof reply === 'number' ? ':' : typeof reply === 'string' ? reply[0] : '*';

/** Why no server gives this reply; null where one may. */
export function wrongType(args: readonly string[], reply: Reply): string | null {
  const type = typeOf(reply);
  if (type === '-') return null;
  const allowed = TYPES.get(args[0]);
  if (allowed === undefined) throw new Error(`reply-types.ts lacks ${args[0]}`);
  return allowed.includes(type) ? null : `${args.join(' ')} got ${JSON.stringify(reply)}`;
}

/** The same for EXEC: as many replies as commands were queued, each of its command's type. */
export function wrongTypesOfExec(queued: readonly (readonly string[])[], reply: Reply): string | null {
  if (!Array.isArray(reply)) return null;
  const replies = reply as readonly Reply[];
  if (replies.length !== queued.length)
    return `EXEC of ${queued.length} commands got ${replies.length} replies: ${JSON.stringify(reply)}`;
  for (const [i, args] of queued.entries()) {
    const problem = wrongType(args, replies[i]);
    if (problem !== null) return `in EXEC, ${problem}`;
  }
  return null;
}
