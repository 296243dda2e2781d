/** What a command answers when its key is missing: one row for each command, and near misses. */
// cspell:ignore nogroups
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRead, keysMissing, missingOn, readsSeveralKeys } from '../../../src/compare/missing.js';
import { decodeReply, type Reply } from '../../../src/resp/decode.js';
import {
  array,
  double,
  error,
  integer,
  map,
  nil,
  nilArray,
  null3,
  set,
  status,
  string,
  strings,
} from '../../integration/compare/frames.js';
import { view, wordsOf } from '../../integration/compare/raw.js';

const decode = (frame: Buffer): Reply => decodeReply(frame).reply;
const missing = (command: string, authority: Buffer, mirror: Buffer): string | null =>
  missingOn(view(wordsOf(command)), decode(authority), decode(mirror));

const NO_KEY = error('ERR no such key');
const NO_GROUP = error("NOGROUP No such key 'k' or consumer group 'g'");
const NEEDS_KEY = error(
  'ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option.',
);
const EMPTY = array();
const LAST_PAGE = array(string('0'), array());

/** Commands, the reply where the key is missing, and replies where it is there. */
type Row = readonly [commands: readonly string[], lacking: Buffer, ...having: Buffer[]];

const READS: readonly Row[] = [
  [['GET k', 'HGET k f', 'LINDEX k 0', 'DUMP k', 'RANDOMKEY'], nil, string('a'), string(''), EMPTY],
  [['ZSCORE k m', 'ZRANK k m', 'ZREVRANK k m', 'GEODIST k a b'], null3, string('0'), integer(0), double('0')],
  [['OBJECT ENCODING k', 'OBJECT IDLETIME k', 'OBJECT FREQ k'], nil, string('raw'), integer(0)],
  [['OBJECT REFCOUNT k', 'MEMORY USAGE k'], nil, integer(0), integer(1)],
  [['LPOS k a', 'HRANDFIELD k', 'SRANDMEMBER k', 'ZRANDMEMBER k'], nil, integer(0), string(''), strings('a')],
  [['LPOS k a COUNT 0', 'HRANDFIELD k 2', 'SRANDMEMBER k 2', 'ZRANDMEMBER k 2'], EMPTY, string('a'), strings('a')],
  [['XREAD STREAMS k 0'], nilArray, strings('a'), array(nil)],
  [['GETRANGE k 0 1', 'SUBSTR k 0 1', 'LCS k l'], string(''), string('a'), nil, status(''), EMPTY],
  [['STRLEN k', 'GETBIT k 1', 'BITCOUNT k', 'LLEN k', 'SCARD k', 'HLEN k'], integer(0), integer(1), string('0'), nil],
  [['HSTRLEN k f', 'ZCARD k', 'ZCOUNT k 0 1', 'ZLEXCOUNT k - +', 'XLEN k', 'PFCOUNT k'], integer(0), integer(-1), nil],
  [['EXISTS k', 'TOUCH k', 'SISMEMBER k m', 'HEXISTS k f'], integer(0), integer(1)],
  [['SINTERCARD 1 k', 'ZINTERCARD 1 k'], integer(0), integer(2)],
  [['TTL k', 'PTTL k', 'EXPIRETIME k', 'PEXPIRETIME k'], integer(-2), integer(-1), integer(2), integer(0)],
  [['TYPE k'], status('none'), status('string'), string('none'), status('nonesuch')],
  [['LRANGE k 0 1', 'SMEMBERS k', 'SINTER k', 'SUNION k', 'SDIFF k', 'HGETALL k'], EMPTY, strings('a'), nil, nilArray],
  [['HKEYS k', 'HVALS k', 'SORT_RO k', 'XRANGE k - +', 'XREVRANGE k + -', 'KEYS *'], EMPTY, strings('a'), string('')],
  [['ZINTER 1 k', 'ZUNION 1 k', 'ZDIFF 1 k', 'ZRANGE k 0 1', 'ZRANGEBYSCORE k 0 1'], set(), set(string('a'))],
  [['ZRANGEBYLEX k - +', 'ZREVRANGE k 0 1', 'ZREVRANGEBYSCORE k 1 0', 'ZREVRANGEBYLEX k + -'], map(), strings('a')],
  [['GEOSEARCH k', 'GEORADIUS_RO k 1 1 1 m', 'GEORADIUSBYMEMBER_RO k m 1 m'], EMPTY, strings('a'), integer(0)],
  [['HMGET k a b', 'ZMSCORE k a b'], array(nil, nil), array(nil, string('')), array(string('a'), nil), nil],
  [['GEOPOS k a b', 'GEOHASH k a b'], array(nilArray, null3), array(nilArray, strings('1 2')), nilArray, string('a')],
  [
    ['SMISMEMBER k a b', 'BITFIELD_RO k GET u8 0 GET u8 8'],
    array(integer(0), integer(0)),
    array(integer(0), integer(1)),
    array(string('0'), integer(0)),
    integer(0),
    nil,
  ],
  [
    ['HSCAN k 0', 'SSCAN k 0', 'ZSCAN k 0', 'SCAN 0'],
    LAST_PAGE,
    array(string('1'), array()),
    array(string('0'), strings('a')),
    array(string('0')),
    array(string('0'), array(), array()),
    nil,
  ],
  [
    ['XINFO STREAM k', 'XINFO GROUPS k', 'XINFO CONSUMERS k g', 'DEBUG OBJECT k'],
    NO_KEY,
    EMPTY,
    status('ERR no such key'),
    error('ERR oh no, ERR no such key'),
    error('ERR no'),
    nil,
  ],
  [['XPENDING k g'], NO_GROUP, EMPTY, status('NOGROUP it'), error('ERR NOGROUP it'), error('NOGROUPS'), nil],
  [['BITPOS k 0'], integer(0), integer(-1), integer(1)],
  [['BITPOS k 1'], integer(-1), integer(0), integer(1)],
];

