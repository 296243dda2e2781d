/**
 * Keys that one side has no more: which replies show it, and what the evidence afterwards proves.
 *
 * Needs real servers: the replies that show a missing key, for each command and server.
 */
import { lifeFromPttl } from '../../../src/resp/key-life.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareReplies, judgeAbsence, needsEvidence } from '../../../src/compare/compare.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { inShort } from './frames.js';
import { RawConnection, view, wordsOf } from './raw.js';

const LIMITS = { ttlMs: 50 };

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

test('a key that only one server has shows in the replies, whichever server that is', async () => {
  await withServers(async ({ source, target }) => {
    const connections = { redis: await RawConnection.open(source), keydb: await RawConnection.open(target) };
    const seed = SEED.trim().split('\n').map(wordsOf);
    for (const having of ['redis', 'keydb'] as const) {
      for (const command of TELLING.trim().split('\n')) {
        const words = wordsOf(command);
        for (const connection of Object.values(connections)) await connection.ask('FLUSHALL');
        for (const each of seed) await connections[having].ask(...each);
        const [a, m] = [await connections.redis.ask(...words), await connections.keydb.ask(...words)];
        const shown = `${command} with the key on ${having}: ${String(a)} ${String(m)}`;
        const verdict = compareReplies(view(words), a, m, LIMITS);
        assert.equal(inShort(verdict), having === 'redis' ? '!missing-on-mirror' : '!missing-on-authority', shown);
        assert.equal(needsEvidence(verdict, view(words), a, m), 'absence', shown);
      }
    }
    for (const connection of Object.values(connections)) connection.close();
  });
});

test('a difference at the moment of a real expiry is allowed, and a key that a server lost long before is a mismatch', async () => {
  await withServers(async ({ source, target }) => {
    const redis = await RawConnection.open(source);
    const keydb = await RawConnection.open(target);
    const pttl = async (connection: RawConnection): Promise<number> =>
      Number((await connection.ask('PTTL', 'k')).toString().slice(1));
    /** GET on both, and the verdict after the evidence. */
    const judge = async (): Promise<string> => {
      const command = view(['GET', 'k']);
      const [a, m] = [await redis.ask('GET', 'k'), await keydb.ask('GET', 'k')];
      const verdict = compareReplies(command, a, m, LIMITS);
      assert.equal(needsEvidence(verdict, command, a, m), 'absence');
      const evidence = {
        authorityLife: lifeFromPttl(await pttl(redis)),
        mirrorLife: lifeFromPttl(await pttl(keydb)),
        authorityEvicted: false,
        mirrorEvicted: false,
        writtenSince: false,
        readOnly: true,
        toleranceMs: 1000,
      };
      return inShort(judgeAbsence(verdict, evidence));
    };
    await redis.ask('SET', 'k', 'v', 'PX', 900);
    await keydb.ask('SET', 'k', 'v', 'PX', 50);
    await until(async () => (await pttl(keydb)) === -2);
    assert.equal(await judge(), 'expiry-edge');
    await redis.ask('SET', 'k', 'v', 'PX', 60_000);
    assert.equal(await judge(), '!missing-on-mirror');
    await redis.ask('SET', 'k', 'v');
    assert.equal(await judge(), '!missing-on-mirror');
    redis.close();
    keydb.close();
  });
});
