/** What a script's or a library's text shows of the keys that it touches, and whether it may be replayed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandTable } from '../../../src/command/table.js';
import { Routine } from '../../../src/script/routine.js';
import { Scripts } from '../../../src/script/catalog.js';

const table = new CommandTable();
const undeclaredKeys = (script: string, ...rest: string[]): { reads: string[] | null; writes: string[] | null } => {
  const { reads, writes } = new Scripts().undeclared(
    ['EVAL', script, ...rest].map((arg) => Buffer.from(arg)),
    table,
  );
  return { reads: reads?.map(String) ?? null, writes: writes?.map(String) ?? null };
};
const repeatable = (script: string): boolean => new Routine(script, false).repeatable(new Set());

test('keys are found in texts, in arguments, and in names that stand for these and nothing else', () => {
  assert.deepEqual(undeclaredKeys("redis.call('SET', 'ä', redis.call('GET', ARGV[2]))", '0', 'x', 'y'), {
    reads: ['y'],
    writes: ['ä'],
  });
  assert.deepEqual(undeclaredKeys("local k = ARGV[1]; redis.call('set', k, 1)", '1', 'declared', 'k'), {
    reads: [],
    writes: ['k'],
  });
  assert.deepEqual(undeclaredKeys("redis.call('SET', ARGV[1], 1) redis.call('GET', KEYS[1])", '1', 'same', 'same'), {
    reads: [],
    writes: [],
  });
  assert.deepEqual(undeclaredKeys("redis.pcall('DEL', 'a', 'b') -- redis.call('DEL', x)", '0'), {
    reads: [],
    writes: ['a', 'b'],
  });
  assert.deepEqual(undeclaredKeys("return redis.call('TIME')", '0'), { reads: [], writes: [] });
  assert.deepEqual(
    undeclaredKeys(
      "local call = redis.call call('MSET', 'a', 1, KEYS[1], ARGV[1]) for _, key in ipairs(KEYS) do call('DEL', key) end",
      '1',
      'k',
      'v',
    ),
    { reads: [], writes: ['a'] },
  );
  assert.deepEqual(
    undeclaredKeys("redis.call('XGROUP', 'CREATE', 'x', 'g', '$') redis.call('XINFO', 'STREAM', 'y')", '0'),
    {
      reads: ['y'],
      writes: ['x'],
    },
  );
  assert.deepEqual(undeclaredKeys("redis.call('SET', [==[a]==], '--') redis.call('SET', 'b', \"\\065\")", '0'), {
    reads: [],
    writes: ['a', 'b'],
  });
  assert.deepEqual(undeclaredKeys("#!lua flags=allow-stale\nredis.call('SET', 'a', 1)", '0'), {
    reads: [],
    writes: ['a'],
  });
  // The server refuses what has fewer keys than it says.
  assert.deepEqual(undeclaredKeys("redis.call('SET', x, 1)", '3', 'k'), { reads: [], writes: [] });
});

/** What may write any key, whatever it seems to say. */
const ANY_KEY = [
  "redis.call('SET', 'a' .. ARGV[1], 1)",
  "redis.call('SET', k, 1)",
  "local k = ARGV[1] or 'x'; redis.call('SET', k, 1)",
  "local k = ARGV[1]; k = 'x'; redis.call('SET', k, 1)",
  "ARGV[1] = 'x'; redis.call('SET', ARGV[1], 1)",
  "KEYS = {'x'}; redis.call('SET', KEYS[1], 1)",
  "redis.call('SELECT', 1) redis.call('SET', 'a', 1)",
  "redis.call('FLUSHALL')",
  "redis.call('COPY', 'a', 'b', 'DB', '1')",
  "redis.call('NOSUCH', 'a')",
  "local c = redis.call; c = redis.pcall; c('SET', 'a', 1)",
  "local c = redis.call; local d = c; d('SET', 'a', 1)",
  'redis.call(ARGV[1], KEYS[1])',
  "redis['call']('SET', 'x' .. ARGV[1], 1)",
  "redis.call'PING' redis.call{'SET'}",
  // A comment that is none, and one that is.
  "local s = '--' redis.call('SET', 'x' .. s, 1)",
  "local s = '--[[' redis.call('SET', 'x' .. s, 1) s = ']]'",
  "--[==[ ]] ]==] redis.call('SET', 'x' .. ARGV[1], 1)",
  // Declared keys that are something else by then.
  "redis.call('SET', KEYS[1]:gsub('a', 'b'), 1)",
  "table.insert(KEYS, 1, 'x') redis.call('SET', KEYS[1], 1)",
  "local K = KEYS K[1] = 'x' redis.call('SET', KEYS[1], 1)",
  "local function f(KEYS) redis.call('SET', KEYS[1], 1) end f({'x'})",
  "local KEYS = {'x'} redis.call('SET', KEYS[1], 1)",
  "for _, KEYS in ipairs({{'x'}}) do redis.call('SET', KEYS[1], 1) end",
  "local function change(t) t[1] = 'x' end change(KEYS) redis.call('SET', KEYS[1], 1)",
  "local k, l = KEYS[1] k = 'x' redis.call('SET', k, 1)",
  "local function f() return 'x' end local a, b = f() redis.call('SET', a, 1)",
  "redis.call('SET', unpack(ARGV))",
  "redis.call('SORT', KEYS[1], 'BY', 'w_*', 'STORE', KEYS[2])",
  "local unpack = function() return 'x' end redis.call('DEL', unpack(KEYS))",
  "redis.call('XGROUP', ARGV[1], 'x', 'g', '$')",
  // Other ways to the interpreter.
  "loadstring('redis.call(\\'SET\\', \\'x\\', 1)')()",
  "local e = getfenv() e.redis.call('SET', 'x', 1)",
  "_G.redis.call('SET', 'x', 1)",
  "pcall(redis.call, 'SET', 'x', 1)",
  "redis.call = function() end redis.call('GET', 'x')",
  "string.gsub('a', 'a', redis.call)",
  'return {redis}',
  // What is not understood.
  "goto out ::out:: redis.call('GET', 'x')",
  `return ${'('.repeat(50_000)}1${')'.repeat(50_000)}`,
  `redis.call('GET', 'x') ${'-- x\n'.repeat(20_000)}`,
  "redis.call('GET', 'x'",
];

