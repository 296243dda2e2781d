/** Each rule allows the differences that it is for, and no others: replies of Redis 7.0.15 and KeyDB 6.3.4. */
// cspell:ignore aaaaaaaazzz bbbbbbbbzzz hylm myconfig nosort nosuch nosuchcmd
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareReplies, RULES, type RuleName, type Tolerances } from '../../../src/compare/compare.js';
import { TYPES } from '../../../src/copy/rdb/types.js';
import {
  array,
  double,
  error,
  inShort,
  integer,
  map,
  mirrored,
  nil,
  nilArray,
  null3,
  set,
  status,
  string,
  strings,
  verbatim,
} from '../../integration/compare/frames.js';
import { view, wordsOf } from '../../integration/compare/raw.js';

const LIMITS: Tolerances = { ttlMs: 100 };
const TWO_RELEASES: Tolerances = { ...LIMITS, sameRelease: false };

/** A command, Redis's reply, KeyDB's reply. */
type Allowed = readonly [command: string, redis: Buffer, keydb: Buffer];
/** The same with the kind of mismatch that it stays. */
type Kept = readonly [command: string, authority: Buffer, mirror: Buffer, verdict: string];

const judge = (command: string, authority: Buffer, mirror: Buffer, limits = LIMITS): string =>
  inShort(compareReplies(view(wordsOf(command)), authority, mirror, limits));

const covered = new Set<RuleName>();

function rule(name: RuleName, allowed: readonly Allowed[], kept: readonly Kept[], limits = LIMITS): void {
  covered.add(name);
  test(`${name} allows the differences that it is for`, () => {
    for (const [command, redis, keydb] of allowed) {
      assert.equal(judge(command, redis, keydb, limits), name, command);
      assert.equal(judge(command, keydb, redis, limits), name, `${command}, with KeyDB as the authority`);
    }
  });
  test(`${name} allows no other difference`, () => {
    for (const [command, authority, mirror, verdict] of kept) {
      const shown = `${command} ${String(authority)} ${String(mirror)}`;
      assert.equal(judge(command, authority, mirror, limits), verdict, shown);
      assert.equal(judge(command, mirror, authority, limits), mirrored(verdict), `${shown}, with the sides exchanged`);
    }
    // The same replies to a command that the rule is not for.
    if (name === 'error-wording') return;
    const { appliesTo } = RULES.find((each) => each.name === name)!;
    for (const [command, redis, keydb] of allowed) {
      for (const other of ['lrange k 0 -1', 'get k', 'xrange k - +', 'nosuch k'].filter(
        (each) => !appliesTo(each.split(' ')[0]),
      )) {
        assert.match(judge(other, redis, keydb, limits), /^!/, `${other} instead of ${command}`);
      }
    }
  });
}

rule(
  'unordered',
  [
    ['SMEMBERS st', strings('d c b a e f'), strings('d c e f a b')],
    ['SMEMBERS st', set(string('d'), string('c')), set(string('c'), string('d'))],
    ['SINTER st st', strings('b c a e d f'), strings('e f a b c d')],
    ['SUNION st ints', strings('b c 1 a e 2 f d 3'), strings('e 2 f a b 1 d c 3')],
    ['SDIFF big st', strings('m558 m56 m463'), strings('m56 m463 m558')],
    ['HKEYS h', strings('f436 f219 f84'), strings('f219 f84 f436')],
    ['HVALS h', strings('v v w'), strings('w v v')],
    ['HGETALL h', strings('f1 v1 f2 v2'), strings('f2 v2 f1 v1')],
    [
      'HGETALL h',
      map(string('f1'), string('v1'), string('f2'), string('v2')),
      map(string('f2'), string('v2'), string('f1'), string('v1')),
    ],
    ['KEYS *', strings('h hll2 t'), strings('hll2 t h')],
    // Not of strings: compared once decoded.
    ['SMEMBERS st', array(integer(1), string('a')), array(string('a'), integer(1))],
  ],
  [
    ['SMEMBERS st', strings('a b c'), strings('a b d'), '!value'],
    ['SMEMBERS st', strings('a b c'), strings('a b'), '!length'],
    ['SMEMBERS st', strings('a b c'), strings(''), '!missing-on-mirror'],
    ['SMEMBERS st', strings('a b c'), nil, '!type'],
    ['SMEMBERS st', strings('a b c'), nilArray, '!type'],
    ['SMEMBERS st', strings('a b'), set(string('b'), string('a')), '!type'],
    ['SMEMBERS st', strings('1 2'), array(integer(2), integer(1)), '!value'],
    [
      'SMEMBERS st',
      strings('a b'),
      error('WRONGTYPE Operation against a key holding the wrong kind of value'),
      '!error',
    ],
    // As often: a multiset.
    ['HVALS h', strings('v v w'), strings('v w w'), '!value'],
    // Pairs stay pairs.
    ['HGETALL h', strings('a 1 b 2'), strings('a 2 b 1'), '!order'],
    ['HGETALL h', strings('a b c d'), strings('b a d c'), '!order'],
    ['HGETALL h', strings('a b c'), strings('c a b'), '!order'],
    [
      'HGETALL h',
      map(string('a'), string('1'), string('b'), string('2')),
      map(string('a'), string('2'), string('b'), string('1')),
      '!order',
    ],
    ['HGETALL h', strings('a 1 b 2'), map(string('b'), string('2'), string('a'), string('1')), '!type'],
    // Bytes that look alike when they are run together.
    ['SMEMBERS st', array(string('a$1:b'), string('c')), array(string('a'), string('$1:bc')), '!value'],
    ['LRANGE l 0 -1', strings('a b c'), strings('b a c'), '!order'],
    ['ZRANGE z 0 -1', strings('a b c'), strings('b a c'), '!order'],
    ['HMGET h a b', strings('a b'), strings('b a'), '!order'],
    ['MGET a b', strings('a b'), strings('b a'), '!order'],
    ['GEOSEARCH geo FROMLONLAT 1 1 BYRADIUS 1 km', strings('a b'), strings('b a'), '!order'],
    [
      'XINFO GROUPS x',
      array(strings('name a'), strings('name b')),
      array(strings('name b'), strings('name a')),
      '!value',
    ],
  ],
);

rule(
  'random',
  [
    ['SRANDMEMBER st', string('f'), string('b')],
    ['SRANDMEMBER st 2', strings('a d'), strings('b d')],
    ['SRANDMEMBER st 100', strings('b c a e d f'), strings('e f a b c d')],
    ['SRANDMEMBER st -3', strings('a e e'), strings('c d b')],
    ['HRANDFIELD h', string('a'), string('c')],
    ['HRANDFIELD h 2', strings('c b'), strings('b a')],
    ['HRANDFIELD h 2 WITHVALUES', strings('c 3 b 2'), strings('b 2 a 1')],
    ['HRANDFIELD h -3 WITHVALUES', strings('b 2 b 2 a 1'), strings('a 1 a 1 a 1')],
    ['HRANDFIELD h 2 WITHVALUES', array(strings('a 1'), strings('b 2')), array(strings('b 2'), strings('c 3'))],
    ['ZRANDMEMBER z', string('a'), string('d')],
    ['ZRANDMEMBER z 2 WITHSCORES', strings('g 0.10000000000000001 d inf'), strings('g 0.10000000000000001 b 2.5')],
    [
      'ZRANDMEMBER z 2 WITHSCORES',
      array(array(string('e'), double('-inf')), array(string('c'), double('3'))),
      array(array(string('e'), double('-inf')), array(string('d'), double('inf'))),
    ],
    ['RANDOMKEY', string('bits'), string('hll2')],
  ],
  [
    ['SRANDMEMBER st', string('f'), nil, '!missing-on-mirror'],
    ['SRANDMEMBER st', string('f'), null3, '!missing-on-mirror'],
    ['SRANDMEMBER st', string('f'), strings('f'), '!type'],
    ['SRANDMEMBER st', string('1'), integer(1), '!type'],
    ['SRANDMEMBER st 2', strings('a b'), strings('c'), '!length'],
    ['SRANDMEMBER st 2', strings('a b'), strings(''), '!missing-on-mirror'],
    ['SRANDMEMBER st 2', strings('a b'), array(string('a'), nil), '!value'],
    ['SRANDMEMBER st 2', strings('a b'), set(string('a'), string('c')), '!type'],
    // Fewer than were asked for are the whole set.
    ['SRANDMEMBER st 100', strings('a b c'), strings('a b d'), '!value'],
    ['HRANDFIELD h 9 WITHVALUES', strings('a 1 b 2'), strings('a 1 c 3'), '!value'],
    ['HRANDFIELD h 3 WITHVALUES', strings('a 1 b 2'), strings('a 1 c 3'), '!value'],
    // The same field, another value.
    ['HRANDFIELD h 2 WITHVALUES', strings('a 1 b 2'), strings('a 9 c 3'), '!value'],
    [
      'HRANDFIELD h 2 WITHVALUES',
      array(strings('a 1'), strings('b 2')),
      array(strings('b 9'), strings('c 3')),
      '!value',
    ],
    // Another shape.
    ['HRANDFIELD h 1 WITHVALUES', strings('a 1 b'), strings('a 1 c'), '!value'],
    ['HRANDFIELD h 1 WITHVALUES', strings('a 1'), array(strings('a 1'), strings('b 2')), '!value'],
    ['HRANDFIELD h 1 WITHVALUES', strings('a 1'), array(strings('a 1'), integer(2)), '!value'],
    [
      'HRANDFIELD h 2 WITHVALUES',
      array(strings('a 1'), strings('b 2 c')),
      array(strings('a 1'), strings('d 2 c')),
      '!value',
    ],
    ['HRANDFIELD h 1 WITHVALUES', array(set(string('a'), string('1'))), array(set(string('b'), string('2'))), '!value'],
    ['HRANDFIELD h 1 WITHVALUES', array(nilArray), array(strings('a 1')), '!value'],
    ['HRANDFIELD h 2 WITHVALUES', strings('a 1 b 2'), array(strings('a 1'), strings('b 2')), '!length'],
    [
      'HRANDFIELD h 4',
      strings('a b c d'),
      array(strings('a 1'), strings('b 2'), strings('c 3'), strings('d 4')),
      '!value',
    ],
    ['ZRANDMEMBER z 1 WITHSCORES', array(array(string('a'), double('1'))), array(strings('a 1')), '!value'],
    ['RANDOMKEY', string('bits'), nil, '!missing-on-mirror'],
    ['SPOP st', string('a'), string('b'), '!value'],
  ],
);

