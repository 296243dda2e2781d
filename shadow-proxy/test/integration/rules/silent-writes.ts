/** Writes that leave different data behind where a key has expired on one server only, and do not show it. */
import type { Argument } from '../../../src/resp/encode.js';

export type Command = readonly Argument[];

/** A key with something in it, and a write whose reply is the same whether or not that is still there. */
export const SILENT: readonly {
  readonly name: string;
  readonly setup: (key: string) => Command;
  readonly write: (key: string, n: number) => Command;
}[] = [
  { name: 'hset', setup: (key) => ['HSET', key, 'a', 1], write: (key, n) => ['HSET', key, `f${n}`, 1] },
  { name: 'sadd', setup: (key) => ['SADD', key, 'a'], write: (key, n) => ['SADD', key, `m${n}`] },
  { name: 'zadd', setup: (key) => ['ZADD', key, 1, 'a'], write: (key, n) => ['ZADD', key, 1, `m${n}`] },
  { name: 'setbit', setup: (key) => ['SET', key, '0'], write: (key, n) => ['SETBIT', key, 100 + n, 1] },
  { name: 'incr', setup: (key) => ['SET', key, 0], write: (key) => ['INCR', key] },
  { name: 'keepttl', setup: (key) => ['SET', key, 'v'], write: (key) => ['SET', key, 'w', 'KEEPTTL'] },
  {
    name: 'xadd',
    setup: (key) => ['XADD', key, '1-1', 'f', 'v'],
    write: (key, n) => ['XADD', key, `${n + 2}-1`, 'f', 'v'],
  },
  {
    name: 'script',
    setup: (key) => ['SET', key, 'v'],
    write: (key) => ['EVAL', "redis.call('APPEND', KEYS[1], 'w') return 1", 1, key],
  },
];
/** Reads the key and writes another. */
export const DERIVED = {
  name: 'sunionstore',
  setup: (key: string): Command => ['SADD', key, 'a', 'b'],
  write: (key: string): Command => ['SUNIONSTORE', `${key}:to`, key, '{k}c'],
};

export const keyOf = (name: string, n = 0): string => `{k}${name}:${n}`;
