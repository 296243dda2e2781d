/**
 * Commands for a Redis 7.0 and a KeyDB 6.3 that hold the same, in this order, each with the verdict on their replies:
 * `=` match, a rule's name (or a match, by chance), `!kind` a mismatch that is real, `?reason` inconclusive.
 */
export const SETUP = `
SET s hello
SET n 10
SET f 3.0
SET fl 0.1
SET bits abc
RPUSH l a b c a
SADD st a b c d e f
SADD ints 1 2 3
SADD bigset ${Array.from({ length: 600 }, (_, i) => `m${i}`).join(' ')}
HSET h a 1 b 2 c 3
HSET bighash ${Array.from({ length: 600 }, (_, i) => `f${i} v${i}`).join(' ')}
ZADD z 1 a 2.5 b 3 c inf d -inf e 0.1 g
ZADD bigzset ${Array.from({ length: 200 }, (_, i) => `${i} m${i}`).join(' ')}
XADD x 1-1 f v
XADD x 2-1 f v
XADD x 3-1 f v
XGROUP CREATE x g 0
XREADGROUP GROUP g c1 STREAMS x >
GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
PFADD hll a b c
PFADD hll2 c d
PFADD counted a b c
SET t v EX 100
SET tp v PX 100500
`;

/** Every type, read and then written. */
export const READS_AND_WRITES = String.raw`
= | GET s
= | GET nosuch
= | GET l
= | GETRANGE s 0 1
= | GETRANGE nosuch 0 1
= | SUBSTR s 0 1
= | STRLEN s
= | STRLEN nosuch
= | MGET s nosuch l n
= | GETBIT bits 3
= | BITCOUNT bits
= | BITCOUNT nosuch
= | BITPOS bits 0
= | BITPOS nosuch 1
= | BITPOS nosuch 0
= | BITFIELD_RO bits GET u8 0
= | BITFIELD_RO nosuch GET u8 0
= | EXISTS s nosuch s
= | TYPE s
= | TYPE nosuch
= | TYPE x
= | TTL s
ttl-tolerance | TTL t
ttl-tolerance | PTTL tp
= | TTL nosuch
= | OBJECT ENCODING s
= | OBJECT ENCODING n
= | OBJECT ENCODING l
= | OBJECT ENCODING st
= | OBJECT ENCODING ints
encoding | OBJECT ENCODING h
= | OBJECT ENCODING bighash
encoding | OBJECT ENCODING z
= | OBJECT ENCODING bigzset
= | OBJECT ENCODING x
= | OBJECT ENCODING nosuch
= | OBJECT REFCOUNT s
= | OBJECT REFCOUNT n
= | OBJECT REFCOUNT nosuch
time-dependent | OBJECT IDLETIME s
= | OBJECT IDLETIME nosuch
= | OBJECT FREQ s
= | OBJECT FREQ nosuch
encoding | DUMP s
encoding | DUMP l
encoding | DUMP h
= | DUMP nosuch
encoding | MEMORY USAGE s
= | MEMORY USAGE nosuch
encoding | DEBUG OBJECT s
= | DEBUG OBJECT nosuch
= | LRANGE l 0 -1
= | LRANGE nosuch 0 -1
= | LINDEX l 0
= | LINDEX l 99
= | LLEN l
= | LPOS l a
= | LPOS l zz
= | LPOS l a COUNT 0
= | LPOS nosuch a COUNT 0
unordered | SMEMBERS st
unordered | SMEMBERS bigset
= | SMEMBERS ints
= | SMEMBERS nosuch
= | SCARD st
= | SISMEMBER st a
= | SMISMEMBER st a zz
= | SMISMEMBER nosuch a zz
= | SINTER st ints
unordered | SINTER st st
unordered | SINTER bigset bigset
unordered | SUNION st ints
unordered | SDIFF bigset st
random | SRANDMEMBER st
= | SRANDMEMBER nosuch
random | SRANDMEMBER st 2
random | SRANDMEMBER st 100
random | SRANDMEMBER st -3
= | SRANDMEMBER nosuch 3
= | HGETALL h
unordered | HGETALL bighash
= | HGETALL nosuch
unordered | HKEYS bighash
unordered | HVALS bighash
= | HGET h a
= | HGET h zz
= | HGET nosuch a
= | HMGET h a zz
= | HMGET nosuch a zz
= | HLEN h
= | HSTRLEN h a
= | HEXISTS h a
random | HRANDFIELD h
random | HRANDFIELD h 2
random | HRANDFIELD h 2 WITHVALUES
random | HRANDFIELD h -5 WITHVALUES
random | HRANDFIELD h 10 WITHVALUES
random | HRANDFIELD bighash 10 WITHVALUES
= | HRANDFIELD nosuch
= | HRANDFIELD nosuch 2
random | ZRANDMEMBER z
random | ZRANDMEMBER z 2 WITHSCORES
random | ZRANDMEMBER z -3 WITHSCORES
random | ZRANDMEMBER z 10
= | ZRANDMEMBER nosuch
= | ZRANGE z 0 -1 WITHSCORES
= | ZRANGEBYSCORE z -inf +inf WITHSCORES
= | ZRANGEBYLEX z - +
= | ZREVRANGE z 0 -1
= | ZSCORE z b
= | ZSCORE z g
= | ZSCORE z nosuch
= | ZSCORE nosuch a
= | ZMSCORE z a zz
= | ZMSCORE nosuch a zz
= | ZCARD z
= | ZCOUNT z -inf +inf
= | ZLEXCOUNT z - +
= | ZRANK z a
= | ZRANK z zz
= | ZINTER 2 z bigzset WITHSCORES
= | ZUNION 2 z bigzset WITHSCORES
= | ZDIFF 2 bigzset z
cursor | HSCAN h 0
cursor | HSCAN bighash 0
cursor | HSCAN bighash 0 COUNT 1000
= | HSCAN nosuch 0
cursor | SSCAN bigset 0 COUNT 1000
cursor | SSCAN st 0
= | SSCAN ints 0
= | ZSCAN z 0
cursor | ZSCAN bigzset 0 COUNT 1000
cursor | ZSCAN bigzset 0
cursor | SCAN 0
cursor | SCAN 0 COUNT 1000
unordered | KEYS *
random | RANDOMKEY
= | DBSIZE
= | SORT ints
= | SORT st ALPHA
?sort-without-order | SORT st BY nosort
?sort-without-order | SORT st BY nosort GET #
= | SORT l ALPHA DESC
= | SORT nosuch
= | XRANGE x - +
= | XRANGE nosuch - +
= | XREVRANGE x + - COUNT 1
= | XLEN x
= | XLEN nosuch
= | XREAD COUNT 1 STREAMS x 0
= | XREAD STREAMS nosuch 0
= | XPENDING x g
time-dependent | XPENDING x g - + 10
= | XPENDING nosuch g
= | XPENDING x nog
newer-fields | XINFO STREAM x
newer-fields | XINFO STREAM x FULL
= | XINFO STREAM nosuch
newer-fields | XINFO GROUPS x
= | XINFO GROUPS nosuch
time-dependent | XINFO CONSUMERS x g
= | XINFO CONSUMERS x nog
= | GEOPOS geo Palermo nosuch
= | GEOPOS nosuch a
= | GEODIST geo Palermo Catania
= | GEODIST geo Palermo nosuch
= | GEOHASH geo Palermo nosuch
= | GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 300 km
= | GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 300 km WITHDIST WITHCOORD WITHHASH
= | GEORADIUS geo 15 37 200 km WITHDIST
= | GEORADIUS_RO geo 15 37 200 km
= | GEORADIUSBYMEMBER geo Palermo 300 km
hll-cache | GET counted
hll-cache | MGET s counted
hll-cache | GETEX counted
= | PFCOUNT hll
= | PFCOUNT hll hll2
= | PFCOUNT nosuch
= | PING
= | PING x
= | ECHO a
server-identity | TIME
server-identity | LASTSAVE
= | WAIT 0 1
= | PUBLISH c m
= | PUBSUB CHANNELS
= | PUBSUB NUMSUB a
= | PUBSUB NUMPAT
server-identity | SLOWLOG GET 1
server-identity | SLOWLOG LEN
server-identity | MEMORY DOCTOR
= | ROLE
server-identity | CLIENT ID
= | CLIENT GETNAME
= | ACL LIST
= | ACL USERS
server-identity | ACL CAT
server-identity | COMMAND COUNT
server-identity | COMMAND INFO get
= | CONFIG GET save
server-identity | LATENCY LATEST
server-identity | LATENCY DOCTOR
= | SCRIPT EXISTS aaaa
?script-order | EVAL "return redis.call('smembers','st')" 0
?script-order | EVAL "return redis.call('smembers','bigset')" 0
= | EVAL "return redis.call('hgetall','h')" 0
= | EVAL "return {1,'a',{2,'b'},false,true}" 0
= | EVAL "return {ok='x'}" 0
= | EVAL "return 3.9" 0
= | EVAL "return redis.call('get','nosuch')" 0
= | EVAL "return tostring(1/3)" 0
= | EVAL "return cjson.encode({a=1.5,b=1/3})" 0
!unsupported | LCS s n
= | OBJECT HELP
= | XINFO HELP
= | HINCRBYFLOAT h a 0.1
= | HINCRBYFLOAT h a 1e20
= | HINCRBYFLOAT h a 3e-5
= | INCRBYFLOAT f 0.1
= | INCRBYFLOAT f 1e30
= | INCRBYFLOAT fl 1e-20
= | ZINCRBY z 0.1 b
= | ZINCRBY z 1e100 b
= | ZADD z INCR 0.2 c
= | ZADD z 1e-10 tiny 123456789012345678 huge 1e17 p 3.14159265358979 pi
= | ZRANGE z 0 -1 WITHSCORES
= | ZSCORE z pi
= | ZINCRBY z 1 inf
= | XADD x 5-1 a b
= | XDEL x 2-1
newer-fields | XAUTOCLAIM x g c2 0 0
!length | XPENDING x g - + 10
= | XCLAIM x g c3 0 1-1 3-1
= | XCLAIM x g c3 0 1-1 JUSTID
= | XREADGROUP GROUP g c3 STREAMS x 0
!value | XINFO STREAM x FULL
!value | XACK x g 1-1 2-1
newer-fields | XINFO GROUPS x
= | XGROUP DELCONSUMER x g c2
= | XGROUP DESTROY x g
= | BITOP AND d bits bits
= | BITFIELD bits INCRBY u8 0 1 OVERFLOW FAIL GET u4 0
= | SETRANGE s 10 x
= | APPEND s y
= | LINSERT l BEFORE b x
= | LINSERT nosuch BEFORE b x
= | LREM l 0 a
= | LSET l 0 z
= | LTRIM l 0 10
= | LMOVE l l2 LEFT RIGHT
= | RPOPLPUSH l l2
= | LPOP l 2
= | LPOP nosuch
null-form | LPOP nosuch 1
= | BLPOP nosuch 0.01
= | BZPOPMIN nosuch 0.01
= | BRPOPLPUSH nosuch x2 0.01
= | BLMOVE nosuch x2 LEFT LEFT 0.01
= | ZPOPMIN z
= | ZPOPMIN nosuch
= | ZPOPMAX bigzset 2
= | ZRANGESTORE zd bigzset 0 1
= | GETSET s v
= | GETDEL s
= | GETDEL s
= | GETEX t PERSIST
= | GETEX nosuch
= | SET s v NX
= | SET s v NX
= | SET s v GET
= | SET s v XX GET
= | SET nosuch v XX
= | SET nosuch2 v GET
= | SETNX s v
= | MSETNX s v n2 v
= | HSETNX h a 1
= | EXPIRE s 100
= | EXPIRE nosuch 100
= | PERSIST s
= | PERSIST s
= | EXPIREAT s 1
= | DEL s
= | UNLINK nosuch
= | RENAME nosuch a
= | RENAMENX n n3
= | COPY n3 n4
= | COPY nosuch n4
= | MOVE n4 1
= | TOUCH n3 nosuch
= | SMOVE st st2 a
= | SDIFFSTORE dd bigset st
= | SORT l STORE ss
= | OBJECT FREQ n3
= | ZADD minus -0 a 1 b
= | ZUNIONSTORE minus2 1 z WEIGHTS -0
score-form | ZSCORE minus a
score-form | ZMSCORE minus a b
score-form | ZRANGE minus 0 -1 WITHSCORES
score-form | ZRANGEBYSCORE minus -1 1 WITHSCORES
score-form | ZUNION 1 minus WITHSCORES
score-form | ZSCAN minus 0
score-form | ZINCRBY minus -0 a
score-form | ZADD minus INCR -0 a
= | ZRANGEBYSCORE minus 0 0
= | ZCOUNT minus -0 0
= | ZRANK minus a
score-form | ZPOPMIN minus
`;