rule(
  'ttl-tolerance',
  [
    ['PTTL tp', integer(100496), integer(100495)],
    ['PTTL tp', integer(500), integer(400)],
    ['TTL t', integer(100), integer(99)],
    ['TTL t', integer(1), integer(0)],
    ['EXPIRETIME t', integer(1795229390), integer(1795229389)],
    ['PEXPIRETIME t', integer(1795229389606), integer(1795229389706)],
    ['PTTL t', integer('9223372036854775806'), integer('9223372036854775707')],
  ],
  [
    ['PTTL tp', integer(500), integer(399), '!value'],
    ['TTL t', integer(100), integer(98), '!value'],
    ['PTTL t', integer('9223372036854775806'), integer('9223372036854775705'), '!value'],
    ['PEXPIRETIME t', integer(1795229389606), integer(1795229389707), '!value'],
    ['TTL t', integer(-1), integer(0), '!value'],
    ['TTL t', integer(-1), integer(1), '!value'],
    ['TTL t', integer(-1), integer(-2), '!missing-on-mirror'],
    ['TTL t', integer(0), integer(-2), '!missing-on-mirror'],
    ['PTTL t', integer(50), integer(-2), '!missing-on-mirror'],
    ['PTTL t', integer(50), integer(-1), '!value'],
    ['EXPIRETIME t', integer(1795229390), integer(-2), '!missing-on-mirror'],
    ['TTL t', integer(100), string('99'), '!type'],
    ['TTL t', integer(100), nil, '!type'],
    ['STRLEN s', integer(100), integer(99), '!value'],
    ['INCR n', integer(100), integer(99), '!value'],
  ],
);

test('seconds may be as far apart as the tolerance rounded up, and no further', () => {
  const verdict = (ttlMs: number, mirror: number): string =>
    inShort(compareReplies(view(['ttl', 't']), integer(100), integer(mirror), { ttlMs }));
  assert.deepEqual(
    [verdict(0, 99), verdict(1, 99), verdict(1000, 99), verdict(1000, 98), verdict(1000.5, 98)],
    ['!value', 'ttl-tolerance', 'ttl-tolerance', '!value', 'ttl-tolerance'],
  );
});

const page = (cursor: string, items: string): Buffer => array(string(cursor), strings(items));

rule(
  'cursor',
  [
    ['HSCAN h 0', page('544', 'f436 v436 f189 v189'), page('288', 'f528 v528 f111 v111')],
    ['HSCAN h 0 COUNT 1000', page('0', 'a 1 b 2 c 3'), page('0', 'c 3 a 1 b 2')],
    // One server keeps it packed, and returns all of it.
    ['HSCAN h 0', page('0', 'a 1 b 2 c 3'), page('5', 'c 3')],
    ['HSCAN h 0', page('0', 'a 1 b 2 c 3'), page('5', '')],
    ['HSCAN h 17', page('0', 'a 1'), page('9', 'b 2 c 3')],
    ['HSCAN h 17', page('0', ''), page('9', 'b 2 c 3')],
    ['SSCAN st 0', page('0', 'a e b c d f'), page('0', 'f c d e a b')],
    ['SSCAN st 0', page('0', 'a b c'), page('3', 'c a')],
    ['ZSCAN z 0', page('176', 'm197 197 m138 138'), page('16', 'm193 193 m1 1')],
    ['SCAN 0', page('17', 'h big2 s'), page('14', 'st geo x')],
    ['SCAN 0 COUNT 1000', page('0', 'h big2 s'), page('0', 's h big2')],
    ['SCAN 0 TYPE foo', page('1', ''), page('25', '')],
    ['HSCAN h 0 NOVALUES', page('5', 'a b c'), page('7', 'b d e')],
    ['HSCAN h 0 novalues', page('0', 'a b c'), page('0', 'c a b')],
    // Without its cursor: no call that began at the start.
    ['SSCAN st', page('0', 'a b'), page('0', 'c d')],
  ],
  [
    ['HSCAN h 0', page('0', 'a 1 b 2'), page('0', 'a 1 b 3'), '!value'],
    ['HSCAN h 0', page('0', 'a 1 b 2'), page('0', 'a 2 b 1'), '!value'],
    ['HSCAN h 0', page('0', 'a 1 b 2'), page('0', 'a 1'), '!value'],
    ['HSCAN h 0', page('0', 'a 1 b 2'), page('0', ''), '!missing-on-mirror'],
    // More than all.
    ['SCAN 0', page('0', 'a b'), page('0', 'a c'), '!value'],
    ['HSCAN h 0 COUNT 10', page('5', 'a 1'), page('9', 'a 2'), '!value'],
    ['HSCAN NOVALUES 0', page('5', 'a 1'), page('9', 'a 2'), '!value'],
    ['HSCAN h 0', page('0', 'a 1'), page('7', 'b 2'), '!value'],
    ['SSCAN st 0', page('0', 'a b'), page('3', 'c'), '!value'],
    // What is on both pages differs.
    ['HSCAN h 0', page('5', 'a 1 b 2'), page('9', 'b 3 c 4'), '!value'],
    ['ZSCAN z 7', page('5', 'a 1 b 2'), page('9', 'b 3 c 4'), '!value'],
    // Another shape.
    ['SSCAN st 0', page('5', 'a'), set(string('9'), strings('a')), '!type'],
    ['SSCAN st 0', page('5', 'a'), page('x9', 'a'), '!value'],
    ['SSCAN st 0', page('5', 'a'), page('9x', 'a'), '!value'],
    ['HSCAN h 0', page('5', 'a 1'), page('9', 'a 1 b'), '!value'],
    ['SSCAN st 0', page('5', 'a'), strings('9 a'), '!value'],
    ['SSCAN st 0', page('5', 'a'), array(string('9'), array(nil)), '!value'],
    ['SSCAN st 0', page('5', 'a'), array(string('x'), strings('a')), '!value'],
    ['SSCAN st 0', page('5', 'a'), array(integer(9), strings('a')), '!value'],
    ['SSCAN st 0', page('5', 'a'), error('ERR invalid cursor'), '!error'],
    [
      'SSCAN st 0',
      page('5', 'a'),
      error('WRONGTYPE Operation against a key holding the wrong kind of value'),
      '!error',
    ],
  ],
);

const dump = (hex: string): Buffer => string(Buffer.from(hex, 'hex'));

