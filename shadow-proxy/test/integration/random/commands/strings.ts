/** Strings, numbers, bits and HyperLogLogs. */
import { call, rule, type Rule } from '../command.js';
import type { Argument } from '../reply.js';
import type { Values } from '../values.js';

const expiry = (g: Values): readonly (string | number)[] =>
  g.random.pick<() => (string | number)[]>([
    () => ['PX', g.ttl()],
    () => ['EX', Math.ceil(g.ttl() / 1000)],
    () => ['PXAT', g.now() + g.ttl()],
    () => ['EXAT', Math.ceil((g.now() + g.ttl()) / 1000)],
    () => ['KEEPTTL'],
  ])();

const pairs = (g: Values): Argument[] => g.random.times(g.random.between(1, 4), () => [g.key('str'), g.value()]).flat();
const bit = (g: Values): number => g.random.between(0, g.random.chance(0.05) ? 200_000 : 500);
const type = (g: Values): string => g.random.pick(['u8', 'i5', 'u16', 'i64', 'u63', 'i33', 'u1']);
const offset = (g: Values): string => g.random.pick(['', '#']) + String(g.random.between(0, 90));

export const STRINGS: readonly Rule[] = [
  rule(20, (g) => call('status', 'SET', g.key('str'), g.value())),
  rule(8, (g) => call('status', 'SET', g.key('str'), g.value(), ...expiry(g))),
  rule(6, (g) =>
    call('status?', 'SET', g.key('str'), g.value(), g.random.pick(['NX', 'XX']), ...g.maybe(...expiry(g))),
  ),
  rule(5, (g) => call('bulk?', 'SET', g.key('str'), g.value(), 'GET', ...g.maybe(...expiry(g)))),
  rule(3, (g) =>
    call('bulk?', 'SET', g.key('str'), g.value(), g.random.pick(['NX', 'XX']), 'GET', ...g.maybe(...expiry(g))),
  ),
  rule(30, (g) => call('bulk?', 'GET', g.key('str'))),
  rule(6, (g) =>
    call(
      'bulk?',
      'GETEX',
      g.key('str'),
      ...g.random.pick([[], ['PERSIST'], expiry(g).filter((word) => word !== 'KEEPTTL')]),
    ),
  ),
  rule(4, (g) => call('bulk?', 'GETDEL', g.key('str'))),
  rule(4, (g) => call('bulk?', 'GETSET', g.key('str'), g.value())),
  rule(8, (g) => call('array', 'MGET', ...g.keys('str', 5))),
  rule(5, (g) => call('status', 'MSET', ...pairs(g))),
  rule(3, (g) => call('int', 'MSETNX', ...pairs(g))),
  rule(4, (g) => call('int', 'SETNX', g.key('str'), g.value())),
  rule(3, (g) => call('status', 'SETEX', g.key('str'), g.random.between(1, 60), g.value())),
  rule(4, (g) => call('status', 'PSETEX', g.key('str'), g.ttl(), g.value())),
  rule(4, (g) => call('int', 'APPEND', g.key('str'), g.value())),
  rule(4, (g) => call('int', 'SETRANGE', g.key('str'), g.random.between(0, 300), g.value())),
  rule(3, (g) => call('int', 'STRLEN', g.key('str'))),
  rule(3, (g) => call('bulk', g.random.pick(['GETRANGE', 'SUBSTR']), g.key('str'), g.index(), g.index())),
  rule(2, (g) =>
    call(
      'any',
      'LCS',
      g.key('num'),
      g.key('num'),
      ...g.random.pick([[], ['LEN'], ['IDX', 'MINMATCHLEN', '2', 'WITHMATCHLEN']]),
    ),
  ),

  rule(4, (g) => call('status', 'SET', g.key('num'), g.number(), ...g.maybe(...expiry(g)))),
  rule(12, (g) => call('int', g.random.pick(['INCR', 'DECR']), g.key('num'))),
  rule(4, (g) => call('int', 'INCRBY', g.key('num'), g.number())),
  // KeyDB lets the least number of 64 bits overflow, Redis refuses it.
  rule(4, (g) =>
    call('int', 'DECRBY', g.key('num'), g.number().replace('-9223372036854775808', '-9223372036854775807')),
  ),
  rule(3, (g) => call('status', 'SET', g.key('float'), g.float())),
  rule(8, (g) => call('bulk', 'INCRBYFLOAT', g.key('float'), g.float())),
  rule(4, (g) => call('bulk?', 'GET', g.random.pick([g.key('num'), g.key('float')]))),

  rule(6, (g) => call('int', 'SETBIT', g.key('bits'), bit(g), g.random.between(0, 1))),
  rule(3, (g) => call('int', 'GETBIT', g.key('bits'), bit(g))),
  rule(3, (g) =>
    call(
      'int',
      'BITCOUNT',
      g.key('bits'),
      ...g.maybe(g.index(), g.index(), ...g.maybe(g.random.pick(['BYTE', 'BIT']))),
    ),
  ),
  rule(3, (g) =>
    call(
      'int',
      'BITPOS',
      g.key('bits'),
      g.random.between(0, 1),
      ...g.maybe(g.index(), ...g.maybe(g.index(), ...g.maybe('BIT'))),
    ),
  ),
  rule(3, (g) => call('int', 'BITOP', g.random.pick(['AND', 'OR', 'XOR']), g.key('bits'), ...g.keys('bits'))),
  rule(1, (g) => call('int', 'BITOP', 'NOT', g.key('bits'), g.key('bits'))),
  rule(5, (g) =>
    call(
      'array',
      'BITFIELD',
      g.key('bits'),
      ...g.maybe('OVERFLOW', g.random.pick(['WRAP', 'SAT', 'FAIL'])),
      ...g.random.pick([
        ['SET', type(g), offset(g), g.random.between(-9, 300)],
        ['INCRBY', type(g), offset(g), g.random.between(-99, 99)],
        ['GET', type(g), offset(g)],
      ]),
      ...g.maybe('INCRBY', type(g), offset(g), '7', 'GET', type(g), offset(g)),
    ),
  ),
  rule(2, (g) => call('array', 'BITFIELD_RO', g.key('bits'), 'GET', type(g), offset(g))),

  rule(5, (g) => call('int', 'PFADD', g.key('hll'), ...g.members(6))),
  rule(4, (g) => call('int', 'PFCOUNT', ...g.keys('hll'))),
  rule(2, (g) => call('status', 'PFMERGE', g.key('hll'), ...g.keys('hll'))),
];
