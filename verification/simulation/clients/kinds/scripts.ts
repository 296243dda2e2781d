/** Scripts: their texts, and functions that do the same in a model. */
import { createHash } from 'node:crypto';
import type { Script } from '../../server/state.js';
import type { Command, Draw } from '../draw.js';

const READ_THEN_WRITE =
  "local v = redis.call('GET', KEYS[1]) if v then redis.call('SET', KEYS[2], v) return v end redis.call('SET', KEYS[1], ARGV[1]) return 0";
const TAKE_ANY =
  "local m = redis.call('SPOP', KEYS[1]) if m then redis.call('SADD', KEYS[2], m) redis.call('SADD', KEYS[2], ARGV[1]) end return m";
const STAMP = "local t = redis.call('TIME') redis.call('RPUSH', KEYS[1], t[2]) return redis.call('LLEN', KEYS[1])";
const UNDECLARED = "redis.call('INCR', ARGV[1]) return redis.call('GET', ARGV[1])";
const HALF_WAY = "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[1])";
const LOCK =
  "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return redis.call('PTTL', KEYS[1])";
const TAKE = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GETDEL', KEYS[1])";
const OF_REDIS = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('PEXPIRE', KEYS[1], 60000, 'NX')";
const COMPUTED = "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[1] .. ':' .. ARGV[1])";
const NONE_DECLARED = "return redis.call('INCR', 'c' .. ARGV[1])";

/** The server answers nobody while it runs. */
export const LONG = "local n = 0 while n < 1e9 do n = n + 1 end return redis.call('GET', KEYS[1])";

export const SCRIPTS: Readonly<Record<string, Script>> = {
  [READ_THEN_WRITE]: ({ call, keys, args }) => {
    const value = call('GET', keys[0]);
    if (value !== null) {
      call('SET', keys[1], value as string);
      return value;
    }
    call('SET', keys[0], args[0]);
    return 0;
  },
  [TAKE_ANY]: ({ call, keys, args }) => {
    const member = call('SPOP', keys[0]);
    if (member === null) return null;
    call('SADD', keys[1], member as string);
    call('SADD', keys[1], args[0]);
    return member;
  },
  [STAMP]: ({ call, keys }) => {
    const [, micros] = call('TIME') as readonly string[];
    call('RPUSH', keys[0], micros);
    return call('LLEN', keys[0]);
  },
  [UNDECLARED]: ({ call, args }) => {
    call('INCR', args[0]);
    return call('GET', args[0]);
  },
  [HALF_WAY]: ({ call, keys, args }) => {
    call('RPUSH', keys[0], args[0]);
    return call('INCR', keys[0]);
  },
  [LOCK]: ({ call, keys, args }) =>
    call('SET', keys[0], args[0], 'NX', 'PX', args[1]) === null ? call('PTTL', keys[0]) : 1,
  [TAKE]: ({ call, keys, args }) => {
    call('SET', keys[0], args[0]);
    return call('GETDEL', keys[0]);
  },
  [OF_REDIS]: ({ call, keys, args }) => {
    call('SET', keys[0], args[0]);
    return call('PEXPIRE', keys[0], '60000', 'NX');
  },
  [COMPUTED]: ({ call, keys, args }) => {
    call('INCR', keys[0]);
    return call('INCR', `${keys[0]}:${args[0]}`);
  },
  [LONG]: ({ call, keys }) => call('GET', keys[0]),
  [NONE_DECLARED]: ({ call, args }) => call('INCR', `c${args[0]}`),
};

const DIGESTS = new Map(
  Object.keys(SCRIPTS).map((text) => [text, createHash('sha1').update(text, 'latin1').digest('hex')]),
);

export function script(draw: Draw): Command {
  const [text, keys, args] = drawn(draw);
  if (draw.random.chance(0.05)) return draw.of(['SCRIPT', 'LOAD', text]);
  if (draw.random.chance(0.02)) return draw.of(['SCRIPT', 'FLUSH']);
  if (draw.random.chance(0.05)) return draw.of(['SCRIPT', 'EXISTS', DIGESTS.get(text)!]);
  const call = draw.random.chance(0.5) ? ['EVAL', text] : ['EVALSHA', DIGESTS.get(text)!];
  return draw.of([...call, String(keys.length), ...keys, ...args], ...keys);
}

/** Scripts that write keys which nothing but the server can name, and one that KeyDB does not run to its end. */
export function hidden(draw: Draw): Command {
  const [counter, string] = [draw.key('c'), draw.key('s')];
  return draw.pick(
    draw.of(['EVAL', COMPUTED, '1', counter, draw.below(3)], counter),
    draw.of(['EVAL', NONE_DECLARED, '0', draw.below(5)]),
    draw.of(['EVAL', OF_REDIS, '1', string, draw.value()], string),
  );
}

/** A lock that expires. */
export const lock = (draw: Draw): Command => {
  const key = draw.key('e');
  return draw.of(['EVAL', LOCK, '1', key, draw.value(), draw.ms()], key);
};

export function longScript(draw: Draw): Command {
  const key = draw.key('s');
  return draw.of(['EVAL', LONG, '1', key], key);
}

/** A script that names all that it writes: the second key, or the first where that is missing. */
export const declared = (draw: Draw, from: string, to: string): Command =>
  draw.of(['EVAL', READ_THEN_WRITE, '2', from, to, draw.value()], from, to);

function drawn(draw: Draw): readonly [text: string, keys: readonly string[], args: readonly string[]] {
  switch (draw.random.below(7)) {
    case 0:
      return [READ_THEN_WRITE, [draw.key('s'), draw.key('s')], [draw.value()]];
    case 1:
      return [TAKE_ANY, [draw.key('t'), draw.key('t')], [`m${draw.random.below(6)}`]];
    case 2:
      return [STAMP, [draw.key('l')], []];
    case 3:
      return [UNDECLARED, [], [draw.key('c')]];
    case 4:
      return [HALF_WAY, [draw.key('l')], [draw.value()]];
    case 5:
      return [TAKE, [draw.key('s')], [draw.value()]];
    default:
      return [LOCK, [draw.key('e')], [draw.value(), draw.ms()]];
  }
}