rule(
  'encoding',
  [
    ['OBJECT ENCODING h', string('listpack'), string('ziplist')],
    ['OBJECT ENCODING h', string('hashtable'), string('ziplist')],
    ['OBJECT ENCODING z', string('listpack'), string('skiplist')],
    ['OBJECT ENCODING s', string('int'), string('raw')],
    ['OBJECT ENCODING st', string('intset'), string('hashtable')],
    ['OBJECT REFCOUNT n', integer(2147483647), integer(1)],
    ['OBJECT REFCOUNT n', integer(0), integer(1)],
    ['MEMORY USAGE s', integer(64), integer(71)],
    ['DUMP s', dump('000568656c6c6f0a00'), dump('000568656c6c6ffa0b6d7663632d7473')],
    ['DUMP l', dump('120102131300'), dump('0e011717000000')],
    ['DUMP h', dump('10161600'), dump('0d1a1a00')],
    // Redis 7.4: fields with a TTL.
    ['OBJECT ENCODING h', string('listpackex'), string('ziplist')],
    ['DUMP h', dump('19161600'), dump('0d1a1a00')],
    // Redis 7.0 and 8.6.
    ['DUMP x', dump('1301100000'), dump('1a01100000')],
    [
      'DEBUG OBJECT s',
      status('Value at:0x7f67499aa8e0 refcount:1 encoding:embstr serializedlength:6 lru:73176 lru_seconds_idle:0'),
      status('Value at:0x7f3322c25020 refcount:1 encoding:embstr serializedlength:6 lru:73176 lru_seconds_idle:0'),
    ],
    [
      'XINFO STREAM x',
      array(
        string('length'),
        integer(1),
        string('radix-tree-keys'),
        integer(1),
        string('radix-tree-nodes'),
        integer(2),
      ),
      array(
        string('length'),
        integer(1),
        string('radix-tree-keys'),
        integer(3),
        string('radix-tree-nodes'),
        integer(4),
      ),
    ],
  ],
  [
    ['OBJECT ENCODING h', string('listpack'), nil, '!missing-on-mirror'],
    ['OBJECT ENCODING h', string('listpack'), null3, '!missing-on-mirror'],
    // Encodings of different types.
    ['OBJECT ENCODING h', string('ziplist'), string('embstr'), '!value'],
    ['OBJECT ENCODING h', string('intset'), string('skiplist'), '!value'],
    ['OBJECT ENCODING h', string('quicklist'), string('hashtable'), '!value'],
    ['OBJECT ENCODING h', string('quicklist'), string('whatever'), '!value'],
    ['OBJECT ENCODING h', string('listpack'), status('ziplist'), '!type'],
    ['OBJECT REFCOUNT h', integer(1), nil, '!missing-on-mirror'],
    ['OBJECT REFCOUNT h', integer(1), integer(-1), '!value'],
    ['MEMORY USAGE s', integer(64), nil, '!missing-on-mirror'],
    ['MEMORY USAGE s', integer(64), string('64'), '!type'],
    ['DUMP s', dump('000568656c6c6f0a00'), nil, '!missing-on-mirror'],
    ['DUMP s', dump('000568656c6c6f0a00'), dump('120102131300'), '!value'],
    ['DUMP s', dump('000568656c6c6f0a00'), string(''), '!value'],
    ['DUMP s', dump('ff00'), dump('ff01'), '!value'],
    ['DUMP x', dump('1a01100000'), dump('10161600'), '!value'],
    // An array of Redis 8.8 is of a type that no other server shares.
    ['DUMP x', dump('1c01100000'), dump('1a01100000'), '!value'],
    ['DEBUG OBJECT s', status('Value at:0x1'), status('Value at:0x2'), '!value'],
    ['DEBUG OBJECT s', string('Value encoding:raw x'), string('Value encoding:int x'), '!value'],
    [
      'DEBUG OBJECT s',
      status('Value at:0x1 refcount:1 encoding:embstr x'),
      status('Value at:0x1 refcount:1 encoding:quicklist x'),
      '!value',
    ],
    [
      'DEBUG OBJECT s',
      status('Value at:0x1 refcount:1 encoding:embstr x'),
      error('ERR no such key'),
      '!missing-on-mirror',
    ],
    [
      'XINFO STREAM x',
      array(string('radix-tree-keys'), integer(1)),
      array(string('radix-tree-keys'), string('1')),
      '!value',
    ],
    ['XINFO STREAM x', array(string('length'), integer(1)), array(string('length'), integer(2)), '!value'],
  ],
);

const pending = (id: string, consumer: string, idle: number, count: number): Buffer =>
  array(string(id), string(consumer), integer(idle), integer(count));
const consumer = (name: string, pendings: number, idle: number, ...more: Buffer[]): Buffer =>
  array(string('name'), string(name), string('pending'), integer(pendings), string('idle'), integer(idle), ...more);

type Words = readonly (string | number | Buffer)[];
const fields = (words: Words): Buffer[] =>
  words.map((word) => (Buffer.isBuffer(word) ? word : typeof word === 'number' ? integer(word) : string(word)));
const flat = (...words: Words): Buffer => array(...fields(words));
const asMap = (...words: Words): Buffer => map(...fields(words));

rule(
  'time-dependent',
  [
    ['OBJECT IDLETIME s', integer(3), integer(4)],
    ['OBJECT FREQ s', integer(7), integer(6)],
    [
      'XPENDING x g - + 10',
      array(pending('1-1', 'c1', 67, 1), pending('2-1', 'c1', 67, 1)),
      array(pending('1-1', 'c1', 66, 1), pending('2-1', 'c1', 66, 1)),
    ],
    ['XPENDING x g IDLE 5 - + 10', array(pending('1-1', 'c1', 67, 1)), array(pending('1-1', 'c1', 66, 1))],
    [
      'XINFO CONSUMERS x g',
      array(consumer('c1', 0, 22), consumer('c2', 3, 5)),
      array(consumer('c1', 0, 22), consumer('c2', 3, 6)),
    ],
    [
      'XINFO CONSUMERS x g',
      array(map(string('name'), string('c'), string('pending'), integer(0), string('idle'), integer(1))),
      array(map(string('name'), string('c'), string('pending'), integer(0), string('idle'), integer(2))),
    ],
  ],
  [
    ['OBJECT IDLETIME s', integer(3), nil, '!missing-on-mirror'],
    ['OBJECT FREQ s', integer(3), string('4'), '!type'],
    [
      'OBJECT IDLETIME s',
      integer(3),
      error('ERR An LFU maxmemory policy is selected, idle time not tracked.'),
      '!error',
    ],
    ['XPENDING x g - + 10', array(pending('1-1', 'c1', 67, 1)), array(pending('1-1', 'c2', 66, 1)), '!value'],
    ['XPENDING x g - + 10', array(pending('1-1', 'c1', 67, 1)), array(pending('1-1', 'c1', 66, 2)), '!value'],
    ['XPENDING x g - + 10', array(pending('1-1', 'c1', 67, 1)), array(pending('1-2', 'c1', 67, 1)), '!value'],
    ['XPENDING x g - + 10', array(pending('1-1', 'c1', 67, 1)), array(), '!length'],
    ['XPENDING x g - + 10', strings('1-1'), strings('2-1'), '!value'],
    ['XPENDING x g - + 10', array(pending('1-1', 'c1', 67, 1)), strings('1-1'), '!value'],
    ['XPENDING x g - + 10', array(strings('1-1 c1')), array(strings('1-1 c1 5')), '!value'],
    ['XPENDING x g - + 10', array(strings('1-1')), array(set(string('1-1'))), '!value'],
    ['XPENDING x g - + 10', array(nilArray), array(strings('1-1')), '!value'],
    ['XPENDING x g - + 10', strings('1-1'), set(string('1-1')), '!type'],
    ['XPENDING x g - + 10', strings('1-1'), string('1-1'), '!type'],
    ['XPENDING x g IDLE 5 - + 10', strings('1-1 2-1'), strings('1-1 3-1'), '!value'],
    [
      'XPENDING x g - + 10',
      array(pending('1-1', 'c1', 67, 1)),
      array(array(string('1-1'), string('c1'), string('66'), integer(1))),
      '!value',
    ],
    // Pending entries of which one was deleted: Redis 7 forgets it when it is claimed. The state differs, whichever
    // server is right.
    [
      'XPENDING x g - + 10',
      array(pending('1-1', 'c', 0, 2)),
      array(pending('1-1', 'c', 0, 2), pending('2-1', 'c', 0, 2)),
      '!length',
    ],
    [
      'XPENDING x g',
      array(integer(3), string('1-1'), string('3-1'), array(strings('c 3'))),
      array(integer(4), string('1-1'), string('3-1'), array(strings('c 4'))),
      '!value',
    ],
    ['XPENDING x g', array(integer(3)), error("NOGROUP No such key 'x' or consumer group 'g'"), '!missing-on-mirror'],
    [
      'XPENDING x g IDLE 5 - + 10',
      array(pending('1-1', 'c1', 67, 1)),
      array(pending('1-1', 'c2', 66, 1), pending('2-1', 'c1', 5, 1)),
      '!length',
    ],
    ['XINFO CONSUMERS x g', array(consumer('c1', 0, 22)), array(consumer('c1', 1, 22)), '!value'],
    ['XINFO CONSUMERS x g', array(consumer('c1', 0, -1)), array(consumer('c1', 0, 22)), '!value'],
    // What is no list of names and values.
    ['XINFO CONSUMERS x g', strings('a'), strings('b'), '!value'],
    ['XINFO CONSUMERS x g', array(consumer('c1', 0, 22)), strings('a'), '!value'],
    ['XINFO CONSUMERS x g', array(consumer('c1', 0, 22)), nilArray, '!type'],
    ['XINFO CONSUMERS x g', array(flat('idle', 1, 'odd')), array(flat('idle', 2, 'odd')), '!value'],
    ['XINFO CONSUMERS x g', array(flat('idle', 1, 'idle', 1)), array(flat('idle', 2, 'idle', 2)), '!value'],
    ['XINFO CONSUMERS x g', array(flat('idle', 1, nil, 1)), array(flat('idle', 2, nil, 1)), '!value'],
    ['XINFO CONSUMERS x g', array(set(string('idle'), integer(1))), array(set(string('idle'), integer(2))), '!value'],
    ['XINFO CONSUMERS x g', array(consumer('c1', 0, 22)), array(consumer('c2', 0, 23)), '!value'],
    [
      'XINFO CONSUMERS x g',
      array(consumer('c1', 0, 22)),
      array(consumer('c1', 0, 22), consumer('c2', 0, 22)),
      '!value',
    ],
    ['XINFO CONSUMERS x g', array(strings('name c idle 22')), array(strings('name c idle 23')), '!value'],
    [
      'XINFO CONSUMERS x g',
      array(consumer('c1', 0, 22)),
      array(consumer('c1', 0, 23, string('other'), integer(1))),
      '!value',
    ],
    ['XINFO CONSUMERS x g', array(consumer('c1', 0, 22)), error('ERR no such key'), '!missing-on-mirror'],
    // A server that lacks the key does not look for the group.
    [
      'XINFO CONSUMERS x g',
      error("NOGROUP No such consumer group 'g' for key name 'x'"),
      error('ERR no such key'),
      '!missing-on-mirror',
    ],
    [
      'XINFO CONSUMERS x g',
      array(consumer('c1', 0, 22)),
      error("NOGROUP No such consumer group 'g' for key name 'x'"),
      '!error',
    ],
    ['OBJECT REFCOUNT s', integer(1), string('2'), '!type'],
  ],
);

