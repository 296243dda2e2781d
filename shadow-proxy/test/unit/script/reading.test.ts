/** What `readText` proves of Lua texts, one construct of the language at a time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mentionsDatabases, NOT_UNDERSTOOD, readText, tooManyFrom, type Reading } from '../../../src/script/text.js';

const script = (text: string): Reading => readText(text, false);
/** What the names of all arguments of the first call are; undefined where the calls are unknown. */
const names = (text: string, isLibrary = false) => readText(text, isLibrary).calls?.[0]?.names;
const SET = "redis.call('SET', KEYS[1], 1)";

/** Texts of one kind; each is repeatable or none is. */
function allAre(repeatable: boolean, texts: readonly string[]): void {
  for (const text of texts) assert.equal(script(text).repeatable, repeatable, text);
}

test('statements: what they hold is read, in every branch and loop', () => {
  // The call that cannot be repeated is found wherever it stands.
  const hidden = "redis.call('TIME')";
  for (const around of [
    (inner: string) => `local x = ${inner}`,
    (inner: string) => `local x x = ${inner}`,
    (inner: string) => inner,
    (inner: string) => `return ${inner}`,
    (inner: string) => `return 1, ${inner}`,
    (inner: string) => `if ${inner} then end`,
    (inner: string) => `if 1 then ${inner} end`,
    (inner: string) => `if 1 then elseif ${inner} then end`,
    (inner: string) => `if 1 then elseif 2 then ${inner} end`,
    (inner: string) => `if 1 then else ${inner} end`,
    (inner: string) => `while ${inner} do end`,
    (inner: string) => `while true do ${inner} break end`,
    (inner: string) => `repeat until ${inner}`,
    (inner: string) => `repeat ${inner} until true`,
    (inner: string) => `do ${inner} end`,
    (inner: string) => `for i = ${inner}, 2 do end`,
    (inner: string) => `for i = 1, ${inner} do end`,
    (inner: string) => `for i = 1, 2, ${inner} do end`,
    (inner: string) => `for i = 1, 2 do ${inner} end`,
    (inner: string) => `for _, v in ipairs(${inner}) do end`,
    (inner: string) => `for _, v in ipairs(KEYS) do ${inner} end`,
    (inner: string) => `for w in string.gmatch('a', ${inner}) do end`,
    (inner: string) => `local function f() ${inner} end`,
    (inner: string) => `local f = function() ${inner} end`,
    (inner: string) => `local t = { ${inner} }`,
    (inner: string) => `local t = { a = ${inner} }`,
    (inner: string) => `local t = { [${inner}] = 1 }`,
    (inner: string) => `local t = {} t[${inner}] = 1`,
    (inner: string) => `local x = 1 and ${inner}`,
    (inner: string) => `local x = ${inner} or 1`,
    (inner: string) => `local x = 1 .. ${inner}`,
    (inner: string) => `local x = ${inner} + 1`,
    (inner: string) => `local x = not ${inner}`,
    (inner: string) => `local x = #${inner}`,
    (inner: string) => `local t = {} local x = t[${inner}]`,
    (inner: string) => `local x = (${inner})[1]`,
    (inner: string) => `local x = (${inner}).ok`,
    (inner: string) => `local x = tonumber(${inner})`,
    (inner: string) => `local x = string.len(${inner})`,
    (inner: string) => `redis.call('DEL', ${inner})`,
  ]) {
    assert.deepEqual(
      [script(around(hidden)).repeatable, script(around(hidden)).calls?.some(({ name }) => name === 'time')],
      [false, true],
      around(hidden),
    );
    const fine = around("redis.call('LRANGE', KEYS[1], 0, 1)");
    assert.equal(script(fine).repeatable, true, fine);
  }
});

test('statements that end nothing and begin nothing are repeatable', () => {
  allAre(true, [
    '',
    'return',
    'do end',
    'local x',
    'while true do break end',
    'repeat local done = 1 until done == 1',
    'local i = 0 while i < 3 do i = i + 1 end',
    'for i = 3, 1, -1 do end',
    "for w in string.gmatch('a b', '%a') do end",
    "for w in ('a b'):gmatch('%a') do end",
    'local function f() return 1 end',
    'local function f(a, b) return a end return f(1, 2)',
    'local f = function(a) return a end return f(1)',
    'local t = {1, 2, a = 3, [4] = 5} t.a = 6 t[1] = 7 return #t',
  ]);
});

