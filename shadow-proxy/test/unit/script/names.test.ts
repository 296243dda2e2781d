/** What the reader of scripts takes names and calls to stand for, exactly. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readText } from '../../../src/script/text.js';
import { callsOf, isRepeated } from './shown.js';

type Row = readonly [text: string, calls: string | null, repeated: boolean];

function check(table: readonly Row[]): void {
  for (const [text, calls, repeated] of table) {
    assert.deepEqual([callsOf(text), isRepeated(text)], [calls, repeated], text);
  }
}

const del = (...args: readonly string[]): string => `redis.call('DEL', ${args.join(', ')})`;

test('a name stands for the only value that it is given', () => {
  const f = "local function f() return 'a' end";
  check([
    [`local a = 'a' ${del('a')}`, "del 'a'", true],
    [`local a = 'a' a = 'b' ${del('a')}`, 'del ?', true],
    [`local a ${del('a')}`, 'del ?', true],
    [`local a, b = KEYS[1] ${del('a', 'b')}`, 'del KEY ?', true],
    [`local a, b = 'a', 'b' ${del('b', 'a')}`, "del 'b' 'a'", true],
    [`local a = 'a', 'b' ${del('a')}`, "del 'a'", true],
    [`${f} local a, b, c = 'a', f() ${del('a', 'b', 'c')}`, "del 'a' ? ?", true],
    [`${f} local a, b = f(), 'b' ${del('a', 'b')}`, "del ? 'b'", true],
    [`local a, b, c = 'a', 'b' ${del('a', 'b', 'c')}`, "del 'a' 'b' ?", true],
    [`local a = KEYS[1] local b = a ${del('b')}`, 'del KEY', true],
    [`local a = 'a' do local a = 'b' end ${del('a')}`, "del 'a'", true],
    [`local a = 'a' do local a = 'b' ${del('a')} end`, "del 'b'", true],
    [`local a = 'a' do a = 'b' end ${del('a')}`, 'del ?', true],
    [`do local a = 'a' end ${del('a')}`, null, false],
  ]);
});

test('a hundred names that stand for names are followed', () => {
  const names = (many: number): string =>
    `local n0 = KEYS[1] ${Array.from({ length: many }, (_, i) => `local n${i + 1} = n${i}`).join(' ')}`;
  assert.equal(callsOf(`${names(99)} ${del('n99')}`), 'del KEY');
  assert.equal(callsOf(`${names(100)} ${del('n100')}`), 'del ?');
});

test('a name may stand for the call of commands', () => {
  check([
    [`local c = redis.call c('DEL', 'a')`, "del 'a'", true],
    [`local c = redis.pcall c('DEL', 'a')`, "del 'a'", false],
    [`local c, d = redis.call, redis.pcall d('DEL', 'a')`, "del 'a'", false],
    [`local c = 'a', redis.call`, null, false],
    [`local c = redis.pcall, redis.call`, null, false],
    [`local c = redis.call c = 1`, null, false],
    [`local c = redis.call return c`, null, false],
    [`local c = redis.call return c[1]`, null, false],
    [`local c = redis.call return c.a`, null, false],
    [`local c = redis.call return #c`, null, false],
    [`local c = redis.log c('DEL', 'a')`, '', false],
    [`local c = redis.call('GET', KEYS[1]) c('DEL', 'a')`, 'get KEY', false],
  ]);
});

test('the declared keys are those of the server while nobody else has them', () => {
  check([
    [`local x = KEYS[1] ${del('KEYS[1]')}`, 'del KEY', true],
    [`local x = #KEYS ${del('KEYS[1]')}`, 'del KEY', true],
    [`local x = KEYS.n ${del('KEYS[1]')}`, 'del KEY', true],
    [`for _, x in ipairs(KEYS) do end ${del('KEYS[1]')}`, 'del KEY', true],
    [`for _, x in ipairs(KEYS) do ${del('x')} end`, 'del KEY', true],
    [`for _, x in ipairs(ARGV) do ${del('x')} end`, 'del ?', true],
    [`for x in ipairs(KEYS) do ${del('x')} end`, 'del ?', true],
    [`for _, x, y in ipairs(KEYS) do ${del('y', 'x')} end`, 'del ? KEY', true],
    [`for _, x in ipairs(KEYS) do x = 'a' ${del('x')} end`, 'del ?', true],
    [`local t = KEYS ${del('KEYS[1]')}`, 'del ?', false],
    [`local t = ARGV ${del('ARGV[1]')}`, 'del ?', false],
    [`local t = KEYS ${del('ARGV[1]')}`, 'del ARGV1', false],
    [`local t = not KEYS ${del('KEYS[1]')}`, 'del ?', false],
    [`KEYS = {'a'} ${del('KEYS[1]')}`, 'del ?', true],
    [`ARGV = {'a'} ${del('ARGV[1]')}`, 'del ?', true],
    [`KEYS = {'a'} ${del('unpack(KEYS)')}`, 'del ? …', false],
    [`KEYS[1] = 'a' ${del('KEYS[1]')}`, 'del ?', false],
    [`KEYS.n = 'a' ${del('KEYS[1]')}`, 'del ?', false],
    [`local KEYS = {'a'} ${del('KEYS[1]')}`, 'del ?', true],
    [`local function f(KEYS) ${del('KEYS[1]')} end`, 'del ?', true],
  ]);
});

test('a global that is given a value is not the one of the server', () => {
  check([
    [`x = 1 ${del("'a'")}`, "del 'a'", false],
    [`constructor = 1 ${del("'a'")}`, "del 'a'", false],
    [`string = {} ${del("'a'")}`, null, false],
    [`redis = {} ${del("'a'")}`, null, false],
    [`unpack = 1 ${del("'a'")}`, null, false],
    [`local string string = {} ${del("'a'")}`, "del 'a'", true],
    [`local redis redis = {} ${del("'a'")}`, '', false],
    [`local x x = 1 ${del("'a'")}`, "del 'a'", true],
    [`local x, y x, y = 1, 2 ${del("'a'")}`, "del 'a'", true],
    [`local x x, string = 1, 2 ${del("'a'")}`, null, false],
  ]);
});

test('what is assigned, and the place that it is assigned to, may call commands', () => {
  const incr = "redis.call('INCR', KEYS[1])";
  check([
    [`local t = {} t.a = ${incr}`, 'incr KEY', true],
    [`local t = {} t[1], t[2] = ${incr}, ${incr}`, 'incr KEY, incr KEY', true],
    [`local t = {} t[${incr}] = 1`, 'incr KEY', true],
    [`local t = {} t[${incr}].a = 1`, 'incr KEY', true],
    [`local t = {} t.a[${incr}] = 1`, 'incr KEY', true],
    [`local t = {} t.a = 1 ${incr}`, 'incr KEY', true],
    [`string.a = 1 ${incr}`, 'incr KEY', false],
    [`redis.call = 1 ${incr}`, null, false],
  ]);
});

test('a function is called by the only name that it is given', () => {
  const incr = "redis.call('INCR', KEYS[1])";
  check([
    [`local function f() ${incr} end f()`, 'incr KEY', true],
    [`local f = function() ${incr} end f()`, 'incr KEY', true],
    [`local function f() ${incr} end f = function() end f()`, 'incr KEY', false],
    [`local f function f() ${incr} end f()`, 'incr KEY', false],
    [`local f f()`, '', false],
    [`local f = KEYS[1] f()`, '', false],
    [`local f = 1 local function g() f = g end f()`, '', false],
    [`local function f(g) g() end`, '', false],
    [`local f function f() ${incr} end`, 'incr KEY', true],
    [`local f function f() ${incr} end`, 'incr KEY', true],
    [`function f() ${incr} end`, 'incr KEY', false],
    [`function string() end ${incr}`, null, false],
    [`local function f(a) ${del('a')} end f('a')`, 'del ?', true],
    [`local function f(a) return f(a) end f('a')`, '', true],
    [`local function f(a, ...) ${incr} end`, 'incr KEY', false],
    [`local function f(...) return ... end`, '', false],
    [`local function f(...) ${del('...')} end`, 'del ? …', false],
    ['return ...', '', false],
  ]);
});

test('a function of a table is not followed, and has itself as a parameter only where it is a method', () => {
  check([
    [`local t = {} function t.f(a) ${del('a')} end`, 'del ?', false],
    [`local t = {} function t:f(a) ${del('a', 'self')} end`, 'del ? ?', false],
    [`local t = {} function t.f(a) ${del('self')} end`, null, false],
    [`local t = {f = function() end} t.f()`, '', false],
    [`local t = {f = function() end} t:f()`, '', false],
    [`local t = {f = function() end} t[1]()`, '', false],
    [`local t = {f = function() end} return t.f`, '', true],
    [`function string.f() end ${del("'a'")}`, "del 'a'", false],
  ]);
});
test('the condition of repeat knows the names of its body', () => {
  check([
    ["repeat local k = 'a' until redis.call('DEL', k)", "del 'a'", true],
    ["while redis.call('DEL', k) do local k = 'a' end", null, false],
  ]);
});

test('only what ipairs and gmatch give in turn is the same on both servers', () => {
  const t = 'local t = {}';
  check([
    ['for a in ipairs({}) do end', '', true],
    ['for a in ipairs(KEYS) do end', '', true],
    ["for a in string.gmatch('a', 'b') do end", '', true],
    ["for a in (ARGV[1]):gmatch('b') do end", '', true],
    ["for a, b in string.gmatch('a', 'b') do redis.call('DEL', a, b) end", 'del ? ?', true],
    ["for a in string.gmatch('a', 'b'), 1 do end", '', false],
    ["for a in string.find('a', 'b') do end", '', false],
    ['for a in pairs({}) do end', '', false],
    ["for a in tonumber('1') do end", '', false],
    [`${t} for a in t do end`, '', false],
    [`${t} for a in t.gmatch do end`, '', false],
    [`${t} for a in next, t do end`, '', false],
    ['for a in ipairs(KEYS, 1) do end', '', false],
    ["for _, a in ipairs(KEYS, 1) do redis.call('DEL', a) end", 'del ?', false],
    ["for _, a in ipairs(KEYS), 1 do redis.call('DEL', a) end", 'del ?', false],
    ["local ipairs = tonumber for _, a in ipairs(KEYS) do redis.call('DEL', a) end", 'del ?', false],
    ["local function gmatch() end for a in gmatch('a') do end", '', false],
    ['for a in ipairs() do end', '', false],
  ]);
});

test('a text is called for, and not only written, where it is one of the closed lists', () => {
  check([
    ['return string.format', '', true],
    ['return string.dump', '', false],
    ['return math.huge', '', true],
    ['return math.random', '', false],
    ['return table.concat', '', true],
    ['return table.sort', '', false],
    ['return redis.LOG_DEBUG', '', true],
    ['return redis.REPL_ALL', '', false],
    ['return redis.sha1hex', '', false],
    ['return redis.call', null, false],
    ['return redis.nosuch', null, false],
    ['return redis', null, false],
    ['return type', '', false],
    ['return os.clock()', '', false],
    ['return nosuch', null, false],
    ['return nosuch.a', null, false],
    ['return nosuch()', null, false],
    ['return string:len()', null, false],
    ["redis:call('DEL', 'a')", null, false],
    ["redis['call']('DEL', 'a')", null, false],
    ["('a').rep('a', 2)", '', false],
    ["return ('a'):upper()", '', true],
    ["return ('a'):dump()", '', false],
    ["return string['upper']('a')", '', false],
    ['return 2 ^ 2', '', false],
  ]);
});

test('functions of the server are repeated as far as they are known to do the same', () => {
  check([
    ["return tonumber('1')", '', true],
    ["return type('a')", '', true],
    ["return assert('a')", '', true],
    ["return select(1, 'a')", '', true],
    ["error('a')", '', true],
    ["return tostring('a')", '', true],
    ['return tostring({})', '', false],
    ['return tostring()', '', false],
    ['return tostring(1, 2)', '', false],
    ['return unpack(KEYS)', '', true],
    ['return unpack(ARGV, 1, 2)', '', true],
    ['return unpack()', '', false],
    ['return unpack({})', '', false],
    ['return unpack(string)', '', false],
    ["return pcall('a')", '', false],
    ["return collectgarbage('count')", '', false],
    ["return next({}, 'a')", '', false],
  ]);
});

test('a function that is given a text or a table without brackets is not repeated', () => {
  check([
    ["return type'a'", '', false],
    ['return type{}', '', false],
    ["return string.upper'a'", '', false],
    ["redis.call'PING'", null, false],
    ["redis.call{'PING'}", null, false],
    ["nosuch'a'", null, false],
    ['nosuch{}', null, false],
    ['redis.register_function{}', '', false],
  ]);
});

test('a reply whose form depends on the server may not be used', () => {
  const zadd = "redis.call('ZADD', KEYS[1], 1, 'a')";
  check([
    [zadd, "zadd KEY ? 'a'", true],
    [`return ${zadd}`, "zadd KEY ? 'a'", false],
    [`local a = ${zadd}`, "zadd KEY ? 'a'", false],
    [`if ${zadd} then end`, "zadd KEY ? 'a'", false],
    ["if redis.call('SET', 'a', '1', 'NX') then end", "set 'a' '1' 'NX'", true],
    ["if redis.call('SET', 'a', '1', 'NX') then end", "set 'a' '1' 'NX'", true],
    ["redis.call('PING')", 'ping', false],
    ["redis.call('NOSUCH')", 'nosuch', false],
  ]);
});

test('the last argument of a call may stand for any number of them', () => {
  const f = 'local function f() end';
  const sadd = (...args: readonly string[]): string => `redis.call('SADD', KEYS[1], ${args.join(', ')})`;
  check([
    [sadd("'a'"), "sadd KEY 'a'", true],
    [sadd('unpack(ARGV)'), 'sadd KEY ? …', true],
    [sadd("'a'", 'unpack(ARGV)'), "sadd KEY 'a' ? …", true],
    [sadd('unpack(ARGV)', "'a'"), "sadd KEY ? 'a'", true],
    [sadd('unpack()'), 'sadd KEY ? …', false],
    [sadd('(unpack(ARGV))'), 'sadd KEY ? …', true],
    [`${f} ${sadd('f()')}`, 'sadd KEY ? …', true],
    [`${f} ${sadd('(f())')}`, 'sadd KEY ? …', true],
    [`${f} ${sadd('f()', "'a'")}`, "sadd KEY ? 'a'", true],
    [`${f} ${sadd("'a' .. f()")}`, 'sadd KEY ?', true],
    [sadd("tonumber('1')"), 'sadd KEY ?', true],
    [sadd("string.upper('a')"), 'sadd KEY ?', true],
    [sadd("string.gsub('a', 'b', 'c')"), 'sadd KEY ? …', true],
    [sadd("string.find('a', 'b')"), 'sadd KEY ? …', true],
    [sadd("string.match('a', 'b')"), 'sadd KEY ? …', true],
    [sadd("string.byte('a', 1, 2)"), 'sadd KEY ? …', true],
    [sadd("('a'):upper()"), 'sadd KEY ? …', true],
    [sadd("type'a'"), 'sadd KEY ? …', false],
    [sadd('type{}'), 'sadd KEY ? …', false],
    [sadd("redis.call('GET', 'a')"), "sadd KEY ?, get 'a'", true],
    [sadd("redis.call('LRANGE', 'a', 0, 1)"), "sadd KEY ? …, lrange 'a' ? ?", true],
    ["redis.call('GET', unpack(KEYS))", 'get KEY …', false],
    ["redis.call('GET', (unpack(KEYS)))", 'get KEY …', false],
    ["redis.call('SET', unpack(KEYS), 'a')", "set KEY 'a'", true],
    [`${f} redis.call('SET', KEYS[1], f())`, 'set KEY ? …', false],
    [`${f} redis.call('SET', KEYS[1], (f()))`, 'set KEY ? …', false],
    ["redis.call('SET', KEYS[1], string.upper('a'))", 'set KEY ?', true],
    ["redis.call('SET', KEYS[1], string.gsub('a', 'b', 'c'))", 'set KEY ? …', false],
  ]);
});

test('a command whose name is not written out may be any, and what it is given is looked at all the same', () => {
  const unknown = (text: string): unknown => readText(text, false);
  assert.deepEqual(unknown('redis.call()'), { calls: null, repeatable: false, writesNumbers: false });
  assert.deepEqual(unknown('redis.call(ARGV[1])'), { calls: null, repeatable: false, writesNumbers: false });
  assert.deepEqual(unknown("redis.call(redis.call('SET', KEYS[1], 1 / 3))"), {
    calls: null,
    repeatable: false,
    writesNumbers: true,
  });
});
