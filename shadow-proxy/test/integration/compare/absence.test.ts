/** Keys that one side has no more: which replies show it, and what the evidence afterwards proves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  compareReplies,
  judgeAbsence,
  needsEvidence,
  type Evidence,
  type MismatchKind,
  type Verdict,
} from '../../../src/compare/compare.js';
import { keysMissing } from '../../../src/compare/missing.js';
import { decodeReply } from '../../../src/resp/decode.js';
import { needsKeydb, withServers } from '../../support/servers.js';
import { array, error, inShort, integer, nil, status, string, strings } from './frames.js';
import { RawConnection, view, wordsOf } from './raw.js';

const LIMITS = { ttlMs: 50 };
const compare = (command: string, authority: Buffer, mirror: Buffer): Verdict =>
  compareReplies(view(wordsOf(command)), authority, mirror, LIMITS);
const evidenceFor = (command: string, authority: Buffer, mirror: Buffer): string | null =>
  needsEvidence(compare(command, authority, mirror), view(wordsOf(command)), authority, mirror);

const SEED = `
SET s hello
SET n 41
RPUSH l a b c
SADD st a b c
HSET h a 1 b 2
ZADD z 1 a 2 b
XADD x 1-1 f v
XGROUP CREATE x g 0
XREADGROUP GROUP g c STREAMS x >
GEOADD geo 13.361389 38.115556 Palermo
PFADD hll a b
SET bits abc
SET ones ÿ
SET t v EX 100
`;

/** Replies that show which side has the key. */
const TELLING = `
GET s
GETRANGE s 0 1
SUBSTR s 0 1
STRLEN s
MGET s
MGET s n
GETBIT bits 1
BITCOUNT bits
BITPOS bits 1
BITPOS ones 0
BITFIELD_RO bits GET u8 0
EXISTS s
EXISTS s n
TOUCH s
TYPE s
TTL s
TTL t
PTTL t
OBJECT ENCODING s
OBJECT IDLETIME s
OBJECT REFCOUNT s
MEMORY USAGE s
DUMP s
LRANGE l 0 -1
LINDEX l 0
LLEN l
LPOS l a
LPOS l a COUNT 0
SMEMBERS st
SCARD st
SISMEMBER st a
SMISMEMBER st a b
SINTER st
SUNION st
SDIFF st
SRANDMEMBER st
SRANDMEMBER st 2
HGET h a
HMGET h a b
HGETALL h
HKEYS h
HVALS h
HLEN h
HSTRLEN h a
HEXISTS h a
HRANDFIELD h
HRANDFIELD h 2 WITHVALUES
HSCAN h 0
SSCAN st 0
ZSCAN z 0
ZSCORE z a
ZMSCORE z a b
ZCARD z
ZCOUNT z -inf +inf
ZLEXCOUNT z - +
ZRANK z b
ZREVRANK z a
ZRANGE z 0 -1
ZREVRANGE z 0 -1
ZRANGEBYSCORE z 0 9
ZREVRANGEBYSCORE z 9 0
ZRANGEBYLEX z - +
ZREVRANGEBYLEX z + -
ZUNION 1 z
ZINTER 1 z
ZDIFF 1 z
ZRANDMEMBER z
ZRANDMEMBER z 2 WITHSCORES
XLEN x
XRANGE x - +
XREVRANGE x + -
XREAD STREAMS x 0
XPENDING x g
XINFO STREAM x
XINFO GROUPS x
XINFO CONSUMERS x g
GEOPOS geo Palermo
GEOHASH geo Palermo
GEODIST geo Palermo Palermo
GEOSEARCH geo FROMLONLAT 13 38 BYRADIUS 100 km
GEORADIUS_RO geo 13 38 100 km
GEOSEARCH geo FROMMEMBER Rome BYRADIUS 100 km
GEORADIUSBYMEMBER_RO geo Rome 100 km
OBJECT FREQ s
PFCOUNT hll
INCR n
DECR n
INCRBY n 5
DECRBY n 5
INCRBYFLOAT n 1.5
HINCRBY h a 4
HINCRBYFLOAT h a 2.5
ZINCRBY z 3 a
APPEND s xyz
SETRANGE s 1 x
SETBIT bits 1 1
LPUSH l x
RPUSH l x y
LPUSHX l x
RPUSHX l x
LINSERT l BEFORE b x
SADD st a x
SADD st a a
HSET h a 1 c 3
HSETNX h a 1
ZADD z 1 a 2 x
ZADD z CH 1 a
ZADD z NX 1 a
PFADD hll a
SETNX s v
SET s v NX
SET s v XX
SET s v GET
SET s v XX GET
SET s v XX PX 1000
GETSET s v
GETDEL s
GETEX s
LPOP l
RPOP l
LPOP l 2
SPOP st
SPOP st 2
LMOVE l l2 LEFT LEFT
RPOPLPUSH l l2
ZPOPMIN z
ZPOPMAX z 2
EXPIRE s 100
PEXPIRE s 100000
EXPIREAT s 9999999999
PERSIST t
DEL s
UNLINK s
HDEL h a
SREM st a
ZREM z a
XDEL x 1-1
XACK x g 1-1
LREM l 0 a
XTRIM x MAXLEN 0
ZREMRANGEBYRANK z 0 -1
ZREMRANGEBYSCORE z 0 9
ZREMRANGEBYLEX z - +
COPY s s2
MOVE s 1
SMOVE st st2 a
RENAME s s2
RENAMENX s s2
LSET l 0 x
XREADGROUP GROUP g c STREAMS x >
XCLAIM x g c 0 1-1
XAUTOCLAIM x g c 0 0
XGROUP SETID x g 0
XGROUP DESTROY x g
XGROUP CREATECONSUMER x g c2
XGROUP DELCONSUMER x g c
SORT l ALPHA
GEORADIUS geo 13 38 100 km
`;

