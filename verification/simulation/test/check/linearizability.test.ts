/** The checker of histories: which replies fit an order of their commands, and which fit none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { violation, type Call } from '../../check/linearizability.js';
import type { Reply } from '../../clients/replies.js';

/** Calls of one client at one time are a pipeline: each call here has a client of its own. */
let clients = 0;
const call = (from: number, to: number, command: string, reply?: Reply): Call => ({
  client: `client ${clients++}`,
  args: command.split(' '),
  from,
  to,
  reply,
});

test('Concurrent increments in any order fit, the same value twice does not', () => {
  const one = call(0, 10, 'INCR k', 1);
  assert.equal(violation([one, call(1, 5, 'INCR k', 2)]), null);
  assert.equal(violation([call(0, 10, 'INCR k', 2), call(1, 5, 'INCR k', 1)]), null);
  assert.notEqual(violation([one, call(1, 5, 'INCR k', 1)]), null);
});

test('A read of a value that was replaced before the read began fits no order', () => {
  const writes = [call(0, 1, 'SET k a', '+OK'), call(2, 3, 'SET k b', '+OK')];
  assert.equal(violation([...writes, call(4, 5, 'GET k', '$b')]), null);
  assert.notEqual(violation([...writes, call(4, 5, 'GET k', '$a')]), null);
  assert.equal(violation([...writes, call(2.5, 5, 'GET k', '$a')]), null);
});

test('A command whose reply was lost takes effect late, or never, but not twice', () => {
  const lost = call(0, Infinity, 'RPUSH l x');
  assert.equal(violation([lost, call(5, 6, 'LLEN l', 0), call(7, 8, 'LPOP l', '$x')]), null);
  assert.equal(violation([lost, call(5, 6, 'LLEN l', 0)]), null);
  assert.notEqual(violation([lost, call(5, 6, 'LPOP l', '$x'), call(7, 8, 'LPOP l', '$x')]), null);
});

test('An element that two clients popped fits no order', () => {
  const push = call(0, 1, 'RPUSH l x y', 2);
  assert.equal(violation([push, call(2, 5, 'LPOP l', '$y'), call(2, 5, 'LPOP l', '$x')]), null);
  assert.notEqual(violation([push, call(2, 5, 'LPOP l', '$x'), call(2, 5, 'LPOP l', '$x')]), null);
});

test('The rest of a history is checked from each value that its beginning may have left', () => {
  const both = [call(0, 5, 'SET k a', '+OK'), call(0, 5, 'SET k b', '+OK')];
  for (const last of ['$a', '$b']) assert.equal(violation([...both, call(6, 7, 'GET k', last)]), null);
  assert.notEqual(violation([...both, call(6, 7, 'GET k', '$a'), call(8, 9, 'GET k', '$b')]), null);
});

test('Commands of one pipeline are in its order', () => {
  const pipeline = (command: string, reply: Reply): Call => ({ ...call(0, 9, command, reply), client: 'one' });
  const [push, pop] = [pipeline('RPUSH l x', 1), pipeline('LPOP l', null)];
  assert.notEqual(violation([push, pop]), null);
  assert.equal(violation([push, { ...pop, client: 'another' }]), null);
});

const exec = (from: number, to: number, client: string, commands: readonly string[], reply: Reply): Call => ({
  ...call(from, to, 'EXEC', reply),
  client,
  watches: true,
  queued: commands.map((command) => command.split(' ')),
});

test('Nothing comes between the commands of a transaction', () => {
  const both = exec(0, 9, 'a', ['INCR k', 'INCR k'], [1, 2]);
  assert.equal(violation([both, call(1, 8, 'GET k', '$2')]), null);
  assert.equal(violation([both, call(1, 8, 'GET k', null)]), null);
  assert.notEqual(violation([both, call(1, 8, 'GET k', '$1')]), null);
  assert.notEqual(violation([exec(0, 9, 'a', ['INCR k', 'INCR k'], [1, 3]), call(1, 8, 'INCR k', 2)]), null);
});

