/** The replies that a command may get, by their first byte; `n` stands for nil. Any command may get an error. */
import type { Reply } from '../clients/replies.js';

const TYPES: Readonly<Record<string, string>> = {
  APPEND: ':',
  BLMOVE: '$n',
  BLPOP: '*n',
  BRPOP: '*n',
  COPY: ':',
  DECRBY: ':',
  DEL: ':',
  DISCARD: '+',
  EXEC: '*n',
  EXISTS: ':',
  GET: '$n',
  GETDEL: '$n',
  GETEX: '$n',
  GETSET: '$n',
  HDEL: ':',
  HGET: '$n',
  HGETALL: '*',
  HINCRBY: ':',
  HLEN: ':',
  HSET: ':',
  INCR: ':',
  INCRBY: ':',
  LINDEX: '$n',
  LLEN: ':',
  LMOVE: '$n',
  LPOP: '$*n',
  LPUSH: ':',
  LRANGE: '*',
  LSET: '+',
  LTRIM: '+',
  MGET: '*',
  MSET: '+',
  MSETNX: ':',
  MULTI: '+',
  PERSIST: ':',
  PEXPIRE: ':',
  PSETEX: '+',
  RENAME: '+',
  RPOP: '$*n',
  RPUSH: ':',
  SADD: ':',
  SCARD: ':',
  SET: '+$n',
  SETNX: ':',
  SETRANGE: ':',
  SISMEMBER: ':',
  SMEMBERS: '*',
  SPOP: '$n',
  SREM: ':',
  STRLEN: ':',
  TTL: ':',
  WATCH: '+',
};

export const typeOf = (reply: Reply): string =>
  reply === null ? 'n' : typeof reply === 'number' ? ':' : typeof reply === 'string' ? reply[0] : '*';

/** Why no server gives this reply; null where one may. */
export function wrongType(args: readonly string[], reply: Reply, queued: boolean): string | null {
  const type = typeOf(reply);
  if (type === '-') return null;
  if (queued) return reply === '+QUEUED' ? null : `${args.join(' ')} in a transaction got ${JSON.stringify(reply)}`;
  const allowed = TYPES[args[0]];
  if (allowed === undefined) throw new Error(`reply-types.ts lacks ${args[0]}`);
  return allowed.includes(type) ? null : `${args.join(' ')} got ${JSON.stringify(reply)}`;
}