const entry = (id: string): Buffer => array(string(id), strings('f v'));
const NEW_STREAM: Words = [
  'length',
  3,
  'radix-tree-keys',
  1,
  'radix-tree-nodes',
  2,
  'last-generated-id',
  '3-1',
  'max-deleted-entry-id',
  '0-0',
  'entries-added',
  3,
  'recorded-first-entry-id',
  '1-1',
  'groups',
  1,
  'first-entry',
  entry('1-1'),
  'last-entry',
  entry('3-1'),
];
const OLD_STREAM: Words = [
  'length',
  3,
  'radix-tree-keys',
  1,
  'radix-tree-nodes',
  2,
  'last-generated-id',
  '3-1',
  'groups',
  1,
  'first-entry',
  entry('1-1'),
  'last-entry',
  entry('3-1'),
];
const changed = (words: Words, field: string, value: string | number | Buffer): Words =>
  words.map((word, i) => (words[i - 1] === field && i % 2 === 1 ? value : word));

const fullGroup = (
  make: typeof flat,
  newer: boolean,
  time: number,
  count = 1,
  seen = time,
  lag: number | Buffer = 0,
): Buffer =>
  array(
    make(
      'name',
      'g',
      'last-delivered-id',
      '3-1',
      ...(newer ? ['entries-read', 3, 'lag', lag] : []),
      'pel-count',
      1,
      'pending',
      array(pending('1-1', 'c1', time, count)),
      'consumers',
      array(
        make(
          'name',
          'c1',
          'seen-time',
          seen,
          'pel-count',
          1,
          'pending',
          array(array(string('1-1'), integer(time), integer(count))),
        ),
      ),
    ),
  );
const full = (make: typeof flat, newer: boolean, groups: Buffer): Buffer =>
  make(
    'length',
    1,
    'radix-tree-keys',
    1,
    'radix-tree-nodes',
    2,
    'last-generated-id',
    '1-1',
    ...(newer ? ['max-deleted-entry-id', '0-0', 'entries-added', 3, 'recorded-first-entry-id', '1-1'] : []),
    'entries',
    array(entry('1-1')),
    'groups',
    groups,
  );

/** Since Redis 8.6. */
const OF_PRODUCERS: Words = [
  ...['idmp-duration', 100, 'idmp-maxsize', 100, 'pids-tracked', 1],
  ...['iids-tracked', 1, 'iids-added', 1, 'iids-duplicates', 0],
];
const NEW_GROUP: Words = [
  'name',
  'g',
  'consumers',
  1,
  'pending',
  3,
  'last-delivered-id',
  '3-1',
  'entries-read',
  3,
  'lag',
  0,
];
const OLD_GROUP: Words = ['name', 'g', 'consumers', 1, 'pending', 3, 'last-delivered-id', '3-1'];
const claimed = (cursor: string, entries: Buffer[], deleted?: Buffer[]): Buffer =>
  array(string(cursor), array(...entries), ...(deleted ? [array(...deleted)] : []));
/** A stream whose only group has one consumer with these fields. */
const withConsumer = (...words: Words): Buffer =>
  flat('groups', array(flat('name', 'g', 'consumers', array(flat('name', 'c', ...words)))));