test('a key that only one server has shows in the replies, whichever server that is', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withServers(async ({ source, target }) => {
    const connections = { redis: await RawConnection.open(source), keydb: await RawConnection.open(target) };
    const seed = SEED.trim().split('\n').map(wordsOf);
    for (const having of ['redis', 'keydb'] as const) {
      for (const command of TELLING.trim().split('\n')) {
        const words = wordsOf(command);
        for (const connection of Object.values(connections)) await connection.ask('FLUSHALL');
        for (const each of seed) await connections[having].ask(...each);
        const [a, m] = [await connections.redis.ask(...words), await connections.keydb.ask(...words)];
        const told = `${command} with the key on ${having}: ${String(a)} ${String(m)}`;
        const verdict = compareReplies(view(words), a, m, LIMITS);
        assert.equal(inShort(verdict), having === 'redis' ? '!missing-on-mirror' : '!missing-on-authority', told);
        assert.equal(needsEvidence(verdict, view(words), a, m), 'absence', told);
      }
    }
    for (const connection of Object.values(connections)) connection.close();
  });
});

test('a read that differs while both sides have the key needs no evidence', () => {
  for (const [command, authority, mirror] of [
    ['GET s', string('a'), string('b')],
    ['STRLEN s', integer(3), integer(4)],
    ['TTL s', integer(-1), integer(100)],
    ['TTL s', integer(500), integer(100)],
    ['HGETALL h', strings('a 1'), strings('a 2')],
    ['HMGET h a b', array(string('1'), nil), array(string('1'), string('2'))],
    ['SMEMBERS st', strings('a'), strings('b')],
    ['LRANGE l 0 -1', strings('a b'), strings('a')],
    ['EXISTS s', integer(1), integer(2)],
    ['TYPE s', status('list'), status('set')],
    ['ZSCORE z a', string('1'), string('2')],
    ['GET s', string('a'), error('WRONGTYPE Operation against a key holding the wrong kind of value')],
    ['MGET s n', array(string('a'), string('b')), array(string('a'), string('c'))],
    ['MGET s n', array(string('a'), nil), array(string('b'), string('c'))],
    ['SINTER st', strings('a'), strings('a b')],
  ] as const) {
    assert.match(inShort(compare(command, authority, mirror)), /^!(value|type|length|error)$/, command);
    assert.equal(evidenceFor(command, authority, mirror), null, command);
  }
});