const WRITES: readonly Row[] = [
  [['INCR k', 'SETNX k v', 'HSETNX k f v', 'PFADD k a'], integer(1), integer(0), integer(2), string('1'), nil],
  [['DECR k'], integer(-1), integer(1), integer(0)],
  [['INCRBY k 5', 'INCRBYFLOAT k 5.0', 'ZINCRBY k 5 m'], integer(5), integer(6), integer(-5), error('5'), nil],
  [['INCRBYFLOAT k 1.5', 'ZINCRBY k 1.50 m'], string('1.5'), string('2.5'), double('1.25'), string('15')],
  [['INCRBY k 0'], integer(0), nil, EMPTY, string('1')],
  [['DECRBY k 5'], integer(-5), integer(5), integer(-6)],
  [['HINCRBY k f 4', 'HINCRBYFLOAT k f 4'], integer(4), integer(5), error('4')],
  [['APPEND k abc', 'LPUSH k a b c', 'RPUSH k a b c'], integer(3), integer(4), integer(2), string('3')],
  [['SETRANGE k 4 ab'], integer(6), integer(4), integer(2), integer(42)],
  [['SADD k a b a', 'HSET k a 1 b 1 a 2', 'ZADD k 1 a 2 b 3 a'], integer(2), integer(3), integer(1)],
  [['ZADD k NX CH 1 a 2 b', 'ZADD k xx gt 1 a 1 b', 'ZADD k LT INCR 1 a 1 b'], integer(2), integer(1), integer(3)],
  [['ZADD k NX', 'ZADD k'], integer(0), integer(1)],
  [
    ['SET k v', 'SET k v XX', 'SET k v GET', 'SET k v NX GET', 'SET k NX', 'SET k v xx px 10'],
    nil,
    status('OK'),
    string('a'),
  ],
  [['SET k v NX', 'SET k v PX 10 nx', 'SET GET v NX', 'SET k GET NX'], status('OK'), nil, string('OK'), status('OKAY')],
  [['GETSET k v', 'GETDEL k', 'GETEX k', 'LMOVE k l LEFT LEFT', 'RPOPLPUSH k l'], nil, string('a'), integer(0)],
  [['LPOP k', 'RPOP k 2', 'SPOP k'], nilArray, string('a'), strings('a')],
  [
    ['SPOP k 2', 'ZPOPMIN k', 'ZPOPMAX k', 'SORT k', 'GEORADIUS k', 'GEORADIUSBYMEMBER k'],
    EMPTY,
    strings('a 1'),
    integer(0),
  ],
  [['EXPIRE k 1', 'PEXPIRE k 1', 'EXPIREAT k 1', 'PEXPIREAT k 1', 'PERSIST k'], integer(0), integer(1)],
  [['DEL k', 'UNLINK k', 'HDEL k f', 'SREM k m', 'ZREM k m', 'XDEL k 1-1', 'XACK k g 1-1'], integer(0), integer(1)],
  [['LREM k 0 a', 'XTRIM k MAXLEN 0', 'LPUSHX k a', 'RPUSHX k a', 'LINSERT k BEFORE a b'], integer(0), integer(-1)],
  [['SETBIT k 1 1', 'COPY k l', 'MOVE k 1', 'SMOVE k l m'], integer(0), integer(1)],
  [['ZREMRANGEBYRANK k 0 1', 'ZREMRANGEBYSCORE k 0 1', 'ZREMRANGEBYLEX k - +'], integer(0), integer(2)],
  [['RENAME k l', 'RENAMENX k l', 'LSET k 0 a'], NO_KEY, status('OK'), integer(0)],
  [['RESTORE k 0 x'], status('OK'), error('BUSYKEY Target key name already exists.'), string('OK'), status('NOK')],
  [['XREADGROUP GROUP g c STREAMS k >', 'XCLAIM k g c 0 1-1', 'XAUTOCLAIM k g c 0 0'], NO_GROUP, EMPTY, nil],
  [['XGROUP CREATE k g 0', 'XGROUP SETID k g 0', 'XGROUP DESTROY k g'], NEEDS_KEY, status('OK'), integer(0), NO_GROUP],
  [
    ['XGROUP CREATECONSUMER k g c', 'XGROUP DELCONSUMER k g c'],
    NEEDS_KEY,
    integer(0),
    status('requires the key to exist'),
  ],
];