rule(
  'newer-fields',
  [
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...OLD_STREAM)],
    ['XINFO STREAM x', asMap(...NEW_STREAM), asMap(...OLD_STREAM)],
    // A stream that was copied has nodes of its own.
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...changed(OLD_STREAM, 'radix-tree-nodes', 5))],
    [
      'XINFO STREAM x FULL',
      full(flat, true, fullGroup(flat, true, 1795235288358)),
      full(flat, false, fullGroup(flat, false, 1795235288359)),
    ],
    [
      'XINFO STREAM x FULL',
      full(asMap, true, fullGroup(asMap, true, 1795235288358)),
      full(asMap, false, fullGroup(asMap, false, 1795235288359)),
    ],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP)), array(flat(...OLD_GROUP))],
    ['XINFO GROUPS x', array(asMap(...NEW_GROUP)), array(asMap(...OLD_GROUP))],
    // The time of a consumer's last success is newer still.
    ['XINFO STREAM x FULL', withConsumer('active-time', 5), withConsumer()],
    [
      'XINFO CONSUMERS x g',
      array(consumer('c1', 0, 22, string('inactive'), integer(-1))),
      array(consumer('c1', 0, 23)),
    ],
    [
      'XAUTOCLAIM x g c2 0 0',
      claimed('0-0', [entry('1-1'), entry('3-1')], [string('2-1')]),
      claimed('0-0', [entry('1-1'), nil, entry('3-1')]),
    ],
    [
      'XAUTOCLAIM x g c2 0 0',
      claimed('0-0', [entry('1-1'), entry('3-1')], [string('2-1')]),
      claimed('0-0', [entry('1-1'), null3, entry('3-1')]),
    ],
    ['XAUTOCLAIM x g c2 0 0', claimed('5-0', [entry('1-1')], []), claimed('5-0', [entry('1-1')])],
    [
      'XAUTOCLAIM x g c2 0 0 JUSTID',
      claimed('0-0', [string('1-1'), string('3-1')], []),
      claimed('0-0', [string('1-1'), string('3-1')]),
    ],
    [
      'XAUTOCLAIM x g c2 0 0 JUSTID',
      claimed('0-0', [string('1-1'), string('3-1')], [string('2-1')]),
      claimed('0-0', [string('1-1'), string('2-1'), string('3-1')]),
    ],
    ['XCLAIM x g c9 0 1-1 2-1', array(entry('1-1')), array(entry('1-1'), nil)],
    ['XCLAIM x g c9 0 1-1 2-1 JUSTID', strings('1-1'), array(string('1-1'), nil)],
    // A stream of that name.
    [
      'XAUTOCLAIM JUSTID g c2 0 0',
      claimed('0-0', [entry('1-1')], [string('2-1')]),
      claimed('0-0', [entry('1-1'), nil]),
    ],
    [
      'XAUTOCLAIM x g c2 0 0 JUSTID',
      claimed('0-0', [string('1-1')], [string('2-1')]),
      claimed('0-0', [string('1-1'), string('2-1')]),
    ],
  ],
  [
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...changed(OLD_STREAM, 'length', 2)), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...changed(OLD_STREAM, 'last-generated-id', '4-1')), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...changed(OLD_STREAM, 'groups', 2)), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...changed(OLD_STREAM, 'first-entry', entry('2-1'))), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...OLD_STREAM.slice(2)), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), asMap(...OLD_STREAM), '!type'],
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...OLD_STREAM, 'surprise', 1), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...changed(NEW_STREAM, 'entries-added', 4)), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), error('ERR no such key'), '!missing-on-mirror'],
    // Each lacks something that the other has: not one newer than the other.
    [
      'XINFO STREAM x',
      flat(...OLD_STREAM, 'entries-added', 3),
      flat(...OLD_STREAM, 'max-deleted-entry-id', '0-0'),
      '!value',
    ],
    ['XINFO STREAM x', flat(...NEW_STREAM, ...OF_PRODUCERS), flat(...OLD_STREAM), 'newer-fields'],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP, 'nacked-count', 1)), array(flat(...NEW_GROUP)), 'newer-fields'],
    // Fields of groups are none of streams.
    ['XINFO STREAM x', flat(...OLD_STREAM, 'lag', 3), flat(...OLD_STREAM), '!value'],
    [
      'XINFO STREAM x FULL',
      full(flat, true, fullGroup(flat, true, 5, 1)),
      full(flat, false, fullGroup(flat, false, 6, 2)),
      '!value',
    ],
    ['XINFO STREAM x FULL', full(flat, true, fullGroup(flat, true, 5)), full(flat, false, array()), '!value'],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP)), array(flat(...changed(OLD_GROUP, 'pending', 2))), '!value'],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP)), array(flat(...changed(NEW_GROUP, 'lag', 1))), '!value'],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP)), array(), '!value'],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP)), set(flat(...OLD_GROUP)), '!type'],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP)), array(asMap(...OLD_GROUP)), '!value'],
    [
      'XINFO GROUPS x',
      array(flat(...NEW_GROUP), flat(...OLD_GROUP)),
      array(flat(...OLD_GROUP), asMap(...OLD_GROUP)),
      '!value',
    ],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP), strings('a')), array(flat(...OLD_GROUP), strings('b')), '!value'],
    ['XINFO GROUPS x', array(flat(...NEW_GROUP), strings('a')), array(flat(...OLD_GROUP), strings('a b')), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), nilArray, '!type'],
    ['XINFO STREAM x FULL', withConsumer('inactive', 5), withConsumer(), '!value'],
    [
      'XAUTOCLAIM x g c2 0 0',
      claimed('0-0', [entry('1-1')], [string('2-1')]),
      claimed('0-0', [entry('1-1'), entry('2-1')]),
      '!length',
    ],
    ['XAUTOCLAIM x g c2 0 0', claimed('0-0', [entry('1-1')], []), claimed('0-0', [entry('1-1'), nil]), '!length'],
    ['XAUTOCLAIM x g c2 0 0', claimed('0-0', [entry('1-1')], []), claimed('9-0', [entry('1-1')]), '!length'],
    [
      'XAUTOCLAIM x g c2 0 0',
      claimed('0-0', [entry('1-1')], [string('2-1')]),
      claimed('0-0', [nil, entry('3-1')]),
      '!length',
    ],
    ['XAUTOCLAIM x g c2 0 0', claimed('0-0', [entry('1-1')]), claimed('0-0', [entry('1-1'), nil]), '!value'],
    [
      'XAUTOCLAIM x g c2 0 0 JUSTID',
      claimed('0-0', [string('1-1')], [string('2-1')]),
      claimed('0-0', [string('1-1'), string('3-1')]),
      '!length',
    ],
    [
      'XAUTOCLAIM x g c2 0 0 JUSTID',
      claimed('0-0', [string('1-1'), string('3-1')], []),
      claimed('0-0', [string('3-1'), string('1-1')]),
      '!length',
    ],
    ['XCLAIM x g c9 0 1-1 2-1', array(entry('1-1')), array(entry('2-1'), nil), '!length'],
    ['XCLAIM x g c9 0 1-1 2-1', array(entry('1-1'), entry('3-1')), array(entry('1-1'), nil, entry('4-1')), '!length'],
    ['XCLAIM x g c9 0 1-1', array(entry('1-1')), nilArray, '!type'],
    ['XAUTOCLAIM x g c2 0 0', claimed('0-0', []), nilArray, '!type'],
    [
      'XAUTOCLAIM x g c2 0 0',
      claimed('0-0', [entry('1-1')], []),
      array(string('0-0'), array(entry('1-1')), nil, nil),
      '!length',
    ],
    ['XAUTOCLAIM x g c2 0 0', array(string('0-0'), nil, array()), claimed('0-0', []), '!length'],
    ['XAUTOCLAIM x g c2 0 0', claimed('0-0', [], []), array(string('0-0'), nil), '!length'],
    ['XAUTOCLAIM x g c2 0 0', array(string('0-0'), array(), nil), claimed('0-0', []), '!length'],
    ['XCLAIM x g c9 0 1-1 2-1', array(entry('1-1')), array(entry('1-1'), entry('2-1')), '!length'],
    ['XCLAIM x g c9 0 1-1 2-1 JUSTID', strings('1-1'), strings('1-1 2-1'), '!length'],
    ['XREADGROUP GROUP g c STREAMS x 0', array(entry('1-1')), array(entry('1-1'), nil), '!length'],
  ],
);

const SHA = '206396248e12c6e742fd7296250433c8d7343b74';
const SHA2 = '82903a0434f1503e152f89c03c9acd881a0e8150';
const failed7 = (text: string, sha = SHA): Buffer => error(`${text} script: ${sha}, on @user_script:1.`);
const failed6 = (text: string, where = 'user_script:1', sha = SHA): Buffer =>
  error(`ERR Error running script (call to f_${sha}): @${where}: ${text}`);

