/**
 * The closed list of what a repeated script may do: commands that have the same effect, and the same reply, on two
 * servers with the same data, whatever their versions. What is not listed is not repeated.
 */

/** What Lua makes of a command's reply: `text` is a text or false. */
export type ReplyKind = 'number' | 'text' | 'table';

export interface Repeatable {
  /** Of each argument: `k` key, `v` value, `n` number; `x` for options; in brackets what may come again. */
  readonly arguments: string;
  /** The options at `x` with how many values each has; all of them are written as texts. */
  readonly options: Readonly<Record<string, number>>;
  /** Null where the reply may not be used: its form depends on the server. */
  readonly reply: ReplyKind | null;
}

const TTL = { ex: 1, px: 1, nx: 0, xx: 0 };
const SCORES = { nx: 0, xx: 0, ch: 0, gt: 0, lt: 0 };

const ROWS: readonly (readonly [
  names: string,
  args: string,
  reply: ReplyKind | null,
  options?: Readonly<Record<string, number>>,
])[] = [
  ['get getdel', 'k', 'text'],
  ['getset', 'kv', 'text'],
  ['set', 'kvx', 'text', TTL],
  ['type', 'k', 'table'],
  ['setnx append', 'kv', 'number'],
  ['setex psetex', 'knv', 'table'],
  ['mget', '(k)', 'table'],
  ['mset', '(kv)', 'table'],
  ['incr decr strlen persist llen hlen scard zcard', 'k', 'number'],
  ['incrby decrby expire pexpire expireat pexpireat getbit', 'kn', 'number'],
  ['setrange', 'knv', 'number'],
  ['setbit', 'knn', 'number'],
  ['getrange', 'knn', 'text'],
  ['del unlink exists sunionstore sinterstore sdiffstore', '(k)', 'number'],
  ['rename', 'kk', 'table'],
  ['renamenx', 'kk', 'number'],
  ['hget', 'kv', 'text'],
  ['hexists hstrlen', 'kv', 'number'],
  ['hset', 'k(vv)', 'number'],
  ['hmset', 'k(vv)', 'table'],
  ['hmget', 'k(v)', 'table'],
  ['hsetnx', 'kvv', 'number'],
  ['hdel sadd srem zrem lpush rpush lpushx rpushx', 'k(v)', 'number'],
  ['hincrby', 'kvn', 'number'],
  ['lpop rpop', 'k', 'text'],
  ['lindex', 'kn', 'text'],
  ['lrange', 'knn', 'table'],
  ['ltrim', 'knn', 'table'],
  ['lrem', 'knv', 'number'],
  ['lset', 'knv', 'table'],
  ['linsert', 'kvvv', 'number'],
  ['lmove', 'kkvv', 'text'],
  ['rpoplpush', 'kk', 'text'],
  ['sismember', 'kv', 'number'],
  ['smismember', 'k(v)', 'table'],
  ['smove', 'kkv', 'number'],
  // With INCR, which an argument may hold, it answers with a score: its text depends on the server, as that of others'
  // scores.
  ['zadd', 'kx(nv)', null, SCORES],
  ['zincrby', 'knv', null],
  ['zpopmin zpopmax', 'k', null],
  ['zrank zrevrank', 'kv', 'text'],
  ['zrange zrevrange zrangebyscore zrevrangebyscore', 'knn', 'table'],
  ['zcount zremrangebyscore zremrangebyrank', 'knn', 'number'],
  ['zremrangebylex zlexcount', 'kvv', 'number'],
];

const REPEATABLE = new Map<string, Repeatable>();
for (const [names, args, reply, options = {}] of ROWS)
  for (const name of names.split(' ')) REPEATABLE.set(name, { arguments: args, options, reply });

/** What a repeated script may do with the command of this name (in lower case); undefined for nothing. */
export const repeatableCommand = (name: string): Repeatable | undefined => REPEATABLE.get(name);

/** An argument of a call as the script writes it. */
export interface WrittenArgument {
  /** Its text, where it is written out. */
  readonly literal: string | null;
  /** It stands for any number of arguments. */
  readonly open: boolean;
}

/** Whether the arguments are among those of the list. */
export function areRepeatable({ arguments: form, options }: Repeatable, args: readonly WrittenArgument[]): boolean {
  const [, fixed, optional, again] = /^([kvn]*)(x?)(?:\(([kvn]+)\))?$/.exec(form)!;
  let at = fixed.length;
  if (args.length < at || args.slice(0, at).some(({ open }) => open)) return false;
  while (optional !== '' && at < args.length) {
    const values = options[args[at].literal?.toLowerCase() ?? ''] as number | undefined;
    if (values === undefined) break;
    if (args.slice(at + 1, at + 1 + values).length < values) return false;
    at += 1 + values;
  }
  const rest = args.slice(at);
  if (again === undefined) return rest.length === 0;
  return rest.at(-1)?.open === true || (rest.length > 0 && rest.length % again.length === 0);
}