test('A command of several keys takes effect on all of them at one moment', () => {
  const set = call(0, 9, 'MSET a 1 b 1', '+OK');
  assert.equal(violation([set, call(1, 8, 'MGET a b', ['$1', '$1'])]), null);
  assert.notEqual(violation([set, call(1, 8, 'MGET a b', ['$1', null])]), null);
});

test('EXEC answers nil only where a watched key has changed', () => {
  const watch: Call = { ...call(0, 1, 'WATCH k', '+OK'), client: 'a' };
  const nil = exec(6, 7, 'a', ['SET k mine'], null);
  const ran = exec(6, 7, 'a', ['SET k mine'], ['+OK']);
  const change = call(2, 3, 'SET k other', '+OK');
  assert.equal(violation([watch, ran]), null);
  assert.notEqual(violation([watch, nil]), null);
  assert.equal(violation([watch, change, nil]), null);
  assert.notEqual(violation([watch, change, ran]), null);
  assert.notEqual(violation([watch, call(2, 3, 'GET k', null), nil]), null);
});

test('A pop that blocks takes effect once, at any moment until its reply', () => {
  const blocked = call(0, 100, 'BLPOP a b 5', ['$b', '$x']);
  assert.equal(violation([blocked, call(50, 60, 'RPUSH b x', 1), call(70, 80, 'LLEN b', 0)]), null);
  assert.notEqual(violation([blocked, call(110, 120, 'RPUSH b x', 1)]), null);
  assert.notEqual(violation([blocked, call(50, 60, 'RPUSH b x', 1), call(110, 111, 'LPOP b', '$x')]), null);
});

test('A pop that waits for two lists is served from the one that was filled, before what a BLMOVE makes of it', () => {
  const calls = [call(0, 100, 'BLMOVE b a LEFT LEFT 5', '$y'), call(10, 101, 'BLPOP a b 5', ['$b', '$x'])];
  assert.equal(violation([...calls, call(50, 60, 'LPUSH b x y', 2), call(110, 120, 'LRANGE a 0 -1', ['$y'])]), null);
  assert.notEqual(violation([...calls, call(50, 60, 'LPUSH b x y', 2), call(110, 120, 'LRANGE b 0 -1', ['$x'])]), null);
});

test('A random member is one that the set has, and is removed once it is popped', () => {
  const add = call(0, 1, 'SADD t a b', 2);
  assert.equal(violation([add, call(2, 3, 'SPOP t', '$b'), call(4, 5, 'SMEMBERS t', ['$a'])]), null);
  assert.notEqual(violation([add, call(2, 3, 'SPOP t', '$c')]), null);
  assert.notEqual(violation([add, call(2, 3, 'SPOP t', '$b'), call(4, 5, 'SISMEMBER t b', 1)]), null);
  // The reply was lost: it may be either.
  const lost = call(2, Infinity, 'SPOP t');
  for (const left of ['$a', '$b']) assert.equal(violation([add, lost, call(4, 5, 'SMEMBERS t', [left])]), null);
  assert.notEqual(violation([add, lost, call(4, 5, 'SCARD t', 0)]), null);
});

test('Members of a hash and of a set come in any order, elements of a sorted set in theirs', () => {
  const set = call(0, 1, 'HSET h f 1 g 2', 2);
  assert.equal(violation([set, call(2, 3, 'HGETALL h', ['$g', '$2', '$f', '$1'])]), null);
  assert.notEqual(violation([set, call(2, 3, 'HGETALL h', ['$g', '$1', '$f', '$2'])]), null);
  const add = call(0, 1, 'ZADD z 2 a 1 b', 2);
  assert.equal(violation([add, call(2, 3, 'ZRANGE z 0 -1 WITHSCORES', ['$b', '$1', '$a', '$2'])]), null);
  assert.notEqual(violation([add, call(2, 3, 'ZRANGE z 0 -1 WITHSCORES', ['$a', '$2', '$b', '$1'])]), null);
});

