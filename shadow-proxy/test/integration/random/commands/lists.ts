import { call, rule, type Rule } from '../command.js';
import type { Values } from '../values.js';

const end = (g: Values): string => g.random.pick(['LEFT', 'RIGHT']);
/** Lists of text and lists of numbers, for SORT. */
const list = (g: Values) => g.key(g.random.chance(0.2) ? 'nums' : 'list');

export const LISTS: readonly Rule[] = [
  rule(10, (g) =>
    call(
      'int',
      g.random.pick(['LPUSH', 'RPUSH']),
      g.key('list'),
      ...g.random.times(g.random.between(1, 3), () => g.value()),
    ),
  ),
  rule(4, (g) =>
    call(
      'int',
      g.random.pick(['LPUSH', 'RPUSH']),
      g.key('nums'),
      ...g.random.times(g.random.between(1, 3), () => g.number()),
    ),
  ),
  rule(4, (g) => call('int', 'RPUSH', g.key('list'), ...g.members())),
  rule(4, (g) => call('int', g.random.pick(['LPUSHX', 'RPUSHX']), list(g), g.value())),
  rule(8, (g) => call('bulk?', g.random.pick(['LPOP', 'RPOP']), list(g))),
  // To a count of 0 Redis 7 answers an empty array and KeyDB nil, which is a finding.
  rule(4, (g) => call('array?', g.random.pick(['LPOP', 'RPOP']), list(g), g.random.between(1, 5))),
  rule(5, (g) => call('array?', 'LMPOP', 2, list(g), list(g), end(g), ...g.maybe('COUNT', g.random.between(1, 4)))),
  rule(4, (g) => call('bulk?', 'LMOVE', list(g), list(g), end(g), end(g))),
  rule(3, (g) => call('bulk?', 'RPOPLPUSH', list(g), list(g))),
  rule(1.5, (g) => call('array?', g.random.pick(['BLPOP', 'BRPOP']), ...g.keys('list'), g.wait())),
  rule(0.7, (g) => call('bulk?', 'BLMOVE', list(g), list(g), end(g), end(g), g.wait())),
  rule(0.4, (g) => call('bulk?', 'BRPOPLPUSH', list(g), list(g), g.wait())),
  rule(0.7, (g) =>
    call('array?', 'BLMPOP', g.wait(), 2, list(g), list(g), end(g), ...g.maybe('COUNT', g.random.between(1, 4))),
  ),
  rule(3, (g) => call('int', 'LINSERT', list(g), g.random.pick(['BEFORE', 'AFTER']), g.member(), g.value())),
  rule(3, (g) => call('int', 'LREM', list(g), g.index(), g.member())),
  rule(3, (g) => call('status', 'LSET', list(g), g.index(), g.value())),
  rule(6, (g) => call('status', 'LTRIM', list(g), g.random.between(-20, 3), g.random.between(-3, 20))),
  rule(8, (g) => call('array', 'LRANGE', list(g), g.index(), g.index())),
  rule(3, (g) => call('bulk?', 'LINDEX', list(g), g.index())),
  rule(3, (g) => call('int', 'LLEN', list(g))),
  rule(2, (g) => call('int?', 'LPOS', list(g), g.member(), ...g.maybe('RANK', g.random.pick([1, -1, 2, 0])))),
  rule(1, (g) => call('array', 'LPOS', list(g), g.member(), 'COUNT', 2, ...g.maybe('MAXLEN', 10))),
];
