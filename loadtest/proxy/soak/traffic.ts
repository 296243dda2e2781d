/**
 * Mixed commands whose replies can be checked separately: every value starts with its key and its length, so that a
 * reply to another command is noticed. Seven in ten are reads.
 */
import { isError, isNull, text, type Reply } from '../../../shadow-proxy/src/resp/decode.js';
import type { Argument } from '../../../shadow-proxy/src/resp/encode.js';

export interface Request {
  readonly args: readonly Argument[];
  /** Whether the reply may belong to this command. */
  readonly fits: (reply: Reply) => boolean;
}

/** Number of keys of each kind, limited so that the servers' memory is, too. */
const KEYS = { value: 2000, cache: 2000, counter: 200, hash: 200, list: 50, set: 100, board: 20 };
const FIELDS = 50;
/** Minimum size of a value, in bytes: room for the longest header. */
const SHORTEST = 32;

/** A value of `length` bytes, which must be enough for its header, that names its key. */
function valueOf(key: string, length: number): Buffer {
  const header = `${key}|${length}|`;
  return Buffer.concat([Buffer.from(header), Buffer.alloc(length - header.length, 'abcdefghijklmnopqrstuvwxyz')]);
}

function isValueOf(key: string, reply: Reply): boolean {
  const [name, length] = text(reply).slice(0, 64).split('|');
  return name === key && reply.data!.length === Number(length);
}

const below = (limit: number): number => Math.floor(Math.random() * limit);
const keyOf = (kind: keyof typeof KEYS): string => `soak:${kind}:${below(KEYS[kind])}`;
/** A log-uniform length: as many values between 32 and 64 bytes as between 32 and 64 KiB. */
const lengthUpTo = (max: number): number =>
  Math.floor(Math.exp(Math.log(SHORTEST) + Math.random() * Math.log(Math.max(max, SHORTEST) / SHORTEST)));

const isOk = (reply: Reply): boolean => text(reply) === 'OK';
const isInteger = (reply: Reply): boolean => reply.type === ':';
const isList = (reply: Reply): boolean => reply.items !== null;

type Maker = (maxValue: number) => Request;

const READS: readonly Maker[] = [
  readValue('value'),
  readValue('value'),
  readValue('cache'),
  () => {
    const keys = [keyOf('value'), keyOf('cache'), keyOf('value')];
    const fits = ({ items }: Reply): boolean =>
      items?.length === 3 && items.every((item, i) => isNull(item) || isValueOf(keys[i], item));
    return { args: ['MGET', ...keys], fits };
  },
  () => {
    const [key, field] = [keyOf('hash'), `f${below(FIELDS)}`];
    return { args: ['HGET', key, field], fits: (reply) => isNull(reply) || isValueOf(key, reply) };
  },
  () => ({ args: ['HGETALL', keyOf('hash')], fits: isList }),
  () => ({ args: ['LRANGE', keyOf('list'), 0, 9], fits: isList }),
  () => ({ args: ['SMEMBERS', keyOf('set')], fits: isList }),
  () => ({ args: ['ZREVRANGE', keyOf('board'), 0, 9, 'WITHSCORES'], fits: isList }),
  () => ({ args: ['EXISTS', keyOf('cache')], fits: isInteger }),
];

const WRITES: readonly Maker[] = [
  (max) => writeValue('value', max),
  (max) => writeValue('value', max),
  (max) => writeValue('cache', max, ['EX', 5 + below(60)]),
  () => ({ args: ['DEL', keyOf('value')], fits: isInteger }),
  () => ({ args: ['INCR', keyOf('counter')], fits: isInteger }),
  () => {
    const key = keyOf('hash');
    return { args: ['HSET', key, `f${below(FIELDS)}`, valueOf(key, 200)], fits: isInteger };
  },
  () => ({ args: ['LPUSH', keyOf('list'), `item ${below(1e6)}`], fits: isInteger }),
  () => ({ args: ['LTRIM', keyOf('list'), 0, 99], fits: isOk }),
  () => ({ args: [below(2) ? 'SADD' : 'SREM', keyOf('set'), `member ${below(50)}`], fits: isInteger }),
  () => ({ args: ['ZADD', keyOf('board'), below(1000), `player ${below(200)}`], fits: isInteger }),
];

function readValue(kind: 'value' | 'cache'): Maker {
  return () => {
    const key = keyOf(kind);
    return { args: ['GET', key], fits: (reply) => isNull(reply) || isValueOf(key, reply) };
  };
}

function writeValue(kind: 'value' | 'cache', max: number, more: Argument[] = []): Request {
  const key = keyOf(kind);
  return { args: ['SET', key, valueOf(key, lengthUpTo(max)), ...more], fits: isOk };
}

/** One random command; values have up to `maxValue` bytes. */
export function nextRequest(maxValue: number): Request {
  const makers = Math.random() < 0.7 ? READS : WRITES;
  return makers[below(makers.length)](maxValue);
}

/** Judges a reply to a command. */
export const judgeReply = (request: Request, reply: Reply): 'right' | 'error' | 'wrong' =>
  isError(reply) ? 'error' : request.fits(reply) ? 'right' : 'wrong';
