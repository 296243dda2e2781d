/** Writes that read a key: what they write is as wrong as what they read, and their replies do not show it. */
import type { Argument } from '../../../src/resp/encode.js';

type Command = readonly Argument[];

export interface Derivation {
  readonly name: string;
  /** Makes the keys, which begin with `{p}`. */
  readonly setup: readonly Command[];
  /** Makes one of the keys wrong on one server; no length or count shows it. */
  readonly spoil: readonly Command[];
  /** A read that shows the difference. */
  readonly look: Command;
  readonly derive: Command;
}

const string = (key: string): Pick<Derivation, 'setup' | 'spoil' | 'look'> => ({
  setup: [['SET', key, 'right']],
  spoil: [['SET', key, 'wrong']],
  look: ['GET', key],
});
const set = (key: string): Pick<Derivation, 'setup' | 'spoil' | 'look'> => ({
  setup: [['SADD', key, 'a', 'b', 'right']],
  spoil: [
    ['SREM', key, 'right'],
    ['SADD', key, 'wrong'],
  ],
  look: ['SMEMBERS', key],
});
const zset = (key: string): Pick<Derivation, 'setup' | 'spoil' | 'look'> => ({
  setup: [['ZADD', key, 1, 'a', 2, 'b', 3, 'right']],
  spoil: [
    ['ZREM', key, 'right'],
    ['ZADD', key, 3, 'wrong'],
  ],
  look: ['ZRANGE', key, 0, -1],
});
const list = (key: string): Pick<Derivation, 'setup' | 'spoil' | 'look'> => ({
  setup: [['RPUSH', key, 'a', 'right', 'b']],
  spoil: [['LSET', key, 1, 'wrong']],
  look: ['LRANGE', key, 0, -1],
});
const also = (
  base: Pick<Derivation, 'setup' | 'spoil' | 'look'>,
  ...more: readonly Command[]
): Pick<Derivation, 'setup' | 'spoil' | 'look'> => ({
  ...base,
  setup: [...base.setup, ...more],
});

/** All of them, on keys of their own. */
export function derivations(p: string): readonly Derivation[] {
  const key = (name: string): string => `{${p}}${name}`;
  const one = (
    name: string,
    base: (key: string) => Pick<Derivation, 'setup' | 'spoil' | 'look'>,
    derive: (from: string, to: string) => Command,
  ): Derivation => ({
    name,
    ...base(key(`${name}:from`)),
    derive: derive(key(`${name}:from`), key(`${name}:to`)),
  });
  const withOther = (
    base: (key: string) => Pick<Derivation, 'setup' | 'spoil' | 'look'>,
    name: string,
    ...other: readonly Argument[]
  ): ((from: string) => Pick<Derivation, 'setup' | 'spoil' | 'look'>) => {
    const [command, ...rest] = other;
    return (from) => also(base(from), [command, key(`${name}:to`), ...rest]);
  };
  return [
    one('rename', string, (from, to) => ['RENAME', from, to]),
    one('renamenx', string, (from, to) => ['RENAMENX', from, to]),
    one('copy', string, (from, to) => ['COPY', from, to]),
    one('bitop-not', string, (from, to) => ['BITOP', 'NOT', to, from]),
    one('bitop-or', withOther(string, 'bitop-or', 'SET', 'x'), (from, to) => ['BITOP', 'OR', to, from, to]),
    one('script', string, (from, to) => [
      'EVAL',
      "redis.call('SET', KEYS[2], redis.call('GET', KEYS[1])) return 1",
      2,
      from,
      to,
    ]),
    one('sunionstore', set, (from, to) => ['SUNIONSTORE', to, from, to]),
    one('sdiffstore', set, (from, to) => ['SDIFFSTORE', to, from, key('none')]),
    one('sinterstore', set, (from, to) => ['SINTERSTORE', to, from, from]),
    one('smove', withOther(set, 'smove', 'SADD', 'z'), (from, to) => ['SMOVE', from, to, 'a']),
    one('sort', list, (from, to) => ['SORT', from, 'ALPHA', 'STORE', to]),
    one('lmove', list, (from, to) => ['LMOVE', from, to, 'LEFT', 'RIGHT']),
    one('rpoplpush', withOther(list, 'rpoplpush', 'RPUSH', 'z'), (from, to) => ['RPOPLPUSH', from, to]),
    one('zunionstore', zset, (from, to) => ['ZUNIONSTORE', to, 1, from]),
    one('zrangestore', zset, (from, to) => ['ZRANGESTORE', to, from, 0, -1]),
    one(
      'pfmerge',
      (from) => ({
        setup: [['PFADD', from, 'a']],
        spoil: [
          ['DEL', from],
          ['PFADD', from, 'b'],
        ],
        look: ['GET', from],
      }),
      (from, to) => ['PFMERGE', to, from],
    ),
  ];
}
