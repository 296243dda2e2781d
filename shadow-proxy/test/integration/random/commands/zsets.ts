/** Sorted sets, and positions on the globe, which are kept as such. */
import { call, rule, type Rule } from '../command.js';
import type { Argument } from '../reply.js';
import type { Values } from '../values.js';

type Words = readonly (Argument | number)[];

const scored = (g: Values): Words => g.random.times(g.random.between(1, 4), () => [g.float(), g.member()]).flat();
const conditions = (g: Values): Words =>
  g.random.pick<Words>([[], [], [], ['NX'], ['XX'], ['GT'], ['LT'], ['XX', 'GT'], ['XX', 'LT']]);
const score = (g: Values): string => g.random.pick(['-inf', '+inf', String(g.index()), `(${g.index()}`]);
const lex = (g: Values): string => g.random.pick(['-', '+', '[m', '(m2', '[m3', '(9']);
const limit = (g: Values): Words => g.maybe('LIMIT', g.random.between(0, 3), g.random.between(-1, 5));
const several = (g: Values): Words => {
  const keys = g.random.times(g.random.between(1, 3), () => g.key(g.random.chance(0.1) ? 'set' : 'zset'));
  return [keys.length, ...keys];
};
const combined = (g: Values): Words => {
  const [count, ...keys] = several(g);
  const weights = g.maybe('WEIGHTS', ...g.random.times(keys.length, () => g.random.between(1, 3)));
  return [count, ...keys, ...weights, ...g.maybe('AGGREGATE', g.random.pick(['SUM', 'MIN', 'MAX']))];
};

const range = (g: Values): Words =>
  g.random.pick<() => Words>([
    () => [g.index(), g.index(), ...g.maybe('REV')],
    () => [score(g), score(g), 'BYSCORE', ...g.maybe('REV'), ...limit(g)],
  ])();

const longitude = (g: Values): string => (g.random.next() * 4 + 10).toFixed(5);
const latitude = (g: Values): string => (g.random.next() * 4 + 40).toFixed(5);
const unit = (g: Values): string => g.random.pick(['m', 'km', 'mi', 'ft']);
const centre = (g: Values): Words =>
  g.random.chance(0.5) ? ['FROMMEMBER', g.member()] : ['FROMLONLAT', longitude(g), latitude(g)];
const shape = (g: Values): Words => (g.random.chance(0.5) ? ['BYRADIUS', 200, 'km'] : ['BYBOX', 300, 200, 'km']);
const order = (g: Values): Words => g.random.pick<Words>([['ASC'], ['DESC'], ['ASC', 'COUNT', 3]]);
const withAll: Words = ['WITHCOORD', 'WITHDIST', 'WITHHASH'];

