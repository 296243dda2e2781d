/** What values the reader of scripts takes an expression to have. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readText } from '../../../src/script/text.js';
import { startCpuClock } from '../../support/cpu.js';
import { isRepeated } from './shown.js';

/**
 * The kind of an expression, by what may be repeated with it: only a number is compared with a text, only a text is
 * written alike by every server, and what may be a table is not made a text.
 */
function kindOf(expression: string, before: string): string {
  const { calls, writesNumbers } = readText(`${before} local v = ${expression} redis.call('SET', KEYS[1], v)`, false);
  if (calls === null) return 'not understood';
  const isNumber = isRepeated(`${before} return (${expression}) < 'a'`);
  assert.equal(isRepeated(`${before} return 'a' >= (${expression})`), isNumber, 'on either side');
  if (isNumber) return 'number';
  if (!writesNumbers) return 'text';
  return isRepeated(`${before} return tostring((${expression}))`) ? 'scalar' : 'any';
}

/** What comes before the expression, if anything does, is behind its kind. */
type Row = readonly [expression: string, kind: string, before?: string];

function check(table: readonly Row[]): void {
  for (const [expression, kind, before = ''] of table) {
    assert.equal(kindOf(expression, before), kind, `${before} ${expression}`.trim());
  }
}

test('values that are written out have the kind of what is written', () => {
  check([
    ["'a'", 'text'],
    ['[[a]]', 'text'],
    ['1', 'number'],
    ['0.5', 'number'],
    ['true', 'scalar'],
    ['false', 'scalar'],
    ['nil', 'scalar'],
    ['{}', 'any'],
    ['function() end', 'any'],
  ]);
});

test('the operator decides the kind of the computed value', () => {
  check([
    ['-1', 'number'],
    ["#'a'", 'number'],
    ['#KEYS', 'number'],
    ['#{1}', 'number'],
    ['not 1', 'scalar'],
    ["not 'a'", 'scalar'],
    ['1 + 1', 'number'],
    ['1 - 1', 'number'],
    ['1 * 1', 'number'],
    ['1 / 1', 'number'],
    ['1 % 1', 'number'],
    ["'1' + '1'", 'number'],
    ["'a' .. 'b'", 'text'],
    ['1 .. 2', 'text'],
    ['1 == 1', 'scalar'],
    ['1 ~= 1', 'scalar'],
    ['1 < 2', 'scalar'],
    ['1 >= 2', 'scalar'],
  ]);
});

test('a choice has the kind of both sides', () => {
  check([
    ['1 or 2', 'number'],
    ['1 and 2', 'number'],
    ['ARGV[1] or KEYS[1]', 'text'],
    ["ARGV[1] and 'b'", 'text'],
    ['1 == 1 or true', 'scalar'],
    ["1 == 1 and 'b'", 'scalar'],
    ['1 == 1 and 2', 'scalar'],
    ['ARGV[1] or -1', 'scalar'],
    ['{} or 1', 'any'],
    ['1 or {}', 'any'],
    ['{} or {}', 'any'],
  ]);
});

test('elements of the declared keys and of the arguments are texts, and of other tables anything', () => {
  const each = (of: string): string => `for i, v in ipairs(${of}) do return tostring(v) end`;
  check([
    ['KEYS[1]', 'text'],
    ['ARGV[1]', 'text'],
    ['ARGV[#ARGV]', 'text'],
    ['ARGV.n', 'any'],
    ['t[1]', 'any', 'local t = {}'],
    ['t[1]', 'any', 'local t = ARGV'],
    ['t.a', 'any', 'local t = {}'],
    ["({'a'})[1]", 'any'],
    ['string[1]', 'any'],
    ['ARGV[1]', 'any', 'ARGV = {}'],
    ['ARGV[1]', 'any', 'ARGV[1] = 1'],
    ['KEYS[1]', 'any', 'KEYS[1] = 1'],
  ]);
  assert.equal(isRepeated(each('KEYS')), true);
  assert.equal(isRepeated(each('ARGV')), true);
  assert.equal(isRepeated(each('{{}}')), false);
  assert.equal(isRepeated(`local t = {{}} ${each('t')}`), false);
  assert.equal(isRepeated('for i, v in ipairs(ARGV) do return tostring(i) end'), false);
  assert.equal(isRepeated("for i, v in ipairs(ARGV) do return v < 'a' end"), false);
  assert.equal(isRepeated('for i, v in ipairs(ARGV) do v = {} return tostring(v) end'), false);
});

test('the variable of a counting loop is a number while it is given no other value', () => {
  assert.equal(isRepeated("for i = 1, 2 do return i < 'a' end"), true);
  assert.equal(isRepeated("for i = 1, 2 do i = 'b' return i < 'a' end"), false);
  assert.equal(isRepeated("for i = 1, 2 do local n = i return n < 'a' end"), true);
});

test('a name has the kind of the only value that it is given', () => {
  check([
    ['n', 'number', 'local n = 1'],
    ['n', 'text', "local n = 'a'"],
    ['n', 'scalar', 'local n = true'],
    ['n', 'any', 'local n = {}'],
    ['n', 'any', 'local n'],
    ['n', 'any', 'local n = 1 n = 2'],
    ['m', 'number', 'local n = 1 local m = n'],
    ['m', 'any', 'local n = 1 n = {} local m = n'],
    ['n', 'any', 'local function n() end'],
    ['type', 'any'],
    ['KEYS', 'any'],
  ]);
  assert.equal(isRepeated('local function f(a) return tostring(a) end'), false);
});

