/** Which parameters of a library's functions the reader of scripts takes for the declared keys and the arguments. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readText } from '../../../src/script/text.js';
import { callsOf, callsOfLibrary } from './shown.js';

const del = "redis.call('DEL', k[1], a[1])";
const callback = `function(k, a) ${del} end`;
/** A function with a name. */
const g = `local function g(k, a) ${del} end`;
const register = (...args: readonly string[]): string => `redis.register_function(${args.join(', ')})`;
const KNOWN = 'del KEY ARGV1';
const UNKNOWN = 'del ? ?';

function check(table: readonly (readonly [text: string, calls: string | null])[]): void {
  for (const [text, calls] of table) assert.equal(callsOfLibrary(text), calls, text);
}

test('a function that is registered is given the declared keys and the arguments by the server', () => {
  check([
    [register("'f'", callback), KNOWN],
    [register(`{function_name = 'f', callback = ${callback}}`), KNOWN],
    [`redis.register_function{function_name = 'f', callback = ${callback}}`, KNOWN],
    [`${g} ${register("'f'", 'g')}`, KNOWN],
    [`${g} redis.register_function{function_name = 'f', callback = g}`, KNOWN],
    [`local g = ${callback} ${register("'f'", 'g')}`, KNOWN],
    [`${register("'f'", callback)} ${register("'h'", callback)}`, `${KNOWN}, ${KNOWN}`],
    [`${g} ${register("'f'", 'g')} ${register("'h'", callback)}`, `${KNOWN}, ${KNOWN}`],
    [`${g} local function h(k, a) ${del} end ${register("'f'", 'g')}`, `${KNOWN}, ${UNKNOWN}`],
    [register("'f'", `function(a, k) ${del} end`), 'del ARGV1 KEY'],
    [register("'f'", "function(k, a, b) redis.call('DEL', b[1], k[1]) end"), 'del ? KEY'],
    [register("'f'", "function(k, a) redis.call('DEL', unpack(k)) end"), 'del KEY …'],
    [register("'f'", "function(k, a) redis.call('DEL', unpack(a)) end"), 'del ? …'],
    [register("'f'", "function(k, a) for _, x in ipairs(k) do redis.call('DEL', x) end end"), 'del KEY'],
    [register("'f'", "function(k, a) for _, x in ipairs(a) do redis.call('DEL', x) end end"), 'del ?'],
  ]);
});

test('a function that others may call as well is given anything', () => {
  check([
    [g, UNKNOWN],
    [`${g} g({})`, UNKNOWN],
    [`${g} ${register("'f'", 'g')} g({})`, UNKNOWN],
    [`${g} ${register("'f'", 'g')} ${register("'h'", 'g')}`, UNKNOWN],
    [`${g} ${register("'f'", 'g')} ${register("'h'", 'g')} g({})`, UNKNOWN],
    [`${g} ${register("'f'", 'g')} local h = g`, UNKNOWN],
    [`${g} g = 1 ${register("'f'", 'g')}`, UNKNOWN],
    [`local g = 1 g = ${callback} ${register("'f'", 'g')}`, UNKNOWN],
    [`local g ${register("'f'", 'g')}`, ''],
    [register("'f'", `{${callback}}`), UNKNOWN],
    [register(`{callback = ${callback}}`, '1'), UNKNOWN],
    [register(`{function_name = 'f', description = ${callback}}`), UNKNOWN],
    [register(`{'f', ${callback}}`), UNKNOWN],
    [`local callback = 'f' ${register(`{[callback] = ${callback}}`)}`, UNKNOWN],
    [`redis.log${`{callback = ${callback}}`}`, UNKNOWN],
    [`redis.log(1, ${callback})`, UNKNOWN],
    [`local redis = {} ${register("'f'", callback)}`.replaceAll('redis.call', 'tostring'), ''],
    [`local function h(k) redis.call('DEL', k[1]) end ${register("'f'", 'function(k, a) h(k) end')}`, 'del ?'],
  ]);
});

test('a parameter that is given another value, or away, is anything', () => {
  check([
    [register("'f'", `function(k, a) k = {} ${del} end`), 'del ? ARGV1'],
    [register("'f'", `function(k, a) a = {} ${del} end`), 'del KEY ?'],
    [register("'f'", `function(k, a) k[1] = 'x' ${del} end`), 'del ? ARGV1'],
    [register("'f'", `function(k, a) tostring(k) ${del} end`), 'del ? ARGV1'],
    [register("'f'", `function(k, a) local x = #k ${del} end`), KNOWN],
  ]);
});

test('a library has no declared keys of its own', () => {
  check([
    ["redis.call('DEL', KEYS[1])", 'del ?'],
    ["redis.call('DEL', ARGV[1])", 'del ?'],
    [register("'f'", "function() redis.call('DEL', KEYS[1]) end"), 'del ?'],
  ]);
});

test('what else is given to register_function may call commands', () => {
  check([
    [register(), ''],
    [register(callback), KNOWN],
    [register("'f'", "redis.call('PING')"), 'ping'],
    [register("{description = redis.call('PING')}"), 'ping'],
    [register("{[redis.call('PING')] = 1}"), 'ping'],
    [register("{redis.call('PING')}"), 'ping'],
    [register('nosuch'), null],
    ["nosuch'a'", null],
    ["string.len'a'", ''],
    ['nosuch{}', null],
  ]);
});

test('a script registers nothing, and a library is never repeated', () => {
  assert.equal(callsOf(register("'f'", callback)), UNKNOWN);
  assert.equal(callsOf(`redis.register_function{callback = ${callback}}`), UNKNOWN);
  assert.equal(callsOf(`${g} g(KEYS, ARGV)`), UNKNOWN);
  assert.equal(readText('return 1', false).repeatable, true);
  assert.equal(readText('return 1', true).repeatable, false);
});
