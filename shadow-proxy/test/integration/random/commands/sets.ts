import { call, rule, type Rule } from '../command.js';
import type { Argument } from '../reply.js';
import type { Values } from '../values.js';

/** Mostly numbers, so that the compact encoding of whole numbers is used too, and left. */
const members = (g: Values): Argument[] =>
  g.random.chance(0.5) ? g.members(6) : g.random.times(g.random.between(1, 6), () => String(g.random.between(0, 30)));

export const SETS: readonly Rule[] = [
  rule(10, (g) => call('int', 'SADD', g.key('set'), ...members(g))),
  rule(4, (g) => call('int', 'SREM', g.key('set'), ...members(g))),
  rule(8, (g) => call('bulk?', 'SPOP', g.key('set'))),
  rule(5, (g) => call('set', 'SPOP', g.key('set'), g.random.between(0, 6))),
  rule(4, (g) => call('int', 'SMOVE', g.key('set'), g.key('set'), members(g)[0])),
  rule(6, (g) => call('set', 'SMEMBERS', g.key('set'))),
  rule(3, (g) => call('int', 'SISMEMBER', g.key('set'), g.member())),
  rule(3, (g) => call('array', 'SMISMEMBER', g.key('set'), ...g.members())),
  rule(3, (g) => call('int', 'SCARD', g.key('set'))),
  rule(1, (g) => call('bulk?', 'SRANDMEMBER', g.key('set'))),
  rule(2, (g) => call('array', 'SRANDMEMBER', g.key('set'), g.index())),
  rule(4, (g) => call('set', g.random.pick(['SDIFF', 'SINTER', 'SUNION']), ...g.keys('set'))),
  rule(5, (g) =>
    call('int', g.random.pick(['SDIFFSTORE', 'SINTERSTORE', 'SUNIONSTORE']), g.key('set'), ...g.keys('set')),
  ),
  rule(2, (g) => call('int', 'SINTERCARD', 2, g.key('set'), g.key('set'), ...g.maybe('LIMIT', 3))),
  rule(2, (g) => call('array', 'SSCAN', g.key('set'), 0, ...g.maybe('MATCH', '1*'))),
];
