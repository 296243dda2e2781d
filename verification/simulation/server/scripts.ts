/**
 * EVAL and its like. The models run no Lua: they know a few texts, each with a function that does the same. A
 * simulation adds its own with `ModelServer.addScript`.
 */
import { createHash } from 'node:crypto';
import { lower } from './options.js';
import { array, bulk, integer, nil, OK, ONE, Refusal, ZERO, type Protocol } from './reply.js';
import { needInteger } from './numbers.js';
import type { Client, Result, Run, Script, State } from './state.js';
import { container } from './subcommand.js';

export const KNOWN_SCRIPTS: Readonly<Record<string, Script>> = {
  "return redis.call('GET', KEYS[1])": ({ call, keys }) => call('GET', keys[0]),
  "return redis.call('INCRBY', KEYS[1], ARGV[1])": ({ call, keys, args }) => call('INCRBY', keys[0], args[0]),
  "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('RPUSH', KEYS[2], ARGV[1])": ({ call, keys, args }) => {
    call('SET', keys[0], args[0]);
    return call('RPUSH', keys[1], args[0]);
  },
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end": ({
    call,
    keys,
    args,
  }) => (call('GET', keys[0]) === args[0] ? call('DEL', keys[0]) : 0),
  "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n": ({
    call,
    keys,
    args,
  }) => {
    const count = call('INCR', keys[0]);
    if (count === 1) call('PEXPIRE', keys[0], args[0]);
    return count;
  },
  "local v = redis.call('LPOP', KEYS[1]) if v then redis.call('RPUSH', KEYS[2], v) end return v": ({ call, keys }) => {
    const value = call('LPOP', keys[0]);
    if (value !== null) call('RPUSH', keys[1], value as string);
    return value;
  },
  'return {KEYS[1], ARGV[1], 7}': ({ keys, args }) => [keys[0], args[0], 7],
};

const digestOf = (text: string): string => createHash('sha1').update(text, 'latin1').digest('hex');

const NO_SCRIPT = new Refusal('NOSCRIPT No matching script. Please use EVAL.');

function evaluate(client: Client, args: readonly string[], text: string | undefined): string {
  const { server } = client;
  const count = needInteger(args[2]);
  if (count > args.length - 3) throw new Refusal("ERR Number of keys can't be greater than number of args");
  if (count < 0) throw new Refusal("ERR Number of keys can't be negative");
  if (text === undefined) throw NO_SCRIPT;
  const script = server.knownScripts.get(text);
  if (script === undefined) {
    server.lacking.add(`script ${text}`);
    throw new Refusal('ERR the model does not know the script');
  }
  const digest = digestOf(text);
  server.scripts.set(digest, text);
  const before = { protocol: client.protocol, mayNotBlock: client.mayNotBlock };
  client.protocol = 2;
  client.mayNotBlock = true;
  try {
    const result = script({
      keys: args.slice(3, 3 + count),
      args: args.slice(3 + count),
      call: (...words) => resultOf(server.call(client, words, true)),
    });
    return replyOf(result, before.protocol);
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    throw new Refusal(
      server.engine === 'redis'
        ? `${refusal.text} script: ${digest}, on @user_script:1.`
        : `ERR Error running script (call to f_${digest}): @user_script:1: ${refusal.text}`,
    );
  } finally {
    Object.assign(client, before);
  }
}

/** A reply as a script sees it. */
function resultOf(reply: string): Result {
  let at = 0;
  const read = (): Result => {
    const end = reply.indexOf('\r\n', at);
    const [type, line] = [reply[at], reply.slice(at + 1, end)];
    at = end + 2;
    switch (type) {
      case ':':
        return Number(line);
      case '+':
        return { ok: line };
      case '-':
        throw new Refusal(line);
      case '$': {
        if (line === '-1') return null;
        const from = at;
        at += Number(line) + 2;
        return reply.slice(from, at - 2);
      }
      default:
        return line === '-1' ? null : Array.from({ length: Number(line) }, read);
    }
  };
  return read();
}

function replyOf(result: Result, protocol: Protocol): string {
  if (result === null) return nil(protocol);
  if (typeof result === 'number') return integer(Math.trunc(result));
  if (typeof result === 'string') return bulk(result);
  if ('ok' in result) return `+${result.ok}\r\n`;
  return array((result as readonly Result[]).map((each) => replyOf(each, protocol)));
}

const known = ({ scripts }: State, digest: string): string | undefined => scripts.get(lower(digest));

export const SCRIPT_COMMANDS: Readonly<Record<string, Run>> = {
  eval: (client, args) => evaluate(client, args, args[1]),
  evalsha: (client, args) => evaluate(client, args, known(client.server, args[1])),
  eval_ro: (client, args) => evaluate(client, args, args[1]),
  evalsha_ro: (client, args) => evaluate(client, args, known(client.server, args[1])),
  script: container({
    load({ server }, args) {
      const digest = digestOf(args[2]);
      server.scripts.set(digest, args[2]);
      return bulk(digest);
    },
    exists: ({ server }, args) =>
      array(args.slice(2).map((digest) => (known(server, digest) === undefined ? ZERO : ONE))),
    flush({ server }, args) {
      if (args.length > 3 || (args.length === 3 && !['sync', 'async'].includes(lower(args[2]))))
        throw new Refusal('ERR SCRIPT FLUSH only support SYNC|ASYNC option');
      server.scripts.clear();
      return OK;
    },
    kill() {
      throw new Refusal('NOTBUSY No scripts in execution right now.');
    },
  }),
};
