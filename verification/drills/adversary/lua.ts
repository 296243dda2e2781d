/**
 * Random Lua 5.1 scripts for EVAL: mostly valid, many that hide what they write. They declare four keys and get two
 * arguments, and write to keys of the program's workloads only.
 */
import type { Random } from '../../../shadow-proxy/test/integration/random/random.js';

/** The keys that a script writes to without declaring them have this name behind their workload's prefix. */
export const HIDDEN = 'hidden';

/** The types that keys 1 to 4 of a script have. */
export const KEY_TYPES = ['str', 'num', 'list', 'set'] as const;

/** @param prefix of the workload whose undeclared keys it may write to */
export function randomScript(random: Random, prefix: string): string {
  const body = random.times(random.between(1, 5), () => statement(random, prefix, 0));
  return [...random.pick(PROLOGUES), ...body, ending(random)].join(random.pick(['\n', '; ', ' ']));
}

/** What a reader of the text may be misled by. */
const PROLOGUES: readonly (readonly string[])[] = [
  [],
  [],
  [],
  [],
  ['local K = KEYS'],
  ['local call = redis.call'],
  ["local s = '-- no comment'"],
  ['local s = [[ -- redis.call("DEL", KEYS[1]) ]]'],
  ['--[[ a comment\n redis.call("DEL", KEYS[1]) ]]\n'],
  ['-- KEYS[1] = "x"\n'],
  ['local function f(KEYS, v) return redis.call("SET", KEYS, v) end'],
];

function statement(random: Random, prefix: string, depth: number): string {
  const nested = (): string => random.times(random.between(1, 2), () => statement(random, prefix, depth + 1)).join(' ');
  const forms: (() => string)[] = [
    () => write(random, key(random, prefix)),
    () => write(random, key(random, prefix)),
    () => `redis.pcall('SET', ${key(random, prefix)}, ${value(random)})`,
    () => `redis.pcall('LPUSH', KEYS[1], 'x')`,
    () =>
      `local t = redis.call('LRANGE', KEYS[3], 0, 3) for i, v in ipairs(t) do redis.call('RPUSH', KEYS[3], v .. i) end`,
    () => `redis.call('LTRIM', KEYS[3], 0, 20)`,
    () => `local m = redis.call('SPOP', KEYS[4]) if m then redis.call('RPUSH', KEYS[3], m) end`,
    () => `for k, v in pairs({a = 1, b = 2, c = 3, d = 4}) do redis.call('RPUSH', KEYS[3], k) end`,
    () => `KEYS[1] = '${prefix}${HIDDEN}:' .. ARGV[1]:sub(1, 1)`,
    () => `table.insert(KEYS, '${prefix}${HIDDEN}')`,
    () =>
      `local ok, err = pcall(function() redis.call('SET', KEYS[1], 'v') error('stop') end) redis.call('SET', KEYS[1], tostring(err))`,
    () => `redis.call('SET', KEYS[1], cjson.encode({ARGV[1], redis.call('TTL', KEYS[2])}))`,
    () => `redis.call('PEXPIRE', KEYS[1], 500 + #ARGV[1] * 100)`,
    () => `redis.call('SET', KEYS[1], ARGV[1], 'PX', 300) redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')`,
  ];
  if (depth < 2) {
    forms.push(
      () => `if ${condition(random)} then ${nested()} else ${nested()} end`,
      () => `for i = 1, ${random.between(1, 3)} do ${nested()} end`,
      () => `(function(...) ${nested()} end)(ARGV[1])`,
    );
  }
  return random.pick(forms)();
}

function write(random: Random, at: string): string {
  return random.pick([
    () => `redis.call('SET', ${at}, ${value(random)})`,
    () => `redis.call(string.upper('set'), ${at}, ${value(random)})`,
    () => `redis.call('INCRBY', KEYS[2], #ARGV[1])`,
    () => `redis.call('RPUSH', KEYS[3], ${value(random)})`,
    () => `redis.call('SADD', KEYS[4], ${value(random)})`,
    () => `redis.call('DEL', ${at})`,
    () => `redis['call']('APPEND', ${at}, 'x')`,
  ])();
}

const key = (random: Random, prefix: string): string =>
  random.pick([
    'KEYS[1]',
    'KEYS[1]',
    'KEYS[2]',
    '(KEYS[1])',
    `'${prefix}${HIDDEN}'`,
    `'${prefix}${HIDDEN}:' .. ARGV[1]:sub(1, 1)`,
    `KEYS[1]:gsub('x', 'y')`,
    `#KEYS > 1 and KEYS[1] or KEYS[2]`,
  ]);

const value = (random: Random): string =>
  random.pick([
    'ARGV[1]',
    'ARGV[2]',
    `'v${random.between(0, 9)}'`,
    `'-- v'`,
    'tostring(#KEYS)',
    `tostring({}):sub(1, 5)`,
    `tostring({})`,
    `redis.call('TIME')[2]`,
    'tostring(math.random())',
    `redis.sha1hex(ARGV[1])`,
    `tostring(redis.call('PTTL', KEYS[1]))`,
    `tostring(-0)`,
    `string.format('%.3f', 0.1)`,
    `tostring(collectgarbage('count'))`,
    `tostring(redis.pcall('LPUSH', KEYS[1], 'x').err)`,
    `tostring(redis.call('EXISTS', KEYS[1]))`,
    `type(redis.call('GET', KEYS[1]))`,
  ]);

const condition = (random: Random): string =>
  random.pick([
    "redis.call('EXISTS', KEYS[1]) == 1",
    "ARGV[1] > 'm'",
    'true',
    'false',
    "redis.call('TIME')[2] % 2 == 0",
    "redis.call('SCARD', KEYS[4]) > 2",
  ]);

const ending = (random: Random): string =>
  random.pick([
    '',
    'return 1',
    "return redis.call('GET', KEYS[1])",
    "return redis.error_reply('OWN on purpose')",
    "error('on purpose')",
    'return ARGV',
    "return {1, 'two', {ok = 'FINE'}}",
    'return nosuchvariable',
  ]);