/** What servers refuse, and how. */
export const REFUSALS = String.raw`
error-wording | NOSUCHCMD a b
error-wording | NOSUCHCMD
error-wording | CONFIG NOSUCH
error-wording | OBJECT NOSUCH s
error-wording | OBJECT ENCODING
error-wording | OBJECT ENCODING a b
error-wording | OBJECT FREQ
error-wording | XINFO STREAM
error-wording | XINFO NOSUCH x
error-wording | XINFO GROUPS
error-wording | XINFO CONSUMERS x
error-wording | XGROUP CREATE x
error-wording | XGROUP NOSUCH x g
= | XGROUP CREATE nosuch g 0
= | XGROUP CREATE x g 0
= | XGROUP CREATE x g2 abc
= | XGROUP SETID x nog 0
= | XGROUP DESTROY nosuch g
= | XGROUP CREATECONSUMER x nog c
= | XGROUP DELCONSUMER x nog c
error-wording | XGROUP SETID x g
error-wording | MEMORY USAGE
= | MEMORY USAGE s SAMPLES abc
error-wording | MEMORY NOSUCH
= | MEMORY
error-wording | CLIENT NOSUCH
!error | CLIENT KILL
= | CLIENT KILL a
!error | CLIENT KILL ID abc
= | CLIENT SETNAME "a b"
error-wording | CLIENT SETNAME
error-wording | CLIENT GETNAME a
= | CLIENT REPLY abc
= | CLIENT UNBLOCK abc
= | CLIENT TRACKING abc
= | CLIENT CACHING yes
= | CLIENT PAUSE abc
error-wording | SCRIPT NOSUCH
error-wording | SCRIPT LOAD
!unsupported | SCRIPT EXISTS
= | SCRIPT FLUSH abc
= | SCRIPT KILL
error-wording | COMMAND NOSUCH
error-wording | COMMAND GETKEYS
!unsupported | COMMAND GETKEYS GET
!unsupported | COMMAND GETKEYS PING
= | COMMAND GETKEYS nosuch a
error-wording | ACL NOSUCH
error-wording | ACL GETUSER
= | ACL GETUSER nosuch
= | ACL SETUSER u badrule
= | ACL CAT nosuch
= | ACL DELUSER default
error-wording | SLOWLOG NOSUCH
!error | SLOWLOG GET abc
= | SLOWLOG
error-wording | LATENCY NOSUCH
= | LATENCY RESET a
error-wording | PUBSUB NOSUCH
error-wording | PUBSUB CHANNELS a b
= | CLUSTER INFO
!unsupported | CLUSTER NOSUCH
= | CLUSTER
error-wording | MODULE NOSUCH
error-wording | MODULE LOAD
error-wording | DEBUG NOSUCH
= | DEBUG
= | HELLO 4
= | HELLO abc
= | HELLO 3 AUTH
= | HELLO 3 AUTH a b
= | HELLO 3 SETNAME "a b"
= | HELLO 2 FOO
= | AUTH a
= | AUTH a b
= | AUTH
= | SELECT 99
= | SELECT abc
= | SELECT
= | SWAPDB 0 99
= | SWAPDB a b
= | MOVE s 99
= | MOVE s abc
= | MOVE s 0
= | COPY s s
= | COPY s s2 DB 99
= | COPY s s2 DB abc
= | COPY s s2 FOO
= | GET
= | GET a b
= | GET l
= | SET s
= | SET s v FOO
error-wording | SET s v EX 0
error-wording | SET s v EX -1
= | SET s v EX abc
error-wording | SET s v PX 0
error-wording | SET s v EXAT 0
error-wording | SET s v PXAT -5
error-wording | SET s v EX 9223372036854775807
error-wording | SET s v PX 9223372036854775807
= | SET s v NX XX
= | SET s v EX 1 PX 1
!unsupported | SET l v NX GET
= | SET l v GET
error-wording | SETEX s 0 v
= | SETEX s abc v
error-wording | SETEX s -1 v
error-wording | PSETEX s 0 v
error-wording | PSETEX s 9223372036854775807 v
error-wording | GETEX s EX 0
= | GETEX s EX abc
= | GETEX s FOO
error-wording | GETEX s EX 9223372036854775807
error-wording | GETEX s PX -1
= | EXPIRE s abc
= | EXPIRE s
= | PEXPIRE s abc
= | EXPIREAT s abc
error-wording | EXPIRE s 9223372036854775
error-wording | EXPIRE s -9223372036854776
error-wording | PEXPIRE s 9223372036854775807
error-wording | EXPIREAT s 9223372036854776
error-wording | EXPIRE s 10 FOO
error-wording | EXPIRE s 10 NX XX
= | INCR s
= | INCR l
= | INCRBY n abc
= | INCRBY n 9223372036854775807
= | INCRBY n 9223372036854775807
= | INCRBYFLOAT s 1
= | INCRBYFLOAT n abc
= | INCRBYFLOAT n inf
= | INCRBYFLOAT l 1
= | HINCRBY h a x
= | HINCRBY s a 1
= | HSET h f notanum
= | HINCRBY h f 1
= | HINCRBYFLOAT h f 1
= | HINCRBYFLOAT h a x
= | HINCRBYFLOAT h a inf
= | HINCRBY h a 9223372036854775807
= | APPEND l x
= | SETRANGE s -1 x
= | SETRANGE s 536870912 x
= | SETRANGE s abc x
= | SETBIT s abc 1
= | SETBIT s 1 2
= | SETBIT s 4294967296 1
= | GETBIT s abc
= | BITCOUNT s 1
= | BITCOUNT s a b
= | BITCOUNT s 0 1 FOO
= | BITPOS s 2
= | BITPOS s abc
= | BITPOS s 1 a
= | BITOP FOO a b
= | BITOP NOT a b c
= | BITFIELD s GET u64 0
= | BITFIELD s GET foo 0
= | BITFIELD s SET u8 abc 0
= | BITFIELD s OVERFLOW FOO
= | BITFIELD_RO s SET u8 0 0
= | GETRANGE s a b
= | LPUSH s 1
= | LPUSH
= | LPOP l abc
= | LPOP l -1
= | LPOP s
= | LINDEX l abc
= | LSET l 99 x
= | LSET nosuch 0 x
= | LSET l abc x
= | LINSERT l FOO a b
= | LRANGE l a b
= | LREM l abc a
= | LTRIM l a b
= | LMOVE l l2 FOO LEFT
= | LMOVE s l2 LEFT LEFT
= | RPOPLPUSH s l
error-wording | LPOS l a RANK 0
= | LPOS l a COUNT -1
= | LPOS l a MAXLEN -1
= | LPOS l a FOO 1
= | BLPOP l abc
= | BLPOP l -1
= | BLPOP s 0.01
= | BLMOVE l l2 LEFT LEFT abc
= | BRPOPLPUSH l l2 abc
= | SADD s a
= | SADD l a
= | SRANDMEMBER st abc
= | SRANDMEMBER st 1 2
= | SRANDMEMBER st -9223372036854775808
= | SMOVE s st a
= | SINTER st s
= | SINTERSTORE d st s
= | SUNION st l
= | SDIFF l st
= | HSET h a
= | HSET s a b
= | HMSET h a
= | HMSET h
= | HGET s a
= | HGETALL s
= | HMGET s a
= | HRANDFIELD h abc
= | HRANDFIELD h 1 FOO
= | HRANDFIELD h 1 WITHVALUES x
= | HRANDFIELD h -9223372036854775808 WITHVALUES
= | HSCAN h abc
= | HSCAN h 0 COUNT 0
= | HSCAN h 0 COUNT abc
= | HSCAN h 0 FOO
= | HSCAN s 0
= | SCAN abc
cursor | SCAN 0 TYPE foo
= | SCAN 0 COUNT 0
= | ZADD z nan m
= | ZADD z abc m
= | ZADD z 1
= | ZADD z NX XX 1 a
= | ZADD z GT LT 1 a
= | ZADD z INCR 1 a 2 b
= | ZADD z FOO 1 a b
= | ZADD s 1 a
= | ZINCRBY z abc a
= | ZINCRBY z nan a
= | ZADD z inf infm
= | ZINCRBY z -inf infm
= | ZADD z INCR -inf infm
= | ZRANGE z a b
= | ZRANGE z 0 -1 FOO
= | ZRANGE z 0 -1 LIMIT 0 1
= | ZRANGE z (a (b BYSCORE
= | ZRANGE z a b BYLEX
= | ZRANGE z 0 1 BYLEX WITHSCORES
= | ZRANGE z - + BYLEX WITHSCORES
= | ZRANGEBYSCORE z a b
= | ZRANGEBYSCORE z 0 1 LIMIT a b
= | ZRANGEBYLEX z a b
= | ZRANGESTORE d z 0 1 WITHSCORES
= | ZCOUNT z a b
= | ZLEXCOUNT z a b
= | ZRANK z
= | ZSCORE s a
= | ZRANDMEMBER z abc
= | ZRANDMEMBER z 1 FOO
= | ZRANDMEMBER z -9223372036854775808 WITHSCORES
error-wording | ZUNION 0 z
= | ZUNION abc z
= | ZUNION 2 z
= | ZUNION 1 z WEIGHTS abc
= | ZUNION 1 z WEIGHTS
= | ZUNION 1 z AGGREGATE FOO
= | ZUNION 1 s
error-wording | ZUNIONSTORE d 0 z
= | ZUNIONSTORE d 1 z WITHSCORES
error-wording | ZDIFF 0 z
= | ZDIFFSTORE d abc z
= | ZINTER 1 z FOO
error-wording | ZINTERSTORE d -1 z
error-wording | ZPOPMIN z abc
!error | ZPOPMIN z -1
= | ZPOPMIN s
= | BZPOPMIN z abc
= | BZPOPMIN s 0.01
= | ZREMRANGEBYRANK z a b
= | ZREMRANGEBYSCORE z a b
= | ZREMRANGEBYLEX z a b
= | ZSCAN z abc
= | GEOADD geo 200 100 a
= | GEOADD geo abc 1 a
= | GEOADD geo 1 1
= | GEOADD geo NX XX 1 1 a
error-wording | GEODIST geo Palermo Catania foo
= | GEODIST geo a
= | GEOSEARCH geo
= | GEOSEARCH geo FROMLONLAT 15 37
= | GEOSEARCH geo BYRADIUS 1 km
= | GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS abc km
= | GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS -1 km
error-wording | GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 1 foo
= | GEOSEARCH geo FROMMEMBER nosuch BYRADIUS 1 km
= | GEOSEARCH geo FROMLONLAT 15 37 BYBOX 1 km
= | GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 1 km ANY
= | GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 1 km COUNT 0
= | GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 1 km FROMMEMBER Palermo
= | GEORADIUS geo 15 37 abc km
error-wording | GEORADIUS geo 15 37 1 foo
error-wording | GEORADIUS geo 15 37 1 km STORE d WITHDIST
= | GEORADIUS_RO geo 15 37 1 km STORE d
= | GEORADIUSBYMEMBER geo nosuch 1 km
error-wording | GEOSEARCHSTORE d geo FROMLONLAT 15 37 BYRADIUS 1 km WITHDIST
= | GEOHASH s a
= | GEOPOS s a
= | PFADD s a
= | PFCOUNT s
= | PFMERGE d s
= | PFADD l a
= | PFDEBUG FOO hll
= | XADD x 0-0 f v
= | XADD x 1-1 f v
= | XADD x abc f v
= | XADD x * f
= | XADD x
= | XADD s * f v
= | XADD x MAXLEN abc * f v
= | XADD x MAXLEN -1 * f v
= | XADD x MAXLEN = 10 LIMIT 1 * f v
= | XADD x NOMKSTREAM
= | XADD x 18446744073709551615-18446744073709551615 f v
= | XADD x 1-1-1 f v
= | XADD x 99999999999999999999 f v
= | XADD x * f v
= | XRANGE x a b
= | XRANGE x - + COUNT abc
= | XRANGE x - + FOO 1
= | XRANGE x (- +
= | XRANGE s - +
= | XREAD STREAMS x
= | XREAD COUNT abc STREAMS x 0
= | XREAD BLOCK abc STREAMS x 0
= | XREAD BLOCK -1 STREAMS x 0
= | XREAD STREAMS x >
= | XREAD STREAMS x abc
= | XREAD FOO x 0
= | XREAD STREAMS s 0
= | XREADGROUP GROUP nog c STREAMS x >
= | XREADGROUP GROUP g c STREAMS nosuch >
= | XREADGROUP GROUP g c STREAMS x $
= | XREADGROUP STREAMS x >
= | XREADGROUP GROUP g c NOACK STREAMS x
= | XACK x g abc
= | XACK s g 1-1
= | XCLAIM x nog c 0 1-1
= | XCLAIM x g c abc 1-1
= | XCLAIM x g c 0 abc
= | XCLAIM x g c 0 1-1 FOO
= | XAUTOCLAIM x nog c 0 0
= | XAUTOCLAIM x g c abc 0
= | XAUTOCLAIM x g c 0 abc
= | XAUTOCLAIM x g c 0 0 COUNT 0
= | XAUTOCLAIM x g c 0 0 FOO
= | XPENDING x nog
= | XPENDING nosuch g
= | XPENDING x g - +
= | XPENDING x g a b 1
= | XPENDING x g - + abc
= | XPENDING s g
= | XTRIM x FOO 1
= | XTRIM x MAXLEN abc
= | XTRIM x MAXLEN
= | XTRIM x MAXLEN 1 LIMIT 1
= | XTRIM x MINID abc
= | XDEL x abc
= | XDEL s 1-1
= | XLEN s
= | XSETID x 1-1
= | XSETID x abc
= | XSETID nosuch 1-1
= | XINFO STREAM nosuch
= | XINFO STREAM s
= | XINFO GROUPS s
= | XINFO CONSUMERS x nog
= | XINFO CONSUMERS nosuch g
error-wording | XINFO STREAM x FOO
= | XINFO STREAM x FULL COUNT abc
= | SORT s
= | SORT l LIMIT 0 abc
= | SORT st
= | SORT st BY
= | SORT l FOO
= | SORT h
= | RENAME nosuch a
= | RENAME s
= | RENAMENX nosuch a
= | RESTORE rr 0 abc
= | RESTORE rr abc abc
= | RESTORE rr -1 abc
= | RESTORE s 0 abc
= | RESTORE rr 0 abc FOO
= | RESTORE rr 0 abc IDLETIME -1
= | RESTORE rr 0 abc FREQ 256
= | OBJECT FREQ s
= | TOUCH
= | TYPE
= | TTL
= | PERSIST
= | KEYS
= | RANDOMKEY a
= | EXISTS
= | DEL
= | MGET
= | MSET a
error-wording | MSET a b c
= | MSETNX a
= | MIGRATE h 1
= | WAIT a b
= | WAIT 0 abc
= | WAIT 0 -1
= | EVAL
= | EVAL "return 1" abc
= | EVAL "return 1" -1
= | EVAL "return 1" 2 a
= | EVAL "return {err='MY'}" 0
= | EVAL "return {err='MY X'}" 0
= | EVAL "return redis.error_reply('MY X')" 0
!error | EVAL "return redis.error_reply('MYX')" 0
!error | EVAL "return redis.error_reply('-MYX y')" 0
error-wording | EVAL "return redis.call('nosuch')" 0
error-wording | EVAL "return redis.call('get')" 0
!error | EVAL "return redis.call('incr','l')" 0
error-wording | EVAL "return redis.call('incr','s')" 0
= | EVAL "return redis.pcall('incr','l')" 0
= | EVAL "return redis.pcall('incr','s')" 0
!error | EVAL "return redis.pcall('nosuch')" 0
error-wording | EVAL "return redis.call()" 0
error-wording | EVAL "return redis.call('get',{})" 0
error-wording | EVAL "return redis.call('blpop','nosuch',0)" 0
error-wording | EVAL "return redis.call('subscribe','a')" 0
error-wording | EVAL "return redis.call('multi')" 0
error-wording | EVAL "return redis.call('xread','block','0','streams','x','$')" 0
error-wording | EVAL "error('boom')" 0
!error | EVAL "error({err='MY boom'})" 0
error-wording | EVAL "return nosuchvar" 0
error-wording | EVAL "x=1" 0
error-wording | EVAL "syntax(" 0
error-wording | EVAL "local t=nil return t.x" 0
error-wording | EVAL "return 'a'+1" 0
error-wording | EVAL "return redis.sha1hex()" 0
error-wording | EVAL "return redis.log('a')" 0
error-wording | EVAL "return redis.setresp(4)" 0
error-wording | EVAL "return cjson.decode('{')" 0
= | EVAL "return cmsgpack.unpack('a')" 0
= | EVAL "return string.rep('x',10)" 0
= | EVAL "return unpack({})" 0
= | EVAL "return redis.status_reply('OK')" 0
= | EVAL "return #ARGV" 0 a b
= | EVAL "return KEYS[1]" 1 a
error-wording | EVAL "assert(false,'assertion')" 0
error-wording | EVAL "assert(false)" 0
error-wording | EVAL "redis.call('set','l') return 1" 0
error-wording | EVAL "redis.call('select',99)" 0
error-wording | EVAL "return redis.call('xadd','x','1-1','f','v')" 0
error-wording | EVAL "return redis.call('expire','s','abc')" 0
error-wording | EVAL "return redis.call('lset','nosuch',0,'x')" 0
= | EVALSHA abc 0
= | EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
= | SUBSCRIBE
= | PUBLISH a
= | UNSUBSCRIBE
= | DISCARD
= | EXEC
= | UNWATCH
= | WATCH
= | PING a b
= | ECHO
= | TIME a
= | DBSIZE a
= | FLUSHALL FOO
= | FLUSHDB FOO
= | LASTSAVE a
= | BGSAVE FOO
error-wording | CONFIG SET nosuch 1
error-wording | CONFIG SET maxmemory abc
error-wording | CONFIG SET port abc
!error | CONFIG SET maxmemory-policy foo
error-wording | CONFIG SET appendonly maybe
!error | CONFIG SET save abc
!error | CONFIG SET databases 3
error-wording | CONFIG SET hz
error-wording | CONFIG GET
= | CONFIG REWRITE
error-wording | CONFIG RESETSTAT a
= | ASKING
= | READONLY
`;