export const SORTED_SETS: readonly Rule[] = [
  rule(10, (g) => call('int', 'ZADD', g.key('zset'), ...conditions(g), ...g.maybe('CH'), ...scored(g))),
  rule(4, (g) => call('double?', 'ZADD', g.key('zset'), ...conditions(g), 'INCR', g.float(), g.member())),
  rule(6, (g) => call('double', 'ZINCRBY', g.key('zset'), g.float(), g.member())),
  rule(4, (g) => call('int', 'ZREM', g.key('zset'), ...g.members())),
  rule(2, (g) => call('int', 'ZREMRANGEBYRANK', g.key('zset'), g.index(), g.index())),
  rule(2, (g) => call('int', 'ZREMRANGEBYSCORE', g.key('zset'), g.index(), g.index())),
  rule(1, (g) => call('int', 'ZREMRANGEBYLEX', g.key('lex'), lex(g), lex(g))),
  rule(6, (g) =>
    call('array', g.random.pick(['ZPOPMIN', 'ZPOPMAX']), g.key('zset'), ...g.maybe(g.random.between(1, 4))),
  ),
  rule(1.5, (g) => call('array?', g.random.pick(['BZPOPMIN', 'BZPOPMAX']), ...g.keys('zset'), g.wait())),
  rule(0.7, (g) =>
    call(
      'array?',
      'BZMPOP',
      g.wait(),
      2,
      g.key('zset'),
      g.key('zset'),
      g.random.pick(['MIN', 'MAX']),
      ...g.maybe('COUNT', g.random.between(1, 3)),
    ),
  ),
  rule(5, (g) =>
    call(
      'array?',
      'ZMPOP',
      2,
      g.key('zset'),
      g.key('zset'),
      g.random.pick(['MIN', 'MAX']),
      ...g.maybe('COUNT', g.random.between(1, 3)),
    ),
  ),
  rule(4, (g) => call('int', 'ZRANGESTORE', g.key('zset'), g.key('zset'), ...range(g))),
  rule(4, (g) => call('int', 'ZADD', g.key('lex'), ...g.members().flatMap((member) => [0, member]))),
  rule(2, (g) => call('array', 'ZRANGE', g.key('lex'), lex(g), lex(g), 'BYLEX', ...limit(g))),
  rule(1, (g) => call('int', 'ZRANGESTORE', g.key('zset'), g.key('lex'), lex(g), lex(g), 'BYLEX', ...limit(g))),
  rule(4, (g) => call('int', g.random.pick(['ZUNIONSTORE', 'ZINTERSTORE']), g.key('zset'), ...combined(g))),
  rule(2, (g) => call('int', 'ZDIFFSTORE', g.key('zset'), ...several(g))),
  rule(8, (g) => call('array', 'ZRANGE', g.key('zset'), ...range(g))),
  rule(3, (g) => call('array', g.random.pick(['ZRANGE', 'ZREVRANGE']), g.key('zset'), 0, -1, 'WITHSCORES')),
  rule(3, (g) =>
    call('array', g.random.pick(['ZRANGEBYSCORE', 'ZREVRANGEBYSCORE']), g.key('zset'), score(g), score(g), ...limit(g)),
  ),
  rule(2, (g) =>
    call('array', g.random.pick(['ZRANGEBYLEX', 'ZREVRANGEBYLEX']), g.key('lex'), lex(g), lex(g), ...limit(g)),
  ),
  rule(2, (g) => call('array', g.random.pick(['ZUNION', 'ZINTER']), ...combined(g), ...g.maybe('WITHSCORES'))),
  rule(1, (g) => call('array', 'ZDIFF', ...several(g), ...g.maybe('WITHSCORES'))),
  rule(1, (g) => call('int', 'ZINTERCARD', ...several(g), ...g.maybe('LIMIT', 2))),
  rule(4, (g) => call('double?', 'ZSCORE', g.key('zset'), g.member())),
  rule(2, (g) => call('array', 'ZMSCORE', g.key('zset'), ...g.members())),
  rule(3, (g) => call('int?', g.random.pick(['ZRANK', 'ZREVRANK']), g.key('zset'), g.member())),
  rule(2, (g) => call('int', 'ZCARD', g.key('zset'))),
  rule(2, (g) => call('int', 'ZCOUNT', g.key('zset'), score(g), score(g))),
  rule(1, (g) => call('int', 'ZLEXCOUNT', g.key('lex'), lex(g), lex(g))),
  rule(1, (g) => call('bulk?', 'ZRANDMEMBER', g.key('zset'))),
  rule(1, (g) => call('array', 'ZRANDMEMBER', g.key('zset'), g.index(), ...g.maybe('WITHSCORES'))),
  rule(2, (g) => call('array', 'ZSCAN', g.key('zset'), 0)),

  rule(5, (g) =>
    call(
      'int',
      'GEOADD',
      g.key('geo'),
      ...g.maybe(g.random.pick(['NX', 'XX', 'CH'])),
      longitude(g),
      latitude(g),
      g.member(),
    ),
  ),
  rule(2, (g) => call('array', 'GEOPOS', g.key('geo'), ...g.members())),
  rule(2, (g) => call('array', 'GEOHASH', g.key('geo'), ...g.members())),
  rule(2, (g) => call('bulk?', 'GEODIST', g.key('geo'), g.member(), g.member(), ...g.maybe(unit(g)))),
  rule(3, (g) =>
    call('array', 'GEOSEARCH', g.key('geo'), ...centre(g), ...shape(g), ...order(g), ...g.maybe(...withAll)),
  ),
  rule(3, (g) =>
    call(
      'int',
      'GEOSEARCHSTORE',
      g.key('geo'),
      g.key('geo'),
      ...centre(g),
      ...shape(g),
      ...order(g),
      ...g.maybe('STOREDIST'),
    ),
  ),
  rule(1, (g) =>
    call(
      'array',
      g.random.pick(['GEORADIUS', 'GEORADIUS_RO']),
      g.key('geo'),
      longitude(g),
      latitude(g),
      150,
      'km',
      ...order(g),
    ),
  ),
  rule(1, (g) =>
    call(
      'array',
      g.random.pick(['GEORADIUSBYMEMBER', 'GEORADIUSBYMEMBER_RO']),
      g.key('geo'),
      g.member(),
      150,
      'km',
      ...order(g),
    ),
  ),
  rule(1, (g) =>
    call(
      'int',
      'GEORADIUS',
      g.key('geo'),
      longitude(g),
      latitude(g),
      150,
      'km',
      g.random.pick(['STORE', 'STOREDIST']),
      g.key('geo'),
    ),
  ),
  rule(1, (g) => call('int', 'GEORADIUSBYMEMBER', g.key('geo'), g.member(), 150, 'km', 'STORE', g.key('geo'))),
];