test('loops over anything but a list or the matches of a text are not repeatable', () => {
  allAre(false, [
    'for k in pairs({}) do end',
    'for k, v in next, {} do end',
    'for _, v in ipairs({}, {}) do end',
    'local f for x in f do end',
    'for x in (function() end) do end',
    "for w in string.match('a', 'a') do end",
    'local ipairs = function() end for _, v in ipairs({}) do end',
  ]);
});

test('a global that is given a value, three dots and a method of its own are not repeatable', () => {
  allAre(false, [
    'x = 1',
    'function f() end',
    'local t = {} function t.f() end',
    'local t = {} function t:f() end',
    'local function f(...) end',
    'local function f(...) return ... end',
    'local t = {...}',
    "tostring'x'",
    "local f = function() end f'x'",
    'local f = function() end f{}',
    'local t = {} t.f()',
    'local t = {} t:f()',
    "local s = 'x' s:dump()",
    'getfenv()',
    'local x = _G',
    'local x = 2 ^ 2',
    'local x = math.random()',
    'math.random = 1',
    'local x = string',
    'local f = tostring',
    'local x = redis.sha1hex(1)',
    "redis.pcall('GET', KEYS[1])",
  ]);
  // What else the name may be called is unknown, too.
  for (const text of [
    'redis = 1',
    'KEYS.x = 1 tostring = 1',
    'string = {}',
    'redis.setresp = 1 redis.other()',
    'other()',
  ])
    assert.equal(script(text).calls === null || !script(text).repeatable, true, text);
  assert.equal(script('redis = 1').calls, null);
  assert.equal(script('string = {}').calls, null);
  assert.equal(script('x = 1').calls?.length, 0);
  assert.equal(script('other()').calls, null);
  assert.equal(script('redis.other()').calls, null);
  assert.equal(script("redis:call('GET', 'x')").calls, null);
  assert.equal(script('return os.time()').calls?.length, 0);
  assert.equal(script('return debug.getinfo(1)').calls, null);
});

test('functions: the one value that a name was declared with is called', () => {
  allAre(true, ['local f = function() return 1 end f()', 'local function f() end f() f()']);
  allAre(false, [
    'local f = function() end f = function() end f()',
    'local f f()',
    'local f = 1 f()',
    'local f = tostring f(1)',
    'local function f() end f = nil f()',
    'local t = {f = function() end} t.f()',
    'local f, g = (function() return 1 end)() g()',
  ]);
});

test('tostring takes one value, which is no table and no function', () => {
  for (const value of [
    "'x'",
    '1',
    'true',
    'nil',
    'not 1',
    '-1',
    '#KEYS',
    "'a' .. 1",
    '1 + 1',
    '3 - 1',
    '2 * 2',
    '1 / 2',
    '5 % 2',
    '1 == 1',
    '1 ~= 2',
    '1 < 2',
    "1 and 'x'",
    'nil or 1',
    'KEYS[1]',
    'ARGV[1]',
    "tonumber('1')",
    'type({})',
    'tostring(1)',
    "redis.call('GET', KEYS[1])",
    "redis.call('INCR', KEYS[1])",
    'math.floor(1.5)',
    'math.huge and math.max(1, 2)',
    "string.len('x')",
    "string.byte('x')",
    "string.find('x', 'x')",
    "string.match('x', 'x')",
    "string.sub('x', 1)",
    "string.format('%d', 1)",
    "table.concat({}, ',')",
    'table.getn({})',
  ].filter((value) => !value.startsWith('math.huge')))
    assert.equal(script(`local x = tostring(${value})`).repeatable, true, value);
  for (const value of [
    '{}',
    'function() end',
    '1 and {}',
    '{} or 1',
    'KEYS',
    'x',
    "redis.call('LRANGE', KEYS[1], 0, 1)",
    "redis.call('MGET', KEYS[1])",
    "redis.call('ZADD', KEYS[1], 1, 'm')",
    'redis.call(KEYS[1])',
    "string.gmatch('x', 'x')",
    'table.remove({})',
    "cjson.decode('1')",
    'os.time()',
    "redis.status_reply('x')",
    '({})[1]',
    "('x'):len()",
    '(function() end)()',
    'select(1, {})',
  ])
    assert.equal(script(`local x = tostring(${value})`).repeatable, false, value);
  allAre(false, ['local x = tostring()', 'local x = tostring(1, 2)']);
});