test('a read of several keys may differ because one of them is gone', () => {
  for (const [command, authority, mirror] of [
    ['MGET s n', array(string('a'), nil), array(nil, string('b'))],
    ['EXISTS s n', integer(2), integer(1)],
    ['TOUCH s n', integer(2), integer(1)],
    ['SUNION a b', strings('a'), strings('a b')],
    ['SDIFF a b', strings('a'), strings('a b')],
    ['PFCOUNT a b', integer(5), integer(3)],
    ['ZUNION 2 a b', strings('a'), strings('a b')],
    ['XREAD STREAMS a b 0 0', array(strings('a')), array(strings('a'), strings('b'))],
    // b has expired at the one, and is no stream (no set) at the other.
    [
      'XREAD STREAMS a b 0 0',
      array(strings('a')),
      error('WRONGTYPE Operation against a key holding the wrong kind of value'),
    ],
    ['SUNION a b', error('WRONGTYPE Operation against a key holding the wrong kind of value'), strings('a')],
  ] as const) {
    assert.equal(evidenceFor(command, authority, mirror), 'absence', command);
  }
});

test('any reply to a write may differ because of a key that was gone', () => {
  for (const [command, authority, mirror] of [
    ['INCR n', integer(43), integer(2)],
    ['SADD st a b', integer(1), integer(0)],
    ['LPUSH l a', integer(1), error('WRONGTYPE Operation against a key holding the wrong kind of value')],
    ['ZADD z INCR 1 a', string('5'), string('7')],
    ['SINTERSTORE d a b', integer(5), integer(3)],
    ['BITFIELD b INCRBY u8 0 1', array(integer(5)), array(integer(1))],
    ['EVAL "return 1" 1 k', integer(5), integer(1)],
    ['SOMETHING.NEW k', integer(5), integer(1)],
    ['RENAME a b', status('OK'), error('ERR no such key')],
  ] as const) {
    assert.equal(evidenceFor(command, authority, mirror), 'absence', command);
  }
});

test('what no missing key can explain needs no evidence', () => {
  for (const [command, authority, mirror] of [
    ['GET s', string('a'), string('a')],
    ['SMEMBERS s', strings('a b'), strings('b a')],
    ['SORT s BY nosort', strings('a b'), strings('b a')],
    ['SUNION a b', strings('a'), error('OOM command not allowed')],
    ['LCS a b', string('a'), error('ERR unknown command `LCS`, with args beginning with: `a`, `b`, ')],
    ['SET k v NX GET', string('a'), error('ERR syntax error')],
    ['INCR n', integer(5), error("OOM command not allowed when used memory > 'maxmemory'.")],
    ['GET n', nil, error('LOADING Redis is loading the dataset in memory')],
    ['SET n 1', status('OK'), error("READONLY You can't write against a read only replica.")],
    ['INFO', string('a'), nil],
    ['CLIENT GETNAME', string('a'), nil],
    ['DBSIZE', integer(1), nil],
    ['RANDOMKEY', string('a'), nil],
    ['KEYS *', strings('a'), strings('')],
    ['PING', status('PONG'), status('GNOP')],
  ] as const) {
    assert.equal(evidenceFor(command, authority, mirror), null, command);
  }
});

