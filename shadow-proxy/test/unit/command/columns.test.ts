/** The columns of the table of commands: which commands have what. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countingKind, watchedAs, byKind } from '../../../src/command/counting.js';
import { KINDS } from '../../../src/command/counting-kind.js';
import { handlingOf } from '../../../src/command/policy.js';
import type { Row } from '../../../src/command/row.js';
import { namesInRows, rowOf } from '../../../src/command/rows.js';

const names = [...namesInRows()].sort();
/** The names of the commands by what `of` says of their rows; null: it says nothing. */
function column(of: (row: Row) => string | null | undefined): Readonly<Record<string, string>> {
  const found: Record<string, string[]> = {};
  for (const name of names) {
    const value = of(rowOf(name)!) ?? null;
    if (value !== null) (found[value] ??= []).push(name);
  }
  return Object.fromEntries(Object.entries(found).map(([value, of]) => [value, of.join(' ')]));
}

test('columns that a command has or has not', () => {
  const has = (name: keyof Row): string => names.filter((each) => rowOf(each)![name] === true).join(' ');
  assert.equal(has('movesTtl'), 'copy move rename renamenx');
  assert.equal(has('leavesDatabase'), 'copy move select swapdb');
  assert.equal(has('replaces'), 'del flushall flushdb getdel mset psetex restore setex unlink');
  assert.equal(has('splittable'), 'del exists mget touch unlink');
  assert.equal(has('asksForAllKeys'), 'dbsize keys randomkey scan');
  assert.equal(has('namedByReply'), 'blmpop blpop brpop bzmpop bzpopmax bzpopmin lmpop xreadgroup zmpop');
  assert.equal(
    has('takesOnly'),
    'lmpop lpop lrem ltrim rpop xack xackdel xdelex xreadgroup zmpop zpopmax zpopmin zrem',
  );
  assert.equal(has('changesAllKeys'), 'flushall flushdb swapdb');
});

test('columns that a function fills', () => {
  const has = (name: keyof Row): string => names.filter((each) => rowOf(each)![name] !== undefined).join(' ');
  assert.equal(has('readKeys'), 'bitfield georadius georadiusbymember migrate set sort sort_ro xread xreadgroup');
  assert.equal(
    has('effect'),
    'blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin config|set delex delifeq expire expireat georadius georadiusbymember geosearchstore getdel hexpire hexpireat hgetdel hgetex hincrbyfloat hpersist hpexpire hpexpireat hsetex incrbyfloat lmove lmpop lpop msetex pexpire pexpireat publish restore rpop rpoplpush set sort spop spublish xackdel xadd xautoclaim xcfgset xclaim xdelex xgroup|create xgroup|setid xidmprecord xreadgroup xsetid xtrim zmpop zpopmax zpopmin',
  );
  assert.equal(has('relativeTtl'), 'expire getex pexpire psetex restore set setex');
  assert.equal(has('absoluteTtl'), 'expireat getex pexpireat set');
  assert.equal(has('keepsTtl'), 'incrbyfloat set');
  assert.equal(has('keepsTtlBlindly'), 'set');
});

test('how each command blocks', () => {
  assert.deepEqual(
    column(({ blocking }) => blocking && `${blocking.timeout} ${blocking.unit}`),
    {
      'last 1000': 'blmove blpop brpop brpoplpush bzpopmax bzpopmin',
      '1 1000': 'blmpop bzmpop',
      '5 1000': 'blmovem',
      'last 1': 'wait waitaof',
      'option 1': 'xread xreadgroup',
    },
  );
});

test('what each key is used for, where the server does not say it', () => {
  assert.deepEqual(
    column(({ access }) => access?.join(' ')),
    {
      '1': 'pfcount',
      '3': 'restore',
      '1 3': 'copy',
      '2 1': 'sinterstore',
    },
  );
});

test('what commands count by', () => {
  assert.deepEqual(
    column(({ counts }) => counts),
    {
      append: 'append setrange',
      increment: 'bitfield decr decrby hincrby incr incrby zincrby',
      list: 'blmove blmpop blpop brpop brpoplpush linsert lmove lmpop lpop lpush lpushx lrem lset ltrim rpop rpoplpush rpush rpushx',
      script: 'eval evalsha fcall',
      float: 'hincrbyfloat incrbyfloat',
      lock: 'hsetnx msetnx setnx',
      stream: 'xack xackdel xadd xautoclaim xclaim xgroup|create xreadgroup',
      window: 'zremrangebyrank zremrangebyscore',
    },
  );
});