test('a name has the kind of the value that it is declared with, as long as it is given no other', () => {
  allAre(true, [
    'local a = 1 local x = tostring(a)',
    'local a = 1 local b = a local x = tostring(b)',
    'for i = 1, 2 do local x = tostring(i) end',
    'for _, key in ipairs(KEYS) do local x = tostring(key) end',
    'for _, arg in ipairs(ARGV) do local x = tostring(arg) end',
    "local call = redis.call local x = tostring(call('GET', KEYS[1]))",
  ]);
  allAre(false, [
    'local a = {} local x = tostring(a)',
    'local a local x = tostring(a)',
    'local a = 1 a = {} local x = tostring(a)',
    'local b = {} local a = 1 a = b local x = tostring(a)',
    'for i, v in ipairs({}) do local x = tostring(i) end',
    'for _, v in ipairs({{}}) do local x = tostring(v) end',
    'local t = {{}} for _, v in ipairs(t) do local x = tostring(v) end',
    'local function f(a) local x = tostring(a) end f({})',
    'local a, b = (function() return 1, {} end)() local x = tostring(b)',
    "local call = redis.call local x = tostring(call('LRANGE', KEYS[1], 0, 1))",
    'KEYS = {{}} local x = tostring(KEYS[1])',
    'table.insert(ARGV, {}) local x = tostring(ARGV[2])',
  ]);
  // A chain of names that is too long to follow is not followed.
  const chain = (length: number): string =>
    `local a0 = 1 ${Array.from({ length }, (_, i) => `local a${i + 1} = a${i}`).join(' ')} local x = tostring(a${length})`;
  assert.equal(script(chain(50)).repeatable, true);
  assert.equal(script(chain(150)).repeatable, false);
});

test('numbers are compared, texts are not: the order of texts is that of the locale', () => {
  for (const operator of ['<', '<=', '>', '>=']) {
    allAre(true, [
      `local x = 1 ${operator} 2`,
      `local x = KEYS[1] ${operator} 2`,
      `local x = #KEYS ${operator} KEYS[1]`,
    ]);
    allAre(false, [`local x = KEYS[1] ${operator} KEYS[2]`, `local x = 'a' ${operator} 'b'`]);
  }
  allAre(true, ["local x = 'a' == 'b'", "local x = KEYS[1] ~= 'b'"]);
});

test('unpack takes the declared keys or the arguments', () => {
  allAre(true, ["redis.call('DEL', unpack(KEYS))", "redis.call('RPUSH', KEYS[1], unpack(ARGV))"]);
  allAre(false, [
    "redis.call('DEL', unpack({'a'}))",
    "local t = {'a'} redis.call('DEL', unpack(t))",
    "KEYS[1] = 'a' table.insert(KEYS, 'b') redis.call('DEL', unpack(KEYS))",
    "local k = KEYS redis.call('DEL', unpack(k))",
    "redis.call('DEL', unpack())",
    "redis.call('DEL', unpack(f()))",
    "redis.call('SET', unpack(ARGV))",
  ]);
});

test('a last argument that may stand for several values is open', () => {
  const open = (argument: string): boolean | undefined => script(`redis.call('DEL', ${argument})`).calls?.[0].open;
  for (const argument of [
    'unpack(KEYS)',
    // Parentheses leave one value, but the syntax tree does not show them.
    '(unpack(KEYS))',
    '...',
    'f()',
    "redis.call('LRANGE', KEYS[1], 0, 1)",
    "string.byte('x', 1, 2)",
    "string.find('x', 'x')",
    "string.match('x', '(x)(y)')",
    "string.gsub('x', 'x', 'y')",
    'select(1, 2)',
  ])
    // A call of an unknown function hides which commands are called at all.
    assert.equal(argument === 'f()' ? true : open(argument), true, argument);
  for (const argument of [
    'KEYS[1]',
    "'x'",
    'tostring(1)',
    'tonumber(KEYS[1])',
    "redis.call('GET', KEYS[1])",
    "redis.call('INCR', KEYS[1])",
    "string.len('x')",
    "string.sub('x', 1)",
    'math.floor(1)',
    "table.concat(KEYS, ',')",
  ])
    assert.equal(open(argument), false, argument);
  assert.equal(script("redis.call('PING')").calls?.[0].open, false);
});

