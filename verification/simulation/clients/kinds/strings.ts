/** Strings, counters, and keys that expire. */
import type { Form } from '../draw.js';

export const STRING: readonly Form[] = [
  (draw, key) => ['SET', key, draw.value()],
  (draw, key) => ['SET', key, draw.value()],
  (_, key) => ['GET', key],
  (_, key) => ['GET', key],
  (draw, key) => ['APPEND', key, draw.value()],
  (draw, key) => ['GETSET', key, draw.value()],
  (draw, key) => ['SETNX', key, draw.value()],
  (draw, key) => ['SETRANGE', key, draw.below(8), draw.value()],
  (draw, key) => ['GETRANGE', key, draw.below(4), draw.pick('-1', '2', '5')],
  (_, key) => ['STRLEN', key],
  (_, key) => ['EXISTS', key],
  (_, key) => ['DEL', key],
  (_, key) => ['UNLINK', key],
  (_, key) => ['GETDEL', key],
  (draw, key) => ['SET', key, draw.value(), 'GET'],
  (draw, key) => ['SET', key, draw.value(), draw.pick('NX', 'XX')],
];

export const COUNTER: readonly Form[] = [
  (_, key) => ['INCR', key],
  (_, key) => ['DECR', key],
  (draw, key) => ['INCRBY', key, String(draw.random.below(100) - 20)],
  (draw, key) => ['DECRBY', key, String(draw.random.below(100) - 20)],
  (_, key) => ['GET', key],
];

/** The sum of floats is rounded as the server does. */
export const FLOAT: readonly Form[] = [
  (draw, key) => ['INCRBYFLOAT', key, draw.pick('0.1', '3', '-0.75', '1e2', '0.333333')],
  (draw, key) => ['INCRBYFLOAT', key, draw.pick('0.2', 'x')],
  (_, key) => ['GET', key],
  (_, key) => ['DEL', key],
];

/** Times to live in every way that a command may give one. */
export const EXPIRING: readonly Form[] = [
  (draw, key) => ['SET', key, draw.value()],
  (_, key) => ['GET', key],
  (_, key) => ['GET', key],
  (_, key) => ['INCR', key],
  (_, key) => ['APPEND', key, '1'],
  (draw, key) => ['SET', key, '7', 'PX', draw.ms()],
  (draw, key) => ['SET', key, draw.value(), 'PX', draw.ms()],
  (draw, key) => ['SET', key, draw.value(), 'KEEPTTL'],
  (draw, key) => ['SET', key, draw.value(), draw.pick('NX', 'XX'), 'PX', draw.ms()],
  (draw, key) => ['PSETEX', key, draw.ms(), draw.value()],
  (draw, key) => ['PEXPIRE', key, draw.ms()],
  (draw, key) => ['PEXPIRE', key, draw.ms()],
  (_, key) => ['PERSIST', key],
  (draw, key) => ['GETEX', key, 'PX', draw.ms()],
  (_, key) => ['GETEX', key, 'PERSIST'],
  (_, key) => ['EXISTS', key],
  (_, key) => ['TTL', key],
  (_, key) => ['PTTL', key],
  (_, key) => ['DEL', key],
];

/** Expiries as timestamps of `now`, in Unix milliseconds. */
export const absolute = (now: number): readonly Form[] => {
  const at = (ms: string): string => String(Math.floor(now) + Number(ms));
  const second = (): string => String(Math.ceil(now / 1000));
  return [
    (draw, key) => ['SET', key, draw.value(), 'PXAT', at(draw.ms())],
    (draw, key) => ['SET', key, draw.value(), 'EXAT', second()],
    (draw, key) => ['PEXPIREAT', key, at(draw.ms())],
    (_, key) => ['EXPIREAT', key, second()],
    (draw, key) => ['GETEX', key, 'PXAT', at(draw.ms())],
    (_, key) => ['PEXPIREAT', key, '1'],
  ];
};