test('what a repeated script may do with each command', () => {
  assert.deepEqual(
    column(({ repeatable: it }) => it && `${it.arguments} ${it.reply} ${JSON.stringify(it.options)}`),
    {
      'kv number {}': 'append hexists hstrlen setnx sismember',
      'k number {}': 'decr hlen incr llen persist scard strlen zcard',
      'kn number {}': 'decrby expire expireat getbit incrby pexpire pexpireat',
      '(k) number {}': 'del exists sdiffstore sinterstore sunionstore unlink',
      'k text {}': 'get getdel lpop rpop',
      'knn text {}': 'getrange',
      'kv text {}': 'getset hget zrank zrevrank',
      'k(v) number {}': 'hdel lpush lpushx rpush rpushx sadd srem zrem',
      'kvn number {}': 'hincrby',
      'k(v) table {}': 'hmget smismember',
      'k(vv) table {}': 'hmset',
      'k(vv) number {}': 'hset',
      'kvv number {}': 'hsetnx zlexcount zremrangebylex',
      'kn text {}': 'lindex',
      'kvvv number {}': 'linsert',
      'kkvv text {}': 'lmove',
      'knn table {}': 'lrange ltrim zrange zrangebyscore zrevrange zrevrangebyscore',
      'knv number {}': 'lrem setrange',
      'knv table {}': 'lset psetex setex',
      '(k) table {}': 'mget',
      '(kv) table {}': 'mset',
      'kk table {}': 'rename',
      'kk number {}': 'renamenx',
      'kk text {}': 'rpoplpush',
      'kvx table {"ex":1,"px":1,"nx":0,"xx":0}': 'set',
      'knn number {}': 'setbit zcount zremrangebyrank zremrangebyscore',
      'kkv number {}': 'smove',
      'k table {}': 'type',
      'kx(nv) null {"nx":0,"xx":0,"ch":0,"gt":0,"lt":0}': 'zadd',
      'knv null {}': 'zincrby',
      'k null {}': 'zpopmax zpopmin',
    },
  );
});

test('from how many arguments on, with what question, an effect is asked for', () => {
  assert.deepEqual(
    column(({ effect: it }) => it && `${it.least} ${it.probe !== null} ${it.ofWoken !== null}`),
    {
      '0 false false':
        'blmove blmpop brpoplpush bzmpop config|set delex delifeq geosearchstore getdel hexpire hexpireat hgetdel hgetex hincrbyfloat hpersist hpexpire hpexpireat hsetex incrbyfloat lmove lmpop lpop msetex publish restore rpop rpoplpush spop spublish xackdel xautoclaim xcfgset xclaim xdelex xidmprecord zmpop zpopmax zpopmin',
      '0 false true': 'blpop brpop bzpopmax bzpopmin',
      '4 false false': 'expire expireat pexpire pexpireat set xsetid',
      '8 false false': 'georadius',
      '7 false false': 'georadiusbymember xreadgroup',
      '6 false false': 'sort xgroup|create xgroup|setid',
      '0 true false': 'xadd xtrim',
    },
  );
});

/** Names of the rules, and of commands that no rule names. */
const HANDLED = {
  authority:
    'acl|cat acl|dryrun acl|genpass acl|getuser acl|list acl|log acl|users acl|whoami bgrewriteaof bgsave client|getredir client|trackinginfo config|get config|resetstat dbsize debug echo function|dump function|list function|stats info keys lastsave lolwut module|list pfselftest ping randomkey role save scan script|exists time wait waitaof',
  refused:
    'acl|deluser acl|load acl|save acl|setuser client|caching client|pause client|tracking client|unpause config|rewrite expdel expiremember expirememberat failover keydb.cron keydb.hrename keydb.mexists keydb.mvccrestore keydb.nhget keydb.nhset lfence migrate module|load module|loadex module|unload monitor pexpirememberat psync replconf replicaof replping restore-asking rreplay script|debug shutdown slaveof stralgo sync',
  local:
    'auth client|getname client|id client|info client|kill client|list client|no-evict client|no-touch client|reply client|setinfo client|setname client|unblock discard exec function|kill hello host: multi post quit reset script|kill select unwatch watch',
  broadcast: 'config|set script|load',
  script: 'eval eval_ro evalsha evalsha_ro fcall fcall_ro',
  exclusive: 'flushall flushdb function|delete function|flush function|load function|restore move script|flush swapdb',
  keyed: 'memory|usage pfdebug',
  subscribe: 'psubscribe punsubscribe ssubscribe subscribe sunsubscribe unsubscribe',
  publish: 'publish spublish',
} as const;

test('what the proxy does with each command', () => {
  for (const [handling, names] of Object.entries(HANDLED))
    for (const name of names.split(' ')) assert.equal(handlingOf(name, false, false), handling, name);
  assert.equal(handlingOf('get', true, false), 'keyed');
  assert.equal(handlingOf('object', false, true), 'authority', 'a container explains its subcommands');
  assert.equal(handlingOf('cluster|meet', false, false), 'refused', 'by the rule for all subcommands');
  assert.equal(handlingOf('config|get', false, false), 'authority');
  assert.equal(handlingOf('client|help', false, false), 'authority');
  assert.equal(handlingOf('help', true, false), 'keyed');
  assert.throws(() => handlingOf('nosuch', false, false), /no rule for nosuch/);
  assert.throws(() => handlingOf('object|nosuch', false, false), /no rule for object\|nosuch/);
});

test('commands are counted by their kinds, SET and GET only where they are looked at', () => {
  assert.deepEqual(['incr', 'setnx', 'get', 'set'].map(countingKind), ['increment', 'lock', null, null]);
  assert.deepEqual(['incr', 'set', 'get', 'del', 'nosuch'].map(watchedAs), [
    KINDS.indexOf('increment'),
    KINDS.indexOf('rewrite'),
    KINDS.length,
    -1,
    -1,
  ]);
  assert.deepEqual(byKind({ incr: 2, decr: 1, setnx: 0, get: 5, append: 1 }), {
    increment: { incr: 2, decr: 1 },
    append: { append: 1 },
  });
});
