/** Strings, counters, and times to live. */
import type { Reply } from '../../clients/replies.js';
import { bulk, Refused, type Run, type Space } from './space.js';

const get: Run = (space, [, key]) => bulk(space.get(key, 'string'));

function add(space: Space, key: string, by: number): Reply {
  const value = space.get(key, 'string') ?? '0';
  if (!/^-?\d{1,18}$/.test(value)) throw new Refused('ERR');
  space.put(key, 'string', String(Number(value) + by));
  return Number(value) + by;
}

/** Gives a time to live by the words `PX n`, `EX n`, `PXAT n`, `EXAT n`. */
function expire(space: Space, key: string, words: readonly string[]): void {
  for (const [i, word] of words.entries()) {
    const value = Number(words[i + 1]) * (word[0] === 'E' ? 1000 : 1);
    if (word === 'PX' || word === 'EX') space.expireIn(key, value);
    if (word === 'PXAT' || word === 'EXAT') space.expireBetween(key, value, value);
  }
}

const set: Run = (space, [, key, value, ...options]) => {
  const old = options.includes('GET') ? bulk(space.get(key, 'string')) : '+OK';
  if (options.includes('NX') && space.has(key)) return null;
  if (options.includes('XX') && !space.has(key)) return null;
  if (options.includes('KEEPTTL')) space.has(key);
  space.put(key, 'string', value, options.includes('KEEPTTL'));
  expire(space, key, options);
  return old;
};

const left =
  (unit: number): Run =>
  (space, [, key]) => {
    if (!space.has(key)) return -2;
    const span = space.leftMs(key);
    if (span === null) return -1;
    const { observed } = space;
    if (typeof observed !== 'number') return Math.max(0, Math.round(span[0] / unit));
    return observed >= 0 && observed * unit >= span[0] - unit && observed * unit <= span[1] + unit ? observed : -3;
  };

const expireTo =
  (unit: number, isAbsolute: boolean): Run =>
  (space, [, key, text]) => {
    if (!space.has(key)) return 0;
    const ms = Number(text) * unit;
    if (isAbsolute) space.expireBetween(key, ms, ms);
    else space.expireIn(key, ms);
    return 1;
  };

export const STRING_RUNS: Readonly<Record<string, Run>> = {
  GET: get,
  SET: set,
  GETSET(space, [, key, value]) {
    const old = bulk(space.get(key, 'string'));
    space.put(key, 'string', value, false);
    return old;
  },
  SETNX: (space, [, key, value]) => {
    if (space.has(key)) return 0;
    space.put(key, 'string', value);
    return 1;
  },
  APPEND(space, [, key, value]) {
    const next = (space.get(key, 'string') ?? '') + value;
    space.put(key, 'string', next);
    return next.length;
  },
  SETRANGE(space, [, key, offset, value]) {
    const [at, old] = [Number(offset), space.get(key, 'string') ?? ''];
    const next = old.slice(0, at).padEnd(at, '\u0000') + value + old.slice(at + value.length);
    space.put(key, 'string', next);
    return next.length;
  },
  GETRANGE(space, [, key, from, to]) {
    const text = space.get(key, 'string') ?? '';
    const end = Number(to) < 0 ? text.length + Number(to) : Number(to);
    return `$${text.slice(Number(from), end + 1)}`;
  },
  STRLEN: (space, [, key]) => (space.get(key, 'string') ?? '').length,
  GETDEL(space, args) {
    const old = get(space, args);
    space.remove(args[1]);
    return old;
  },
  GETEX(space, args) {
    const old = get(space, args);
    if (old === null) return null;
    if (args.includes('PERSIST')) space.persist(args[1]);
    expire(space, args[1], args.slice(2));
    return old;
  },
  PSETEX(space, [, key, ms, value]) {
    space.put(key, 'string', value, false);
    space.expireIn(key, Number(ms));
    return '+OK';
  },
  INCR: (space, [, key]) => add(space, key, 1),
  DECR: (space, [, key]) => add(space, key, -1),
  INCRBY: (space, [, key, by]) => add(space, key, Number(by)),
  DECRBY: (space, [, key, by]) => add(space, key, -Number(by)),
  PEXPIRE: expireTo(1, false),
  EXPIRE: expireTo(1000, false),
  PEXPIREAT: expireTo(1, true),
  EXPIREAT: expireTo(1000, true),
  PERSIST: (space, [, key]) => (space.persist(key) ? 1 : 0),
  TTL: left(1000),
  PTTL: left(1),
};