test('an MGET tells which of its keys are missing, and where', () => {
  const decode = (frame: Buffer): ReturnType<typeof decodeReply>['reply'] => decodeReply(frame).reply;
  const missing = keysMissing(
    decode(array(string('a'), nil, string('c'), nil)),
    decode(array(nil, string('b'), string('c'), nil)),
  );
  assert.deepEqual(missing, [
    { index: 0, side: 'mirror' },
    { index: 1, side: 'authority' },
  ]);
  assert.equal(keysMissing(decode(array(string('a'), nil)), decode(array(string('x'), string('b')))), null);
  assert.equal(keysMissing(decode(array(string('a'))), decode(array(string('a'), nil))), null);
});

const mismatch = (what: MismatchKind): Verdict => ({ kind: 'mismatch', what });
const LOST = mismatch('missing-on-mirror');

/** Evidence that proves nothing, but for what is given. */
const evidence = (given: Partial<Evidence>): Evidence => ({
  authorityPttl: -1,
  mirrorPttl: -2,
  authorityEvicted: false,
  mirrorEvicted: false,
  writtenSince: false,
  toleranceMs: 100,
  ...given,
});
const judged = (verdict: Verdict, given: Partial<Evidence>): string => inShort(judgeAbsence(verdict, evidence(given)));

test('an expiry edge needs the key about to expire where it was, or just expired', () => {
  assert.equal(judged(LOST, { authorityPttl: 0 }), 'expiry-edge');
  assert.equal(judged(LOST, { authorityPttl: 100 }), 'expiry-edge');
  assert.equal(judged(LOST, { authorityPttl: -2 }), 'expiry-edge');
  assert.equal(judged(LOST, { authorityPttl: -2, elapsedMs: 100 }), 'expiry-edge');
  assert.equal(judged(LOST, { authorityPttl: 60, elapsedMs: 40 }), 'expiry-edge');

  assert.equal(judged(LOST, { authorityPttl: 101 }), '!missing-on-mirror');
  assert.equal(judged(LOST, { authorityPttl: 60, elapsedMs: 41 }), '!missing-on-mirror');
  assert.equal(judged(LOST, { authorityPttl: -1 }), '!missing-on-mirror');
  // The side that lacks it proves nothing, however soon the key that it has by now expires.
  assert.equal(judged(LOST, { authorityPttl: 5000, mirrorPttl: 5 }), '!missing-on-mirror');
  assert.equal(
    judged(mismatch('missing-on-authority'), { authorityPttl: -2, mirrorPttl: -1 }),
    '!missing-on-authority',
  );
  assert.equal(judged(mismatch('missing-on-authority'), { authorityPttl: -2, mirrorPttl: 40 }), 'expiry-edge');
});

test('a key gone long after, or from a side that evicts, did not prove to expire', () => {
  assert.equal(judged(LOST, { authorityPttl: -2, elapsedMs: 101 }), '?asked-too-late');
  assert.equal(judged(LOST, { authorityPttl: -2, authorityEvicted: true }), '?evicted-since');
});

test('an eviction excuses the side that evicts, and only that', () => {
  assert.equal(judged(LOST, { mirrorEvicted: true }), 'evicted');
  assert.equal(judged(LOST, { mirrorEvicted: true, authorityPttl: 90_000 }), 'evicted');
  assert.equal(judged(LOST, { mirrorEvicted: true, writtenSince: true, mirrorPttl: -1 }), 'evicted');
  assert.equal(judged(LOST, { authorityEvicted: true }), '!missing-on-mirror');
  assert.equal(
    judged(mismatch('missing-on-authority'), { mirrorPttl: -1, mirrorEvicted: true }),
    '!missing-on-authority',
  );
  assert.equal(judged(mismatch('missing-on-authority'), { mirrorPttl: -1, authorityEvicted: true }), 'evicted');
});

test('a key written since proves no expiry', () => {
  assert.equal(judged(LOST, { writtenSince: true }), '?written-since');
  assert.equal(judged(LOST, { writtenSince: true, authorityPttl: 5 }), '?written-since');
  assert.equal(judged(LOST, { writtenSince: true, authorityPttl: -2 }), '?written-since');
  assert.equal(judged(LOST, { writtenSince: true, authorityPttl: -1 }), '?written-since');
});