test('calls: name and subcommand in lower case, and what each argument names', () => {
  assert.deepEqual(script("redis.call('Set', 'k', 'V')").calls, [
    { name: 'set', subcommand: 'k', names: [{ text: 'k' }, { text: 'V' }], open: false },
  ]);
  assert.deepEqual(script('redis.call("XGROUP", "CREATE", KEYS[1], ARGV[2], ARGV[1.5], ARGV[0], #KEYS)').calls, [
    {
      name: 'xgroup',
      subcommand: 'create',
      names: [{ text: 'CREATE' }, 'declared', { argument: 2 }, null, null, null],
      open: false,
    },
  ]);
  assert.deepEqual(
    script("redis.call('GET', KEYS[1]) redis.pcall('DEL', KEYS[2])").calls?.map(({ name }) => name),
    ['get', 'del'],
  );
  // The name of the command is unknown, so it may be any.
  for (const text of ['redis.call(KEYS[1])', 'redis.call()', "redis.call('GE' .. 'T', 'x')", "redis.call'GET'"])
    assert.equal(script(text).calls, null, text);
});

test('names of keys: what a name stands for, where it stands for nothing else', () => {
  for (const [text, expected] of [
    ["local k = 'a' redis.call('GET', k)", { text: 'a' }],
    ["local k = KEYS[1] redis.call('GET', k)", 'declared'],
    ["local k = KEYS[ARGV[1]] redis.call('GET', k)", 'declared'],
    ["local k = ARGV[3] redis.call('GET', k)", { argument: 3 }],
    ["local k, l = 'a', 'b' redis.call('GET', l)", { text: 'b' }],
    ["local a = 'x' local k = a redis.call('GET', k)", { text: 'x' }],
    ["for _, k in ipairs(KEYS) do redis.call('GET', k) end", 'declared'],
    ["for i = 1, #KEYS do redis.call('GET', KEYS[i]) end", 'declared'],
    ["redis.call('DEL', unpack(KEYS))", 'declared'],
    ["redis.call('DEL', unpack(KEYS, 2))", 'declared'],
    ["for _, k in ipairs(ARGV) do redis.call('GET', k) end", null],
    ["for k in ipairs(KEYS) do redis.call('GET', k) end", null],
    ["local k redis.call('GET', k)", null],
    ["local k = 'a' k = 'b' redis.call('GET', k)", null],
    ["redis.call('DEL', unpack(ARGV))", null],
    ["redis.call('DEL', unpack({'a'}))", null],
    ["redis.call('GET', ARGV[KEYS[1]])", null],
    ["redis.call('GET', ARGV[-1])", null],
    ["redis.call('GET', 1)", null],
    ["redis.call('GET', 'a' .. 'b')", null],
    ["redis.call('GET', ({'a'})[1])", null],
    ["redis.call('GET', 'a\\\r\nb')", null],
    ["local k = 'a' do local k = KEYS[1] end redis.call('GET', k)", { text: 'a' }],
    ["local k = 'a' do local k = KEYS[1] redis.call('GET', k) end", 'declared'],
    ["local k = 'a' local function f(k) redis.call('GET', k) end", null],
    ["local k = 'a' local f = function() redis.call('GET', k) end", { text: 'a' }],
    ["local k = KEYS local l = k[1] redis.call('GET', l)", null],
  ] as const)
    assert.deepEqual(names(text)?.[0], expected, text);
  const chain = (length: number): string =>
    `local a0 = 'k' ${Array.from({ length }, (_, i) => `local a${i + 1} = a${i}`).join(' ')} redis.call('GET', a${length})`;
  assert.deepEqual(names(chain(50)), [{ text: 'k' }]);
  assert.deepEqual(names(chain(150)), [null]);
});

test('a second name for redis.call calls commands, until it is given another value', () => {
  assert.deepEqual(
    script("local call = redis.call call('GET', 'x')").calls?.map(({ name }) => name),
    ['get'],
  );
  allAre(true, ["local call = redis.call call('GET', KEYS[1])"]);
  allAre(false, ["local call = redis.pcall call('GET', KEYS[1])"]);
  assert.deepEqual(
    script("local call = redis.pcall call('GET', 'x')").calls?.map(({ name }) => name),
    ['get'],
  );
  for (const text of [
    "local call = redis.call call = print call('GET', 'x')",
    "local call = redis.call local c = call c('GET', 'x')",
    'local call = redis.call local t = {call}',
    'return redis.call',
    'local x = 1, redis.call',
    'local call call = redis.call',
  ])
    assert.equal(script(text).calls, null, text);
});

