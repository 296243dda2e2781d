/** Functions with declared keys: such as write, fail after they wrote, or only read. KeyDB has none. */
import { Redis } from 'ioredis';
import { call, rule, type Rule } from '../command.js';
import type { Values } from '../values.js';

/** To be loaded before they are called. */
export const LIBRARY = `#!lua name=random
local function fill(keys, args)
  redis.call('SET', keys[1], args[1])
  return redis.call('INCR', keys[2])
end
local function draw(keys, args)
  local m = redis.call('SPOP', keys[5])
  if m then redis.call('RPUSH', keys[4], m) end
  redis.call('LTRIM', keys[4], 0, 30)
  return m
end
local function note(keys, args)
  redis.call('HSET', keys[3], 'at', redis.call('TIME')[2], 'what', args[1])
  return redis.call('XADD', keys[6], 'MAXLEN', 40, '*', 'f', args[1])
end
local function lend(keys, args)
  redis.call('SET', keys[1], args[1], 'PX', 500 + math.random(60000))
  return redis.call('DEL', keys[2])
end
local function fail(keys, args)
  redis.call('SADD', keys[5], args[1])
  return redis.call('LPUSH', keys[5], 'x')
end
local function look(keys, args)
  return {redis.call('EXISTS', keys[1]), redis.call('LRANGE', keys[4], 0, 2)}
end
redis.register_function('fill', fill)
redis.register_function('draw', draw)
redis.register_function('note', note)
redis.register_function('lend', lend)
redis.register_function('fail', fail)
redis.register_function{function_name='look', callback=look, flags={'no-writes'}}
`;

const operands = (g: Values): (string | Buffer | number)[] => [
  6,
  g.key('str'),
  g.key('num'),
  g.key('hash'),
  g.key('list'),
  g.key('set'),
  g.key('log'),
  g.member(),
];

export const FUNCTIONS: readonly Rule[] = [
  rule(5, (g) => call('any', 'FCALL', g.random.pick(['fill', 'draw', 'note', 'lend', 'fail', 'look']), ...operands(g))),
  rule(1, (g) => call('any', 'FCALL_RO', 'look', ...operands(g))),
];

/** Loads `LIBRARY` into the server that answers on `port`. */
export async function loadLibrary(port: number): Promise<void> {
  const client = new Redis({ port });
  try {
    await client.call('FUNCTION', 'LOAD', LIBRARY);
  } finally {
    client.disconnect();
  }
}
