/** Scripts with declared keys: such that always do the same, such that do not, such that fail after they wrote. */
import { call, rule, type Call, type Rule } from '../command.js';
import { textOf, type Plain } from '../reply.js';
import type { Values } from '../values.js';

const SAME = [
  `redis.call('SET', KEYS[1], ARGV[1]); return redis.call('GET', KEYS[1])`,
  `local n = redis.call('INCR', KEYS[2]); if n % 2 == 0 then redis.call('SET', KEYS[1], n) end; return n`,
  `redis.call('HSET', KEYS[3], 'a', ARGV[1], 'b', ARGV[2]); return redis.call('HLEN', KEYS[3])`,
  `local all = redis.call('LRANGE', KEYS[4], 0, 3); for i, v in ipairs(all) do redis.call('RPUSH', KEYS[4], v) end; redis.call('LTRIM', KEYS[4], 0, 9); return #all`,
  `redis.call('DEL', KEYS[1], KEYS[2]); return {1, 'two', {3, false}, redis.status_reply('FINE')}`,
  `redis.call('SET', KEYS[1], ARGV[1], 'PX', 400); return redis.call('PTTL', KEYS[1]) > 0`,
  `return nil`,
];
const DIFFERENT = [
  `return redis.call('SPOP', KEYS[5])`,
  `local t = redis.call('TIME'); redis.call('SET', KEYS[1], t[1] .. '.' .. t[2]); return 'x'`,
  `redis.call('SET', KEYS[1], tostring(math.random())); redis.call('SADD', KEYS[5], math.random(1000000) % 20); return 1`,
  `return redis.call('XADD', KEYS[6], 'MAXLEN', 40, '*', 'f', ARGV[1])`,
  `local m = redis.call('SRANDMEMBER', KEYS[5]); if m then redis.call('RPUSH', KEYS[4], m); redis.call('SREM', KEYS[5], m) end; return m`,
  `redis.call('PEXPIRE', KEYS[1], 1 + math.random(3000)); return redis.call('PTTL', KEYS[1])`,
];
const FAILING = [
  `redis.call('SET', KEYS[1], ARGV[1]); return redis.call('LPUSH', KEYS[1], 'x')`,
  `redis.call('DEL', KEYS[2]); redis.call('INCR', KEYS[2]); error('on purpose')`,
  `redis.call('SADD', KEYS[5], ARGV[1]); return redis.error_reply('OWN on purpose')`,
  `redis.call('HSET', KEYS[3], 'a', '1'); return {err = 'ERR on purpose'}`,
  `local r = redis.pcall('LPUSH', KEYS[2], 'x'); redis.call('SET', KEYS[1], 'after'); return r`,
  `return nosuchvariable`,
];
const READING = [
  `return redis.call('GET', KEYS[1])`,
  `return redis.call('SMEMBERS', KEYS[5])`,
  `return {redis.call('EXISTS', KEYS[1]), redis.call('HGETALL', KEYS[3])}`,
];

/** Scripts whose key is an argument; the text of some shows that, the text of others does not. */
const KEYLESS = [
  `return redis.call('SET', ARGV[1], ARGV[2])`,
  `redis.call('SET', ARGV[1], redis.call('TIME')[2]); return 1`,
  `redis.call('SET', ARGV[1], ARGV[2]); return redis.call('LPUSH', ARGV[1], 'x')`,
  `local k = 'x' .. ARGV[1]; return redis.call('SET', k:sub(2), ARGV[2])`,
  `for i = 1, 1 do redis.call('SET', ARGV[i], 'abc') end; return 1`,
];

const script = (g: Values): string => g.random.pick(g.random.pick([SAME, SAME, DIFFERENT, FAILING]));
const operands = (g: Values): (string | Buffer | number)[] => [
  6,
  g.key('str'),
  g.key('num'),
  g.key('hash'),
  g.key('list'),
  g.key('set'),
  g.key('log'),
  ...g.random.times(2, () => (g.random.chance(0.9) ? g.member() : g.value())),
];

function load(g: Values): Call {
  const learn = (reply: Plain): void => {
    const digest = textOf(reply);
    if (digest !== null && /^[0-9a-f]{40}$/.test(digest)) g.digests.push(digest);
    if (g.digests.length > 30) g.digests.splice(1, 10);
  };
  return { ...call('bulk', 'SCRIPT', 'LOAD', script(g)), learn };
}

export const SCRIPTS: readonly Rule[] = [
  rule(10, (g) => call('any', 'EVAL', script(g), ...operands(g))),
  rule(5, (g) => call('any', 'EVALSHA', g.random.pick(g.digests), ...operands(g))),
  rule(2, (g) => call('any', 'EVAL_RO', g.random.pick(READING), ...operands(g))),
  rule(1, (g) => call('any', 'EVALSHA_RO', g.random.pick(g.digests), ...operands(g))),
  rule(1, (g) => call('any', 'EVAL', g.random.pick(KEYLESS), 0, g.key('str'), g.value())),
  rule(2, load),
  rule(1, (g) => call('array', 'SCRIPT', 'EXISTS', g.random.pick(g.digests), 'f'.repeat(40))),
];