test('what several names get of one call is unknown, but for the names before it', () => {
  const get = "redis.call('GET', KEYS[1])";
  check([
    ['a', 'text', `local a = ${get}`],
    ['a', 'any', `local a, b = ${get}`],
    ['b', 'any', `local a, b = ${get}`],
    ['a', 'number', `local a, b, c = 1, ${get}`],
    ['b', 'any', `local a, b, c = 1, ${get}`],
    ['c', 'any', `local a, b, c = 1, ${get}`],
    ['a', 'text', `local a, b = ${get}, 1`],
    ['b', 'number', `local a, b = ${get}, 1`],
    ['a', 'text', `local a = ${get}, 1`],
    ['a', 'number', 'local a, b = 1'],
    ['b', 'any', 'local a, b = 1'],
    ['b', 'text', `local a, b = 1, ${get}`],
  ]);
});

test('functions of the server give values of their kind', () => {
  const numbers = [
    "tonumber('1')",
    "string.byte('a')",
    "string.find('a', 'a')",
    "string.len('a')",
    'math.abs(1)',
    'math.max(1, 2)',
    'table.getn({})',
  ];
  const texts = [
    'tostring(1)',
    'type({})',
    'string.char(1)',
    "string.format('a')",
    "string.gsub('a', 'a', 'b')",
    "string.lower('a')",
    "string.rep('a', 1)",
    "string.reverse('a')",
    "string.sub('a', 1)",
    "string.upper('a')",
    'table.concat({})',
  ];
  const others = [
    'assert(1)',
    'select(1, 2)',
    'unpack({})',
    "string.gmatch('a', 'a')",
    'table.remove({})',
    'os.clock()',
    "cjson.encode('a')",
    "redis.status_reply('a')",
    "redis.sha1hex('a')",
    "('a'):upper()",
    "('a').upper('a')",
    'ARGV[1]:len()',
    'KEYS.len(1)',
    '(function() end)()',
    "type'a'",
  ];
  check([
    ...numbers.map((each): Row => [each, 'number']),
    ...texts.map((each): Row => [each, 'text']),
    ["string.match('a', 'a')", 'scalar'],
    ...others.map((each): Row => [each, 'any']),
  ]);
});

test('a name that hides a function of the server may give anything', () => {
  check([
    ["tonumber('1')", 'any', 'local function tonumber() end'],
    ['type(1)', 'any', 'local function type() end'],
    ['f()', 'any', 'local function f() end'],
    ["string.len('a')", 'any', 'local string = {}'],
    ["string.upper('a')", 'any', 'local string = {}'],
    ['math.abs(1)', 'any', 'local math = {}'],
    ['t.tonumber(1)', 'any', 'local t = {}'],
  ]);
});

test('replies are of the kind that the row of the command says', () => {
  check([
    ["redis.call('INCR', KEYS[1])", 'number'],
    ["redis.call('incr', KEYS[1])", 'number'],
    ["redis.call('GET', KEYS[1])", 'text'],
    ["redis.call('get', KEYS[1])", 'text'],
    ["redis.call('LRANGE', KEYS[1], 0, 1)", 'any'],
    // A table with `ok`, whose text is its address.
    ["redis.call('SET', KEYS[1], 'a')", 'any'],
    ["redis.call('SETEX', KEYS[1], 1, 'a')", 'any'],
    ["redis.call('ZINCRBY', KEYS[1], 1, 'a')", 'any'],
    ["redis.call('INCRBYFLOAT', KEYS[1], 1)", 'any'],
    ["redis.call('PING')", 'any'],
    ["redis.call('NOSUCH')", 'any'],
    ["redis.pcall('GET', KEYS[1])", 'any'],
    ["call('GET', KEYS[1])", 'text', 'local call = redis.call'],
    ["call('INCR', KEYS[1])", 'number', 'local call = redis.call'],
    ["call('GET', KEYS[1])", 'any', 'local call = redis.pcall'],
    ['redis.call(ARGV[1])', 'not understood'],
    ['redis.call()', 'not understood'],
  ]);
});

test('a hundred names that stand for names are followed, and choices as deep', () => {
  const names = (many: number): string =>
    `local n0 = 1 ${Array.from({ length: many }, (_, i) => `local n${i + 1} = n${i}`).join(' ')}`;
  const left = (many: number): string => `1${' or 1'.repeat(many)}`;
  const right = (many: number): string => `${'1 or ('.repeat(many)}1${')'.repeat(many)}`;
  check([
    ['n99', 'number', names(99)],
    ['n100', 'any', names(100)],
    [left(100), 'number'],
    [left(101), 'any'],
    [right(100), 'number'],
    [right(101), 'any'],
  ]);
});

test('names that stand twice for names that stand twice for names are read at once', () => {
  const names = Array.from({ length: 45 }, (_, i) => `local n${i + 1} = n${i} or n${i}`).join(' ');
  const usedMs = startCpuClock();
  assert.equal(isRepeated(`local n0 = 1 ${names} return tostring(n45)`), true);
  assert.ok(usedMs() < 1_000);
});