/** What no row is for: a missing key answers nil. */
const OTHERS: readonly Row[] = [[['SOMETHING.NEW k', 'SINTERSTORE d k', 'EVAL x 1 k'], nil, integer(0), EMPTY]];

for (const [kind, rows] of Object.entries({ read: READS, write: WRITES, 'command without a row': OTHERS })) {
  test(`one side alone answers a ${kind} as a missing key does: that side lacks it`, () => {
    for (const [commands, lacking, ...having] of rows) {
      for (const command of commands) {
        assert.equal(isRead(view(wordsOf(command))), kind === 'read', command);
        assert.equal(missing(command, lacking, lacking), null, `${command}: both lack it`);
        for (const reply of having) {
          const shown = `${command} ${String(lacking)} ${String(reply)}`;
          assert.equal(missing(command, reply, lacking), 'mirror', shown);
          assert.equal(missing(command, lacking, reply), 'authority', shown);
          assert.equal(missing(command, reply, reply), null, shown);
        }
      }
    }
  });
}

test('a command without the argument that its reply depends on shows nothing', () => {
  for (const [command, a, m] of [
    ['APPEND k', integer(0), integer(3)],
    ['SETRANGE k x ab', integer(2), integer(3)],
    ['SETRANGE k', integer(2), integer(3)],
    ['INCRBY k', integer(0), integer(1)],
    ['INCRBY k x', integer(0), integer(1)],
    ['BITPOS k x', integer(0), integer(1)],
  ] as const) {
    assert.equal(missing(command, a, m), null, command);
    assert.equal(missing(command, m, a), null, command);
  }
});

test('a transaction as a whole shows no missing key', () => {
  assert.equal(missing('EXEC', nil, EMPTY), null);
  assert.equal(missing('EXEC', EMPTY, nilArray), null);
});

const [A, B, C] = ['a', 'b', 'c'].map(string);

test('an MGET shows which of its keys are missing, and where', () => {
  const rows: readonly (readonly [name: string, a: Buffer, m: Buffer, missing: string | null, side: string | null])[] =
    [
      ['one on the mirror', array(A, B), array(A, nil), '1 mirror', 'mirror'],
      ['one on the authority', array(nil, B), array(A, B), '0 authority', 'authority'],
      ['two on one side', array(A, B, C), array(nil, B, nil), '0 mirror, 2 mirror', 'mirror'],
      ['one on each side', array(A, nil, C, nil), array(nil, B, C, nil), '0 mirror, 1 authority', null],
      ['none', array(A, nil), array(A, nil), null, null],
      ['one, and another that differs', array(A, nil), array(C, B), null, null],
      ['one that differs', array(A), array(B), null, null],
      ['fewer keys', array(A), array(A, nil), null, null],
      ['more keys', array(A, nil), array(A), null, null],
      ['no array at the mirror', array(A), A, null, null],
      ['no array at the authority', A, array(A), null, null],
      ['another kind of aggregate', array(A), set(nil), null, null],
      ['nil as a whole', array(nil), nilArray, null, null],
    ];
  for (const [name, a, m, expected, side] of rows) {
    const found = keysMissing(decode(a), decode(m));
    assert.equal(found?.map((each) => `${each.index} ${each.side}`).join(', ') ?? null, expected, name);
    assert.equal(missing('MGET k l m', a, m), side, name);
  }
});

test('which reads look at several keys', () => {
  const several =
    'EXISTS k l|TOUCH k l|PFCOUNT k l|SINTER k l|SUNION k l|SDIFF k l|LCS k l|XREAD STREAMS k 0|SORT k BY w*|' +
    'SORT_RO k BY w*|ZINTER 2 k l|ZUNION 2 k l|ZDIFF 2 k l|SINTERCARD 2 k l|ZINTERCARD 2 k l';
  const one =
    'EXISTS k|TOUCH k|PFCOUNT k|SINTER k|SUNION k|SDIFF k|ZINTER 1 k|ZUNION 1 k WITHSCORES|ZDIFF 1 k|' +
    'SINTERCARD 1 k LIMIT 5|ZINTERCARD 1 k|GET k l|HMGET k a b|LRANGE k 0 1';
  for (const command of several.split('|')) assert.equal(readsSeveralKeys(view(wordsOf(command))), true, command);
  for (const command of one.split('|')) assert.equal(readsSeveralKeys(view(wordsOf(command))), false, command);
});