rule(
  'error-wording',
  [
    [
      'NOSUCHCMD a b',
      error("ERR unknown command 'NOSUCHCMD', with args beginning with: 'a' 'b' "),
      error('ERR unknown command `NOSUCHCMD`, with args beginning with: `a`, `b`, '),
    ],
    [
      'OBJECT NOSUCH s',
      error("ERR unknown subcommand 'NOSUCH'. Try OBJECT HELP."),
      error("ERR Unknown subcommand or wrong number of arguments for 'NOSUCH'. Try OBJECT HELP."),
    ],
    [
      'XINFO STREAM',
      error("ERR wrong number of arguments for 'xinfo|stream' command"),
      error("ERR Unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."),
    ],
    ['SETEX s 0 v', error("ERR invalid expire time in 'setex' command"), error('ERR invalid expire time in setex')],
    [
      'MSET a b c',
      error("ERR wrong number of arguments for 'mset' command"),
      error('ERR wrong number of arguments for MSET'),
    ],
    [
      'ZUNION 0 z',
      error("ERR at least 1 input key is needed for 'zunion' command"),
      error('ERR at least 1 input key is needed for zunion'),
    ],
    [
      'GEODIST geo a b foo',
      error('ERR unsupported unit provided. please use M, KM, FT, MI'),
      error('ERR unsupported unit provided. please use m, km, ft, mi'),
    ],
    [
      'EXPIRE s 10 FOO',
      error('ERR Unsupported option FOO'),
      error("ERR wrong number of arguments for 'expire' command"),
    ],
    [
      'EXPIRE s 10 NX XX',
      error('ERR NX and XX, GT or LT options at the same time are not compatible'),
      error("ERR wrong number of arguments for 'expire' command"),
    ],
    [
      'ZPOPMIN z abc',
      error('ERR value is out of range, must be positive'),
      error('ERR value is not an integer or out of range'),
    ],
    [
      'LPOS l a RANK 0',
      error(
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list",
      ),
      error("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second, ..."),
    ],
    [
      'GEOSEARCHSTORE d geo FROMLONLAT 15 37 BYRADIUS 1 km WITHDIST',
      error('ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options'),
      error('ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORDS options'),
    ],
    [
      'CONFIG GET x',
      error("NOPERM this user has no permissions to run the 'config|get' command"),
      error("NOPERM this user has no permissions to run the 'config' command or its subcommand"),
    ],
    [
      'EVAL "return 1" 0',
      error("NOPERM this user has no permissions to run the 'eval' command"),
      error("NOPERM this user has no permissions to run the 'eval' command or its subcommand"),
    ],
    [
      'GET a',
      error(
        "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
      ),
      error(
        "ERR Can't execute 'get': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
      ),
    ],
    [
      'GET a',
      error('BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.'),
      error('BUSY KeyDB is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.'),
    ],
    [
      'CONFIG SET maxmemory abc',
      error("ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value"),
      error("ERR Invalid argument 'abc' for CONFIG SET 'maxmemory' - argument must be a memory value"),
    ],
    [
      'CONFIG SET nosuch 1',
      error("ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"),
      error('ERR Unsupported CONFIG parameter: nosuch'),
    ],
    [
      'EVAL x 0',
      failed7('ERR Unknown Redis command called from script'),
      failed6('@user_script: 1: Unknown Redis command called from Lua script'),
    ],
    [
      'EVAL x 0',
      failed7('ERR Wrong number of args calling Redis command from script'),
      failed6('@user_script: 1: Wrong number of args calling Redis command From Lua script'),
    ],
    [
      'EVAL x 0',
      failed7('ERR Please specify at least one argument for this redis lib call'),
      failed6('@user_script: 1: Please specify at least one argument for redis.call()'),
    ],
    [
      'EVAL x 0',
      failed7('ERR Lua redis lib command arguments must be strings or integers'),
      failed6('@user_script: 1: Lua redis() command arguments must be strings or integers'),
    ],
    [
      'EVAL x 0',
      failed7('ERR This Redis command is not allowed from script'),
      failed6('@user_script: 1: This Redis command is not allowed from scripts'),
    ],
    [
      'EVALSHA x 0',
      failed7('ERR value is not an integer or out of range'),
      failed6('ERR value is not an integer or out of range'),
    ],
    ['EVAL x 0', failed7('ERR user_script:1: boom'), failed6('user_script:1: boom')],
    [
      'EVAL x 0',
      failed7("ERR user_script:1: Script attempted to access nonexistent global variable 'x'"),
      failed6("user_script:1: Script attempted to access nonexistent global variable 'x'", 'enable_strict_lua:15'),
    ],
    [
      'EVAL x 0',
      failed7('ERR user_script:1: Attempt to modify a readonly table'),
      failed6("user_script:1: Script attempted to create global variable 'x'", 'enable_strict_lua:8'),
    ],
    [
      'EVAL syntax( 0',
      error("ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'"),
      error("ERR Error compiling script (new function): user_script:2: unexpected symbol near 'end'"),
    ],
  ],
  [
    ['SET s v EX', error('ERR syntax error'), error('ERR value is not an integer or out of range'), '!unsupported'],
    [
      'INCR s',
      error('ERR value is not an integer or out of range'),
      error('ERR increment or decrement would overflow'),
      '!error',
    ],
    ['INCR s', error('ERR no'), error('WRONGTYPE no'), '!error'],
    ['INCR s', error('ERR no'), status('ERR no'), '!error'],
    [
      'INCRBY s abc',
      error('ERR value is out of range, must be positive'),
      error('ERR value is not an integer or out of range'),
      '!error',
    ],
    [
      'SETEX s 0 v',
      error("ERR invalid expire time in 'setex' command"),
      error('ERR invalid expire time in psetex'),
      '!error',
    ],
    [
      'NOSUCH a',
      error("ERR unknown command 'NOSUCH', with args beginning with: 'a' "),
      error('ERR unknown command `OTHER`, with args beginning with: `a`, '),
      '!error',
    ],
    // Only one of them does not know it.
    ['LCS a b', string(''), error('ERR unknown command `LCS`, with args beginning with: `a`, `b`, '), '!unsupported'],
    [
      'FCALL f 0',
      error('ERR Function not found'),
      error('ERR unknown command `FCALL`, with args beginning with: `f`, `0`, '),
      '!unsupported',
    ],
    ['SET k v NX GET', nil, error('ERR syntax error'), '!unsupported'],
    // A node of a cluster, and a server that is none.
    ['SORT k BY w*', error('ERR BY option of SORT denied in cluster mode.'), strings('1'), '!unsupported'],
    ['SORT k GET w*', strings('1'), error('ERR GET option of SORT denied in cluster mode.'), '!unsupported'],
    ['EXPIRE k 1 NX', integer(1), error("ERR wrong number of arguments for 'expire' command"), '!unsupported'],
    [
      'OBJECT FREQ k',
      integer(1),
      error("ERR Unknown subcommand or wrong number of arguments for 'FREQ'. Try OBJECT HELP."),
      '!unsupported',
    ],
    // The expiry of another command, another subcommand, another right, another limit.
    [
      'PERSIST s 10',
      error('ERR Unsupported option FOO'),
      error("ERR wrong number of arguments for 'expire' command"),
      '!error',
    ],
    [
      'OBJECT NOSUCH s',
      error("ERR unknown subcommand 'NOSUCH'. Try OBJECT HELP."),
      error("ERR Unknown subcommand or wrong number of arguments for 'OTHER'. Try OBJECT HELP."),
      '!error',
    ],
    [
      'XINFO STREAM',
      error("ERR wrong number of arguments for 'xinfo|stream' command"),
      error("ERR Unknown subcommand or wrong number of arguments for 'GROUPS'. Try XINFO HELP."),
      '!error',
    ],
    [
      'CONFIG GET x',
      error("NOPERM this user has no permissions to run the 'config|get' command"),
      error("NOPERM this user has no permissions to run the 'client' command or its subcommand"),
      '!error',
    ],
    [
      'GET x',
      error("NOPERM this user has no permissions to run the 'get' command"),
      error('NOPERM this user has no permissions to access one of the keys used as arguments'),
      '!error',
    ],
    [
      'CONFIG SET maxmemory abc',
      error("ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value"),
      error("ERR Invalid argument 'abc' for CONFIG SET 'port' - argument must be a memory value"),
      '!error',
    ],
    // The code that clients branch on is another one.
    [
      'EVAL x 0',
      failed7('WRONGTYPE Operation against a key holding the wrong kind of value'),
      failed6('WRONGTYPE Operation against a key holding the wrong kind of value'),
      '!error',
    ],
    ['EVAL x 0', error('ERR MYX'), error('MYX'), '!error'],
    [
      'EVAL x 0',
      error('ERR Unknown Redis command called from script'),
      error('@user_script: 1: Unknown Redis command called from Lua script'),
      '!error',
    ],
    // Another script, another line, another complaint.
    ['EVAL x 0', failed7('ERR user_script:1: boom'), failed6('user_script:1: boom', 'user_script:1', SHA2), '!error'],
    ['EVAL x 0', failed7('ERR user_script:1: boom'), failed6('user_script:2: boom'), '!error'],
    ['EVAL x 0', failed7('ERR user_script:1: boom'), failed6('user_script:1: bang'), '!error'],
    [
      'EVAL x 0',
      failed7("ERR user_script:1: Script attempted to access nonexistent global variable 'x'"),
      failed6("user_script:1: Script attempted to access nonexistent global variable 'y'"),
      '!error',
    ],
    // The words of a script's failure, said by another command.
    ['GET x', failed7('ERR user_script:1: boom'), failed6('user_script:1: boom'), '!error'],
    ['GET x', error("OOM command not allowed when used memory > 'maxmemory'."), string('x'), '!error'],
  ],
);

rule(
  'null-form',
  [
    ['LPOP nosuch 1', nilArray, nil],
    ['RPOP nosuch 3', nilArray, nil],
  ],
  [
    ['LPOP nosuch', nilArray, nil, '!type'],
    ['LPOP nosuch 1', nilArray, array(), '!type'],
    ['LPOP nosuch 1', strings('a'), nil, '!missing-on-mirror'],
    ['BLPOP nosuch 1', nilArray, nil, '!type'],
    ['HGET h f', nil, null3, '!type'],
  ],
);

const hll = (count: string, registers = 'zzz'): Buffer => string(`HYLL\x01\0\0\0${count}${registers}`);
const [COUNTED, STALE] = ['\x06\0\0\0\0\0\0\0', '\0\0\0\0\0\0\0\x01'];

rule(
  'hll-cache',
  [
    ['GET hll', hll(COUNTED), hll(STALE)],
    ['SET hll x GET', hll(COUNTED), hll(STALE)],
    ['GETDEL hll', hll(COUNTED), hll(STALE)],
    ['GET hll', hll(COUNTED, ''), hll(STALE, '')],
    ['MGET hll s', array(hll(COUNTED), string('a')), array(hll(STALE), string('a'))],
  ],
  [
    ['GET hll', hll(COUNTED, 'zzz'), hll(STALE, 'zzy'), '!value'],
    ['GET hll', hll(COUNTED, 'zzz'), hll(STALE, 'zzzz'), '!value'],
    ['GET hll', string('HYLM1234aaaaaaaazzz'), string('HYLM1234bbbbbbbbzzz'), '!value'],
    ['GET hll', string('HYLL1234aaaaaaa'), string('HYLL1234bbbbbbb'), '!value'],
    ['MGET hll s', array(hll(COUNTED), string('a')), array(hll(STALE), string('b')), '!value'],
  ],
);

/** One coordinate, as KeyDB and as Redis 8 write it. */
const [LONG, SHORT] = ['12.73574262857437134', '12.735742628574371'];