test('libraries: only what they register has the declared keys, and none is repeatable', () => {
  const library = (code: string) => names(`#!lua name=l\n${code}`, true)?.[0];
  const get = "redis.call('GET', k[1])";
  for (const [code, expected] of [
    [`redis.register_function('f', function(k) ${get} end)`, 'declared'],
    [`redis.register_function('f', function(a, k) ${get} end)`, { argument: 1 }],
    [`redis.register_function('f', function(a, b, k) ${get} end)`, null],
    [`redis.register_function{function_name='f', callback=function(k) ${get} end}`, 'declared'],
    [`redis.register_function({function_name='f', callback=function(k) ${get} end})`, 'declared'],
    [`redis.register_function({function_name='f', other=function(k) ${get} end})`, null],
    [`local function g(k) ${get} end redis.register_function('f', g)`, 'declared'],
    [`local g = function(k) ${get} end redis.register_function('f', g)`, 'declared'],
    [`local function g(k) ${get} end redis.register_function('f', g) g({})`, null],
    [`local function g(k) ${get} end redis.register_function('f', g) g = nil`, null],
    [`local function g(k) ${get} end redis.register_function('f', g) local t = {g}`, null],
    [`local function g(k) ${get} end`, null],
    [`redis.register_function('f', function(k) k[1] = 'x' table.insert(k, 1) ${get} end)`, null],
    [`redis.register_function('f', function(k) k = {} ${get} end)`, null],
    [`redis.call('GET', KEYS[1])`, null],
  ] as const)
    assert.deepEqual(library(code), expected, code);
  assert.equal(readText('return 1', true).repeatable, false);
});

test('a computed number is written by its version, a text and a small whole number are not', () => {
  const writes = (argument: string): boolean => script(`redis.call('SET', KEYS[1], ${argument})`).writesNumbers;
  for (const argument of [
    '1.5',
    '1e15',
    '999999999999999.5',
    '-1',
    '1 + 1',
    'tonumber(ARGV[1])',
    '#KEYS',
    "string.len('x')",
    'unpack({1.5})',
    'unpack()',
    "1.5 or 'x'",
    "'x' and 1.5",
    'x',
    "redis.call('INCR', KEYS[1])",
    'true',
  ])
    assert.equal(writes(argument), true, argument);
  for (const argument of [
    '1',
    '0',
    '999999999999999',
    "'1.5'",
    "1 or 'x'",
    'ARGV[1]',
    "'a' .. 1.5",
    'tostring(1)',
    'unpack(ARGV)',
    'unpack(KEYS)',
    "redis.call('GET', KEYS[1])",
    "string.sub('x', 1)",
    'string.upper(unpack(ARGV))',
  ])
    assert.equal(writes(argument), false, argument);
});

test('what is no Lua 5.1, or longer than 64 KiB, is not understood', () => {
  assert.deepEqual(NOT_UNDERSTOOD, { calls: null, repeatable: false, writesNumbers: true });
  for (const text of ['goto x', 'x y', 'local x <const> = 1', 'return 1 // 2', 'return ~1', `--${'x'.repeat(65_535)}`])
    assert.equal(script(text), NOT_UNDERSTOOD, text.slice(0, 40));
  assert.equal(script(`--${'x'.repeat(65_534)}`).repeatable, true);
  assert.equal(script(`#!lua flags=no-writes\n${SET}`).repeatable, true);
  assert.equal(script(`\n#!lua\n${SET}`), NOT_UNDERSTOOD);
  assert.deepEqual(names("redis.call('GET', 'a#!b')"), [{ text: 'a#!b' }]);
});

test('unpack may crash KeyDB from 7,900 arguments on, and from a number of 7,900 to 8,000 in its text', () => {
  assert.equal(tooManyFrom(SET), Infinity);
  assert.equal(tooManyFrom('local unpacked = 7950'), Infinity);
  assert.equal(tooManyFrom('unpack(ARGV)'), 7_900);
  for (const [number, from] of [
    [7_899, 7_900],
    [7_900, 0],
    [7_950, 0],
    [8_000, 0],
    [8_001, 7_900],
    [79_000, 7_900],
  ])
    assert.equal(tooManyFrom(`unpack(ARGV, 1, ${number})`), from, `${number}`);
});

test('the name of a command that leaves its database is found in every kind of quotes', () => {
  for (const text of ["'select'", '"SELECT"', "' move '", '[[copy]]', '[==[swapdb]==]', "x = 'Copy'"])
    assert.equal(mentionsDatabases(text), true, text);
  for (const text of ['select', "'selected'", "'xselect'", 'x.copy(1)', "'get'", '"re" .. "name"'])
    assert.equal(mentionsDatabases(text), false, text);
});