test('the keys of a script that may touch any key are unknown', () => {
  for (const script of ANY_KEY) {
    assert.equal(undeclaredKeys(script, '1', 'k', 'x').writes, null, script.slice(0, 200));
    assert.equal(
      repeatable(script) && undeclaredKeys(script, '1', 'k', 'x').reads !== null,
      false,
      script.slice(0, 200),
    );
  }
  assert.deepEqual(undeclaredKeys("local k = redis.call('GET', 'a' .. ARGV[1]); redis.call('SET', 'b', 1)", '0', 'x'), {
    reads: null,
    writes: ['b'],
  });
});

test('only what is proved to do the same on both servers is repeated', () => {
  for (const script of [
    "return redis.call('INCR', KEYS[1])",
    "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n",
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end",
    "if tonumber(redis.call('GET', KEYS[1]) or '0') < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end",
    "local now = tonumber(ARGV[1]) redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - 10) redis.call('ZADD', KEYS[1], now, ARGV[2]) return redis.call('ZCARD', KEYS[1])",
    "local all = redis.call('LRANGE', KEYS[1], 0, 3); for i, v in ipairs(all) do redis.call('RPUSH', KEYS[2], v) end return #all",
    "redis.call('DEL', unpack(KEYS)) redis.call('RPUSH', KEYS[1], unpack(ARGV)) return {1, 'two', redis.status_reply('FINE')}",
    "local function add(key, by) return redis.call('INCRBY', key, by) end return 1",
    "local call = redis.call local t = {} t[1] = 'a' .. tostring(#ARGV) call('SET', KEYS[1], t[1]) for i = 1, 3 do call('APPEND', KEYS[1], i) end",
    'return ARGV[1]:upper():sub(1, 2)',
  ]) {
    assert.ok(repeatable(script), script);
  }
  for (const script of [
    "return redis.call('TIME')",
    "redis.call('SET', KEYS[1], math.random())",
    "redis.call('SET', KEYS[1], tostring({}))",
    "redis.call('SET', KEYS[1], tostring(redis.call('LRANGE', KEYS[2], 0, 1)))",
    "redis.call('SET', KEYS[1], collectgarbage('count'))",
    "redis.call('SET', KEYS[1], os.clock())",
    "for k, v in pairs({a = 1, b = 2}) do redis.call('RPUSH', KEYS[1], k) end",
    "local k = next({a = 1, b = 2}) redis.call('RPUSH', KEYS[1], k)",
    "redis.call('SET', KEYS[1], tostring(redis.call('LPOP', KEYS[2], 0)))",
    "local r = redis.call('LPOP', KEYS[2], 0) redis.call('SET', KEYS[1], r and 'array' or 'nil')",
    "local r = redis.pcall('INCR', KEYS[2]) redis.call('SET', KEYS[1], r.err)",
    "local ok, text = pcall(function() error('x') end) redis.call('SET', KEYS[1], text)",
    "redis.call('SET', KEYS[1], redis.call('COMMAND', 'COUNT'))",
    "redis.call('SET', KEYS[1], redis.call('ACL', 'WHOAMI'))",
    "redis.call('SET', KEYS[1], redis.call('ZSCORE', KEYS[2], 'm'))",
    "redis.call('SET', KEYS[1], redis.call('ZINCRBY', KEYS[2], 1, 'm'))",
    "redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')",
    "redis.call('SET', KEYS[1], ARGV[1], ARGV[2], ARGV[3])",
    "redis.call('EXPIRE', KEYS[1], 10, 'NX')",
    "if KEYS[1] < KEYS[2] then redis.call('INCR', KEYS[1]) end",
    "table.sort(ARGV) redis.call('RPUSH', KEYS[1], unpack(ARGV))",
    "redis.call('SET', KEYS[1], cjson.encode({a = 1, b = 2}))",
    "redis.call('SET', KEYS[1], 2 ^ 0.5)",
    "redis.call('SET', KEYS[1], string.dump(function() end))",
    "local f = ('x')['du' .. 'mp'] redis.call('SET', KEYS[1], f(function() end))",
    "local t = {} for i = 1, 10 do t[i] = i end redis.call('RPUSH', KEYS[1], unpack(t))",
    "return redis.call('INCRBYFLOAT', KEYS[1], 1)",
    "local t = setmetatable({}, {}) return redis.call('INCR', KEYS[1])",
    "redis.setresp(3) return redis.call('INCR', KEYS[1])",
    "unknown = 1 return redis.call('INCR', KEYS[1])",
    "string.format = string.rep return redis.call('INCR', KEYS[1])",
  ]) {
    assert.ok(!repeatable(script), script);
  }
});

