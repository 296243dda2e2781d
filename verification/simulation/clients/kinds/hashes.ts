/** Hashes. */
import type { Draw, Form } from '../draw.js';

const field = (draw: Draw): string => `f${draw.random.below(4)}`;

export const HASH: readonly Form[] = [
  (draw, key) => ['HSET', key, field(draw), draw.value()],
  (draw, key) => {
    const value = draw.value();
    return ['HSET', key, field(draw), value, 'g', value];
  },
  (draw, key) => ['HSETNX', key, field(draw), draw.value()],
  (draw, key) => ['HMSET', key, field(draw), draw.value()],
  (draw, key) => ['HGET', key, field(draw)],
  (draw, key) => ['HMGET', key, field(draw), 'g'],
  (draw, key) => ['HEXISTS', key, field(draw)],
  (draw, key) => ['HDEL', key, field(draw)],
  (draw, key) => ['HDEL', key, field(draw), 'g'],
  (_, key) => ['HINCRBY', key, 'n', '3'],
  (_, key) => ['HGETALL', key],
  (_, key) => ['HKEYS', key],
  (_, key) => ['HVALS', key],
  (_, key) => ['HLEN', key],
  (_, key) => ['DEL', key],
];

/** Replies that another server need not give. */
export const HASH_BY_CHANCE: readonly Form[] = [
  (draw, key) => ['HINCRBYFLOAT', key, 'x', draw.pick('0.1', '2.5', '-1e1')],
  (draw, key) => ['HRANDFIELD', key, ...draw.pick([], ['2'], ['-3', 'WITHVALUES'])],
  (_, key) => ['HSCAN', key, '0'],
];
