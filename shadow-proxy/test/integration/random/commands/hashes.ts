import { call, rule, type Rule } from '../command.js';
import type { Argument } from '../reply.js';
import type { Values } from '../values.js';

const pairs = (g: Values): Argument[] => g.random.times(g.random.between(1, 4), () => [g.member(), g.value()]).flat();

export const HASHES: readonly Rule[] = [
  rule(12, (g) => call('int', 'HSET', g.key('hash'), ...pairs(g))),
  rule(3, (g) => call('status', 'HMSET', g.key('hash'), ...pairs(g))),
  rule(3, (g) => call('int', 'HSETNX', g.key('hash'), g.member(), g.value())),
  rule(5, (g) => call('int', 'HDEL', g.key('hash'), ...g.members())),
  rule(8, (g) => call('int', 'HINCRBY', g.key('hnum'), g.member(), g.number())),
  rule(6, (g) => call('bulk', 'HINCRBYFLOAT', g.key('hnum'), g.member(), g.float())),
  rule(8, (g) => call('bulk?', 'HGET', g.key('hash'), g.member())),
  rule(4, (g) => call('array', 'HMGET', g.key('hash'), ...g.members())),
  rule(8, (g) => call('map', 'HGETALL', g.key(g.random.pick(['hash', 'hnum'])))),
  rule(2, (g) => call('array', g.random.pick(['HKEYS', 'HVALS']), g.key('hash'))),
  rule(2, (g) => call('int', 'HLEN', g.key('hash'))),
  rule(2, (g) => call('int', 'HEXISTS', g.key('hash'), g.member())),
  rule(2, (g) => call('int', 'HSTRLEN', g.key('hash'), g.member())),
  rule(1, (g) => call('bulk?', 'HRANDFIELD', g.key('hash'))),
  rule(2, (g) => call('array', 'HRANDFIELD', g.key('hash'), g.index(), ...g.maybe('WITHVALUES'))),
  rule(2, (g) => call('array', 'HSCAN', g.key('hash'), 0, ...g.maybe('MATCH', 'm*'), ...g.maybe('COUNT', 5))),
];