rule(
  'score-form',
  [
    ['ZSCORE z m', string('0'), string('-0')],
    ['ZSCORE z m', double('0'), double('-0')],
    ['ZADD z INCR -0 m', string('0'), string('-0')],
    ['ZINCRBY z -0 m', string('0'), string('-0')],
    ['ZMSCORE z a b', array(string('0'), nil), array(string('-0'), nil)],
    ['ZRANGE z 0 -1 WITHSCORES', strings('a 0 b 1'), strings('a -0 b 1')],
    ['ZRANGE z 0 -1 WITHSCORES', array(array(string('a'), double('0'))), array(array(string('a'), double('-0')))],
    ['ZREVRANGEBYSCORE z 1 -1 withscores', strings('b 1 a 0'), strings('b 1 a -0')],
    ['ZUNION 2 z y WITHSCORES', strings('a 0'), strings('a -0')],
    ['ZPOPMIN z', strings('a 0'), strings('a -0')],
    ['ZPOPMIN z', array(string('a'), double('0')), array(string('a'), double('-0'))],
    ['ZPOPMAX z 2', array(array(string('a'), double('0'))), array(array(string('a'), double('-0')))],
    ['BZPOPMIN z 1', strings('z a 0'), strings('z a -0')],
    [
      'ZMPOP 1 z MIN',
      array(string('z'), array(array(string('a'), string('0')))),
      array(string('z'), array(array(string('a'), string('-0')))),
    ],
    ['ZRANK z a WITHSCORE', array(integer(0), string('0')), array(integer(0), string('-0'))],
    ['ZSCAN z 0', array(string('0'), strings('a 0 b 1')), array(string('0'), strings('a -0 b 1'))],
    ['ZRANDMEMBER z 5 WITHSCORES', strings('a 0 b 1'), strings('a -0 b 1')],
    ['ZSCORE z m', string('0.1'), string('0.10000000000000001')],
    ['ZSCORE z m', string('1e+21'), string('1e21')],
    ['ZSCORE z m', string('1e-07'), string('1e-7')],
    ['ZSCORE z m', double('-1e+300'), double('-1.0000000000000001e+300')],
    ['ZREVRANGE z 0 -1 WITHSCORES', strings('a inf b 3.7000000000000002'), strings('a inf b 3.7')],
    ['GEOPOS g a b', array(strings(`${LONG} 2`), nil), array(strings(`${SHORT} 2`), nil)],
    [
      'GEOSEARCH g FROMMEMBER a BYBOX 1 1 km WITHCOORD WITHDIST',
      array(array(string('a'), string('0.0000'), strings(`${LONG} 2`))),
      array(array(string('a'), string('0.0000'), strings(`${SHORT} 2`))),
    ],
  ],
  [
    ['ZSCORE z m', string('1'), string('-1'), '!value'],
    ['ZSCORE z m', string('0'), string('-0.5'), '!value'],
    ['ZSCORE z m', string('0.3'), string('0.30000000000000004'), '!value'],
    ['ZSCORE z m', string('inf'), string('-inf'), '!value'],
    ['ZSCORE z m', string('x1'), string('x2'), '!value'],
    ['ZSCORE z m', string('1x'), string('2x'), '!value'],
    ['ZRANGE z 0 -1', strings('0.1 b'), strings('0.10000000000000001 b'), '!value'],
    ['ZSCORE z m', nil, string('-0'), '!missing-on-authority'],
    ['ZCARD z', integer(4), integer(5), '!value'],
    // Members of these names.
    ['ZRANGE z 0 -1 WITHSCORES', strings('0 1'), strings('-0 1'), '!value'],
    ['ZRANGE z 0 -1', strings('a 0'), strings('a -0'), '!value'],
    ['ZRANGE WITHSCORES 0 -1', strings('a 0'), strings('a -0'), '!value'],
    ['ZPOPMIN z', strings('0 1'), strings('-0 1'), '!value'],
    ['ZSCAN z 0', array(string('0'), strings('0 1')), array(string('0'), strings('-0 1')), '!value'],
    ['BZPOPMIN z 1', strings('z 0 1'), strings('z -0 1'), '!value'],
    ['GEOPOS g a', array(strings('1.5 2')), array(strings('1.6 2')), '!value'],
    ['GEOSEARCH g FROMMEMBER a BYBOX 1 1 km', strings('1.0'), strings('1'), '!value'],
  ],
);

test('only replies with scores are looked at for them', () => {
  const { appliesTo } = RULES.find(({ name }) => name === 'score-form')!;
  assert.deepEqual(['zscore', 'zrange', 'geosearch', 'get', 'zcard'].map(appliesTo), [true, true, true, false, false]);
});

test('a score in one form is seen by the other rules as well', () => {
  assert.equal(
    judge('ZSCAN z 0', array(string('0'), strings('a 0 b 1')), array(string('0'), strings('b 1 a -0'))),
    'cursor',
  );
  assert.equal(judge('ZRANDMEMBER z 1 WITHSCORES', strings('a 0'), strings('b -0')), 'random');
});

const groupOf = (make: typeof flat, read: number | Buffer, lag: number | Buffer): Buffer =>
  array(make(...changed(changed(NEW_GROUP, 'entries-read', read), 'lag', lag)));
const ESTIMATES: readonly Allowed[] = [
  // An empty stream, whose group's last entry is not known to have been read.
  ['XINFO GROUPS x', groupOf(flat, 5, -3), groupOf(flat, 5, 2)],
  ['XINFO GROUPS x', groupOf(flat, 7, 7), groupOf(flat, 4, 10)],
  ['XINFO GROUPS x', groupOf(flat, nil, nil), groupOf(flat, 0, 25)],
  ['XINFO GROUPS x', groupOf(asMap, null3, 5), groupOf(asMap, 6, null3)],
  [
    'XINFO STREAM x FULL',
    full(flat, true, fullGroup(flat, true, 1795235288358)),
    full(flat, true, fullGroup(flat, true, 1795235288359, 1, undefined, nil)),
  ],
];

rule(
  'estimates',
  ESTIMATES,
  [
    // What the estimates are made from.
    ...['consumers', 'pending'].map((field): Kept => [
      'XINFO GROUPS x',
      groupOf(flat, 7, 7),
      array(flat(...changed(changed(NEW_GROUP, 'lag', nil), field, 9))),
      '!value',
    ]),
    [
      'XINFO GROUPS x',
      groupOf(flat, 7, 7),
      array(flat(...changed(changed(NEW_GROUP, 'lag', nil), 'last-delivered-id', '2-1'))),
      '!value',
    ],
    ['XINFO GROUPS x', groupOf(flat, 7, 7), array(), '!value'],
    ['XINFO GROUPS x', groupOf(flat, 3, string('0')), groupOf(flat, 3, 0), '!value'],
    ['XINFO GROUPS x', groupOf(flat, string('x'), 0), groupOf(flat, nil, 0), '!value'],
    ['XINFO STREAM x', flat(...NEW_STREAM), flat(...changed(NEW_STREAM, 'entries-added', 4)), '!value'],
    [
      'XINFO STREAM x FULL',
      full(flat, true, fullGroup(flat, true, 1795235288358)),
      full(flat, true, fullGroup(flat, true, 1795235288358, 2, undefined, nil)),
      '!value',
    ],
  ],
  TWO_RELEASES,
);

test('estimates allows no difference between servers of one release', () => {
  for (const [command, one, other] of ESTIMATES) assert.equal(judge(command, one, other), '!value', command);
});

rule(
  'server-identity',
  [
    ['INFO', string('# Server\r\nredis_version:7.0.15'), string('# Server\r\nredis_version:6.3.4')],
    ['INFO', verbatim('redis_version:7.0.15'), verbatim('redis_version:6.3.4')],
    ['HELLO 3', asMap('version', '7.0.15', 'id', 3), asMap('version', '6.3.4', 'id', 4)],
    ['CLIENT ID', integer(5), integer(4)],
    ['CLIENT LIST', string('id=3 addr=127.0.0.1:34266'), string('id=4 addr=127.0.0.1:43684')],
    ['CONFIG GET list-max-listpack-size', strings('list-max-listpack-size -2'), strings('')],
    ['COMMAND COUNT', integer(240), integer(236)],
    ['COMMAND INFO get', array(flat('get', 2, 'x')), array(flat('get', 2))],
    ['ACL CAT', strings('keyspace read'), strings('keyspace read replication')],
    ['TIME', strings('1795235288 443199'), strings('1795235288 443289')],
    ['LASTSAVE', integer(1), integer(2)],
    ['ROLE', flat('master', 0, array()), flat('master', 14, array())],
    ['MEMORY STATS', flat('peak.allocated', 1), flat('peak.allocated', 2)],
    ['SLOWLOG GET', array(), array(flat(0, 1))],
    ['LATENCY DOCTOR', string('this Redis instance'), string('this KeyDB instance')],
    ['XGROUP HELP', array(status('CREATE')), array(status('CREATE <key>'))],
    ['PUBLISH c m', integer(1), integer(0)],
    ['PUBSUB NUMSUB c', flat('c', 1), flat('c', 0)],
    ['WAIT 1 10', integer(1), integer(0)],
  ],
  [
    ['INFO', string('a'), error('ERR syntax error'), '!unsupported'],
    ['INFO', string('a'), verbatim('a'), '!type'],
    ['CLIENT ID', integer(5), string('4'), '!type'],
    ['CLIENT GETNAME', string('a'), nil, '!missing-on-mirror'],
    ['ACL GETUSER u', strings('flags on'), nilArray, '!missing-on-mirror'],
    ['CONFIG GET a', strings('a 1'), asMap('a', '1'), '!type'],
    [
      'CLIENT NO-EVICT on',
      status('OK'),
      error("ERR Unknown subcommand or wrong number of arguments for 'NO-EVICT'. Try CLIENT HELP."),
      '!unsupported',
    ],
    ['MEMORY USAGE k', integer(64), nil, '!missing-on-mirror'],
    ['OBJECT ENCODING k', string('a'), string('b'), '!value'],
    ['SCRIPT EXISTS a', array(integer(1)), array(integer(0)), '!value'],
    ['SCRIPT LOAD a', string('a'), string('b'), '!value'],
    ['FUNCTION LIST', strings('a'), strings('b'), '!value'],
    // Commands of modules, with names that contain one of the server's.
    ['INFO.GET k', string('a'), string('b'), '!value'],
    ['MY.INFO k', string('a'), string('b'), '!value'],
  ],
);

