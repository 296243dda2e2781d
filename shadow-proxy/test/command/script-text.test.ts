/** What reading a script's or a library's text tells of the keys that it touches; what it does not tell, it must not seem to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandTable } from '../../src/command/table.js';
import { Scripts } from '../../src/lane/scripts.js';
import { parametersOf } from '../../src/lane/script-text.js';

const table = new CommandTable();
const told = (script: string, ...rest: string[]): { reads: string[] | null; writes: string[] | null } => {
  const { reads, writes } = new Scripts().undeclared(['EVAL', script, ...rest].map((arg) => Buffer.from(arg)), table);
  return { reads: reads?.map(String) ?? null, writes: writes?.map(String) ?? null };
};

test('keys are told by texts, by arguments, and by names that stand for these and nothing else', () => {
  assert.deepEqual(told("redis.call('SET', 'ä', redis.call('GET', ARGV[2]))", '0', 'x', 'y'), { reads: ['y'], writes: ['ä'] });
  assert.deepEqual(told("local k = ARGV[1]; redis.call('set', k, 1)", '1', 'declared', 'k'), { reads: [], writes: ['k'] });
  assert.deepEqual(told("redis.call('SET', ARGV[1], 1) redis.call('GET', KEYS[1])", '1', 'same', 'same'), { reads: [], writes: [] });
  assert.deepEqual(told("redis.pcall('DEL', 'a', 'b') -- redis.call('DEL', x)", '0'), { reads: [], writes: ['a', 'b'] });
  assert.deepEqual(told("return redis.call('TIME')", '0'), { reads: [], writes: [] });
  // The server refuses what has fewer keys than it says.
  assert.deepEqual(told("redis.call('SET', x, 1)", '3', 'k'), { reads: [], writes: [] });
});

test('what may be any key is not told', () => {
  for (const script of [
    "redis.call('SET', 'a' .. ARGV[1], 1)",
    "redis.call('SET', k, 1)",
    "local k = ARGV[1] or 'x'; redis.call('SET', k, 1)",
    "local k = ARGV[1]; k = 'x'; redis.call('SET', k, 1)",
    "ARGV[1] = 'x'; redis.call('SET', ARGV[1], 1)",
    "KEYS = {'x'}; redis.call('SET', KEYS[1], 1)",
    "redis.call('SELECT', 1) redis.call('SET', 'a', 1)",
    "redis.call('FLUSHALL')",
    "redis.call('COPY', 'a', 'b', 'DB', '1')",
    "redis.call('MSET', 'a', 1, 'b', 2)",
    "redis.call('NOSUCH', 'a')",
    "local c = redis.call; c('SET', 'a', 1)",
    "redis.call(ARGV[1], 'a')",
  ]) {
    assert.equal(told(script, '0', 'x').writes, null, script);
  }
  assert.deepEqual(told("local k = redis.call('GET', 'a' .. ARGV[1]); redis.call('SET', 'b', 1)", '0', 'x'), { reads: null, writes: ['b'] });
});

test('the parameters of a library are told where every callback calls them the same and nobody else is given them', () => {
  const register = (what: string): string => `redis.register_function('f', ${what})`;
  assert.deepEqual(parametersOf(register('function(keys, args) end')), { keys: 'keys', args: 'args' });
  assert.deepEqual(parametersOf(`local function g(k, a) end ${register('g')} ${register('function(k) end')} ${register('function() end')}`), { keys: 'k', args: 'a' });
  assert.deepEqual(parametersOf(`local function now(x) end redis.register_function{function_name='f', callback=function(keys, args) end}`), { keys: 'keys', args: 'args' });
  assert.equal(parametersOf(`local function g(k, a) end ${register('g')} g({'x'})`), null);
  assert.equal(parametersOf(`local function help(keys) end ${register('function(keys, args) end')}`), null);
  assert.equal(parametersOf(`${register('function(keys, args) end')} ${register('function(k, a) end')}`), null);
  assert.equal(parametersOf(register('make()')), null);
});