test('a side that cannot be asked leaves it open', () => {
  assert.equal(judged(LOST, { authorityPttl: null }), '?no-evidence');
  assert.equal(judged(LOST, { mirrorPttl: null }), '!missing-on-mirror');
  assert.equal(judged(LOST, { authorityPttl: null, mirrorEvicted: true }), 'evicted');
});

test('where only reads came, a key that is there was not missing: its field or member was', () => {
  assert.equal(judged(LOST, { readOnly: true, mirrorPttl: -1, authorityPttl: 5 }), '!missing-on-mirror');
  assert.equal(judged(LOST, { readOnly: true, mirrorPttl: -1, mirrorEvicted: true }), '!missing-on-mirror');
  assert.equal(judged(LOST, { readOnly: true, mirrorPttl: 5000, authorityPttl: null }), '!missing-on-mirror');
  assert.equal(judged(LOST, { readOnly: true, mirrorPttl: -2, authorityPttl: 5 }), 'expiry-edge');
  // A write may have made it anew, and may have removed it: then its absence afterwards proves nothing.
  assert.equal(judged(LOST, { readOnly: false, authorityPttl: 5 }), 'expiry-edge');
  assert.equal(judged(LOST, { readOnly: false, authorityPttl: -2 }), '?asked-too-late');
  assert.equal(judged(LOST, { mirrorPttl: -1, authorityPttl: 5 }), 'expiry-edge');
});

test('a reply that does not show who lacked the key is excused by an edge on either side, or evictions on both', () => {
  const unclear = mismatch('value');
  assert.equal(judged(unclear, { authorityPttl: 20, mirrorPttl: -1 }), 'expiry-edge');
  assert.equal(judged(unclear, { authorityPttl: -1, mirrorPttl: 20 }), 'expiry-edge');
  assert.equal(judged(unclear, { authorityPttl: -1, mirrorPttl: -1 }), '!value');
  assert.equal(judged(unclear, { authorityPttl: -1, mirrorPttl: -1, mirrorEvicted: true }), '!value');
  assert.equal(
    judged(unclear, { authorityPttl: -1, mirrorPttl: -1, mirrorEvicted: true, authorityEvicted: true }),
    'evicted',
  );
});

test('only a mismatch is judged again', () => {
  for (const verdict of [
    { kind: 'match' },
    { kind: 'allowed', rule: 'random' },
    { kind: 'inconclusive', reason: 'x' },
  ] as const) {
    assert.equal(judgeAbsence(verdict, evidence({ authorityPttl: -2 })), verdict);
  }
});

test('the edge of a real expiry is excused, and a key that a server lost long before is not', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withServers(async ({ source, target }) => {
    const redis = await RawConnection.open(source);
    const keydb = await RawConnection.open(target);
    const pttl = async (connection: RawConnection): Promise<number> =>
      Number((await connection.ask('PTTL', 'k')).toString().slice(1));
    /** GET on both, and the verdict after the evidence. */
    const judge = async (): Promise<string> => {
      const [a, m] = [await redis.ask('GET', 'k'), await keydb.ask('GET', 'k')];
      const verdict = compare('GET k', a, m);
      assert.equal(evidenceFor('GET k', a, m), 'absence');
      return judged(verdict, {
        authorityPttl: await pttl(redis),
        mirrorPttl: await pttl(keydb),
        readOnly: true,
        toleranceMs: 1000,
      });
    };
    await redis.ask('SET', 'k', 'v', 'PX', 900);
    await keydb.ask('SET', 'k', 'v', 'PX', 50);
    await sleep(150);
    assert.equal(await judge(), 'expiry-edge');
    await redis.ask('SET', 'k', 'v', 'PX', 60_000);
    assert.equal(await judge(), '!missing-on-mirror');
    await redis.ask('SET', 'k', 'v');
    assert.equal(await judge(), '!missing-on-mirror');
    redis.close();
    keydb.close();
  });
});