test('only a command, and not one whose name contains it, is about the server', () => {
  const { appliesTo } = RULES.find(({ name }) => name === 'server-identity')!;
  assert.deepEqual(['info', 'config|get', 'x|help', 'wait', 'memory|stats'].map(appliesTo), Array(5).fill(true));
  assert.deepEqual(['info.get', 'my.info', 'myconfig|get', 'help', 'waits', 'memory|usage'].filter(appliesTo), []);
});

test('every rule has its pairs, a name of its own, and a sentence', () => {
  assert.deepEqual([...covered].sort(), RULES.map(({ name }) => name).sort());
  for (const { sentence } of RULES) assert.match(sentence, /^[A-Z].{30,}\.$/);
});

test('points in time are compared by the clocks of their servers, times to live are not', () => {
  const verdict = (command: string, authority: number, mirror: number, clockAheadMs: number): string =>
    inShort(compareReplies(view(wordsOf(command)), integer(authority), integer(mirror), { ttlMs: 100, clockAheadMs }));
  assert.equal(verdict('EXPIRETIME k', 1_000, 1_060, 60_000), 'ttl-tolerance');
  assert.equal(verdict('PEXPIRETIME k', 1_000_000, 940_090, -60_000), 'ttl-tolerance');
  assert.equal(verdict('PEXPIRETIME k', 1_000_000, 1_000_090, 60_000), '!value');
  assert.equal(verdict('EXPIRETIME k', 1_000, 1_060, 0), '!value');
  assert.equal(verdict('PTTL k', 100_000, 160_000, 60_000), '!value');
});

test('a write that only the mirror refuses because it is out of memory is inconclusive; a read is not, nor a write that the authority refuses', () => {
  const oom = error("OOM command not allowed when used memory > 'maxmemory'.");
  const script = error(
    "ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
  );
  for (const [command, authority, mirror, verdict] of [
    ['INCR x', integer(1), oom, '?mirror-full'],
    ['INCR x', oom, integer(1), '!error'],
    // Memory is looked at before the key.
    ['INCR x', error('WRONGTYPE Operation'), oom, '?mirror-full'],
    ['GET x', string('x'), oom, '!error'],
    ['SET x y', status('OK'), error('MISCONF'), '?mirror-cannot-save'],
    ['EVAL "return 1" 0', integer(1), script, '?mirror-full'],
    ['SET x y', status('OK'), script, '!error'],
    [
      'EXEC',
      array(status('OK')),
      error("EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'."),
      '?mirror-full',
    ],
    [
      'EXEC',
      array(status('OK')),
      error('EXECABORT Transaction discarded because of previous errors.'),
      '?transaction-refused',
    ],
    ['EXEC', error('EXECABORT Transaction discarded because of previous errors.'), array(status('OK')), '!error'],
    ['EXEC', array(status('OK')), error('ERR EXEC without MULTI'), '!error'],
    ['SET x y', status('OK'), error('EXECABORT Transaction discarded because of previous errors.'), '!error'],
    ['SET x y', status('OK'), error("READONLY You can't write against a read only replica."), '?mirror-read-only'],
    ['SET x y', status('OK'), error('MOVED 16287 127.0.0.1:7001'), '?mirror-slot-away'],
    ['GET x', status('y'), error('CLUSTERDOWN The cluster is down'), '?mirror-slot-away'],
    [
      'GET x',
      error('WRONGTYPE Operation against a key'),
      error('CLUSTERDOWN The cluster is down'),
      '?mirror-slot-away',
    ],
    ['GET x', string('x'), error('LOADING KeyDB is loading the dataset in memory'), '?mirror-loading'],
    ['GET x', string('x'), error('BUSY KeyDB is busy running a script.'), '?mirror-busy'],
    ['GET x', string('x'), error('MASTERDOWN Link with MASTER is down'), '?mirror-without-master'],
    ['GET x', error('WRONGTYPE Operation against a key'), error('BUSY KeyDB is busy'), '?mirror-busy'],
    ['EVALSHA a 0', integer(1), error('NOSCRIPT No matching script. Please use EVAL.'), '?mirror-lacks-script'],
    ['GET x', error('BUSY Redis is busy running a script.'), string('x'), '!error'],
    ['GET x', string('x'), error("READONLY You can't write against a read only replica."), '!error'],
  ] as const) {
    assert.equal(judge(command, authority, mirror), verdict, `${command} ${String(authority)} ${String(mirror)}`);
  }
});

test('a difference that neither a rule nor the replies decide is inconclusive, not allowed', () => {
  const cases: Kept[] = [
    ['DBSIZE', integer(5), integer(6), '?dbsize-counts-expired'],
    ['DBSIZE', integer(5), nil, '!missing-on-mirror'],
    ['SORT st BY nosort', strings('b c a'), strings('a b c'), '?sort-without-order'],
    ['SORT st BY nosort LIMIT 0 1', strings('b'), strings('a'), '?sort-without-order'],
    ['SORT st BY w_* ALPHA', strings('b c a'), strings('a b c'), '?sort-without-order'],
    ['SORT st BY nosort', strings('b c a'), strings('a b d'), '!value'],
    ['SORT st BY nosort LIMIT 0 2', strings('b'), strings('a c'), '!length'],
    ['SORT st BY w_*', strings('b c a'), strings('a b c'), '!order'],
    ['SORT st ALPHA', strings('b c a'), strings('a b c'), '!order'],
    ['SORT st', strings('3 1'), strings('1 3'), '!order'],
    ['SORT_RO st BY nosort', strings('b c a'), strings('a b c'), '?sort-without-order'],
    ['SORT st BY', strings('b a'), strings('a b'), '?sort-without-order'],
    // Lists of these names.
    ['SORT BY ALPHA', strings('b a'), strings('a b'), '!order'],
    ['SORT LIMIT BY nosort', strings('b'), strings('a'), '!value'],
    ['SORT ALPHA BY w_*', strings('b a'), strings('a b'), '!order'],
    ["EVAL \"return redis.call('smembers','st')\" 0", strings('b c a'), strings('a b c'), '?script-order'],
    ['EVALSHA x 0', strings('b c a'), strings('a b d'), '!value'],
    [
      'XPENDING x g IDLE 5 - + 10',
      array(pending('1-1', 'c1', 67, 1)),
      array(pending('1-1', 'c1', 66, 1), pending('2-1', 'c1', 5, 1)),
      '?idle-filter',
    ],
  ];
  for (const [command, authority, mirror, verdict] of cases) {
    assert.equal(judge(command, authority, mirror), verdict, command);
    assert.equal(judge(command, mirror, authority), mirrored(verdict), command);
  }
});

test('the first byte of a DUMP says the type that a copy reads', () => {
  for (const [byte, { kind }] of TYPES) {
    for (const [other, { kind: otherKind }] of TYPES) {
      const verdict = judge('DUMP k', string(Buffer.of(byte, 1)), string(Buffer.of(other, 2)));
      assert.equal(verdict, kind === otherKind ? 'encoding' : '!value', `${byte} and ${other}`);
    }
  }
});

test('a mismatch says where the bytes differ first', () => {
  const verdict = compareReplies(view(['get', 'k']), string('hello world'), string('hello there'), LIMITS);
  assert.deepEqual(verdict, { kind: 'mismatch', what: 'value', offset: 11 });
});

const members = fc.uniqueArray(fc.stringMatching(/^[a-z0-9]{0,4}$/), { minLength: 1, maxLength: 20 });

test('any order of a set or a hash is allowed, and any change of an element is not', () => {
  const shuffled = members.chain((list) =>
    fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
  );
  fc.assert(
    fc.property(shuffled, fc.nat(), ([list, other], pick) => {
      const pairs = (names: readonly string[]): Buffer =>
        array(...names.flatMap((name) => [string(name), string(`value of ${name}`)]));
      const expected = list.join() === other.join() ? 'match' : 'unordered';
      assert.equal(judge('SMEMBERS s', array(...list.map(string)), array(...other.map(string))), expected);
      assert.equal(judge('HGETALL h', pairs(list), pairs(other)), expected);
      const changedOnes = other.map((name, i) => (i === pick % other.length ? `${name}!` : name));
      assert.match(judge('SMEMBERS s', array(...list.map(string)), array(...changedOnes.map(string))), /^!value$/);
      assert.match(judge('HGETALL h', pairs(list), pairs(changedOnes)), /^!value$/);
      const missing = other.slice(1);
      assert.match(
        judge('SMEMBERS s', array(...list.map(string)), array(...missing.map(string))),
        missing.length === 0 ? /^!missing-on-mirror$/ : /^!length$/,
      );
    }),
    { numRuns: 500 },
  );
});