test('A group delivers each entry to one consumer, until it is claimed', () => {
  const begin = [
    call(0, 1, 'XADD x 1-0 f a', '$1-0'),
    call(2, 3, 'XGROUP CREATE x g 0 MKSTREAM', '+OK'),
    call(4, 5, 'XREADGROUP GROUP g alice COUNT 2 STREAMS x >', [['$x', [['$1-0', ['$f', '$a']]]]]),
  ];
  const readAgain = (consumer: string, reply: Reply): Call =>
    call(6, 7, `XREADGROUP GROUP g ${consumer} COUNT 2 STREAMS x >`, reply);
  assert.equal(violation([...begin, readAgain('bob', null)]), null);
  assert.notEqual(violation([...begin, readAgain('bob', [['$x', [['$1-0', ['$f', '$a']]]]])]), null);
  const claim = call(6, 7, 'XCLAIM x g bob 0 1-0 JUSTID', ['$1-0']);
  assert.equal(violation([...begin, claim, call(8, 9, 'XACK x g 1-0', 1), call(10, 11, 'XACK x g 1-0', 0)]), null);
  assert.notEqual(
    violation([...begin, call(8, 9, 'XACK x g 1-0', 1), call(10, 11, 'XCLAIM x g bob 0 1-0', ['$1-0'])]),
    null,
  );
});

test('An ID of the server is higher than the last, and a lost one ends what is known', () => {
  const first = call(0, 1, 'XADD x 5-0 f a', '$5-0');
  assert.equal(violation([first, call(2, 3, 'XADD x * f b', '$6-0')]), null);
  assert.notEqual(violation([first, call(2, 3, 'XADD x * f b', '$4-0')]), null);
  const lost = call(2, Infinity, 'XADD x * f b');
  assert.equal(violation([first, lost, call(4, 5, 'XLEN x', 7)]), null);
  assert.notEqual(violation([first, call(1.1, 1.2, 'XLEN x', 7), lost]), null);
});

test('A key expires after its TTL, not before, and an expired key stays expired', () => {
  const set = call(1_000, 1_010, 'SET e v PX 100', '+OK');
  assert.equal(violation([set, call(1_050, 1_051, 'GET e', '$v')]), null);
  assert.notEqual(violation([set, call(1_050, 1_051, 'GET e', null)]), null);
  assert.notEqual(violation([set, call(1_120, 1_121, 'GET e', '$v')]), null);
  assert.equal(violation([set, call(1_103, 1_104, 'GET e', '$v'), call(1_105, 1_106, 'GET e', null)]), null);
  assert.notEqual(violation([set, call(1_103, 1_104, 'GET e', null), call(1_105, 1_106, 'GET e', '$v')]), null);
  assert.equal(violation([set, call(1_050, 1_051, 'PTTL e', 55)]), null);
  assert.notEqual(violation([set, call(1_050, 1_051, 'PTTL e', 90)]), null);
});

test('A TTL stays with KEEPTTL and is removed by a plain SET', () => {
  const set = call(1_000, 1_001, 'SET e v PX 100', '+OK');
  const read = call(1_200, 1_201, 'GET e', '$w');
  assert.equal(violation([set, call(1_050, 1_051, 'SET e w', '+OK'), read]), null);
  assert.notEqual(violation([set, call(1_050, 1_051, 'SET e w KEEPTTL', '+OK'), read]), null);
});

test('Floats may be written in several ways, RESP3 may nest pairs', () => {
  const add = call(0, 1, 'ZADD z 0.1 a', 1);
  assert.equal(violation([add, call(2, 3, 'ZINCRBY z 0.2 a', '$0.30000000000000004')]), null);
  assert.equal(violation([add, call(2, 3, 'ZPOPMIN z 2', [['$a', '$0.10000000000000001']])]), null);
  assert.notEqual(violation([add, call(2, 3, 'ZPOPMIN z 2', [['$a', '$0.2']])]), null);
});