test('a computed number is repeated only where both servers write it alike', () => {
  for (const script of [
    "redis.call('SET', KEYS[1], 0.1)",
    "redis.call('SET', KEYS[1], ARGV[1] / 3)",
    "redis.call('SET', KEYS[1], -0)",
    "redis.call('SET', KEYS[1], 1e17)",
  ])
    assert.ok(new Routine(script, false).writesNumbers, script);
  for (const script of [
    "redis.call('SET', KEYS[1], 1)",
    "redis.call('SET', KEYS[1], 'x' .. 0.1)",
    "redis.call('RPUSH', KEYS[1], ARGV[1], unpack(ARGV))",
  ])
    assert.ok(!new Routine(script, false).writesNumbers, script);
});

test('the parameters of a library are its callers only where the server alone calls the function', () => {
  const written = (code: string): unknown => {
    const { writes } = new Routine(`#!lua name=l\n${code}`, true).named(table);
    return writes?.map(({ name }) => name) ?? null;
  };
  const set = "redis.call('SET', k[1], a[1])";
  assert.deepEqual(written(`redis.register_function('f', function(k, a) ${set} end)`), ['declared']);
  assert.deepEqual(written(`local function g(k, a) ${set} end redis.register_function('f', g)`), ['declared']);
  assert.deepEqual(
    written(
      `redis.register_function{function_name='f', callback=function(k, a) redis.call('DEL', unpack(k)) redis.call('DEL', a[2]) end}`,
    ),
    ['declared', { argument: 2 }],
  );
  assert.equal(
    written(
      `local function g(k, a) ${set} end redis.register_function('f', g) redis.register_function('h', function() g({'x'}) end)`,
    ),
    null,
  );
  assert.equal(
    written(`local function g(k, a) ${set} end redis.register_function('f', function(k, a) g(k, a) end)`),
    null,
  );
  assert.deepEqual(written(`redis.register_function('f', function(a, k) ${set} end)`), [{ argument: 1 }]);
  assert.equal(written(`redis.register_function('f', function(k, a) k[1] = 'x' ${set} end)`), null);
  assert.equal(written(`redis.register_function('f', make(function(k, a) ${set} end))`), null);
});

test('a call of a subcommand that writes is no reader', () => {
  assert.equal(
    new Routine("return redis.call('XGROUP', 'CREATE', KEYS[1], 'g', '$', 'MKSTREAM')", false).writesNothing(table),
    false,
  );
  assert.equal(new Routine("return redis.call('OBJECT', 'ENCODING', KEYS[1])", false).writesNothing(table), true);
  assert.equal(new Routine('return redis.call(ARGV[1], KEYS[1])', false).writesNothing(table), false);
});
