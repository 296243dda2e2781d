/** Sorted sets, and commands that wait for a member. */
import type { Command, Draw, Form } from '../draw.js';

const member = (draw: Draw): string => `m${draw.random.below(6)}`;
const score = (draw: Draw): string => draw.pick('1', '2', '2.5', '-3', '10', '0.1', '-0');

export const SORTED_SET: readonly Form[] = [
  (draw, key) => ['ZADD', key, score(draw), member(draw)],
  (draw, key) => ['ZADD', key, score(draw), member(draw), score(draw), member(draw)],
  (draw, key) => ['ZADD', key, draw.pick('NX', 'XX', 'GT', 'LT'), score(draw), member(draw)],
  (draw, key) => ['ZADD', key, 'CH', score(draw), member(draw)],
  (draw, key) => ['ZADD', key, 'XX', 'INCR', score(draw), member(draw)],
  (draw, key) => ['ZINCRBY', key, score(draw), member(draw)],
  (draw, key) => ['ZREM', key, member(draw), member(draw)],
  (draw, key) => ['ZSCORE', key, member(draw)],
  (draw, key) => ['ZRANK', key, member(draw)],
  (_, key) => ['ZCARD', key],
  (draw, key) => ['ZCOUNT', key, '2', draw.pick('5', '+inf')],
  (_, key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
  (draw, key) => [draw.pick('ZPOPMIN', 'ZPOPMAX'), key],
  (draw, key) => [draw.pick('ZPOPMIN', 'ZPOPMAX'), key, '2'],
  (_, key) => ['ZREMRANGEBYRANK', key, '0', '0'],
  (_, key) => ['ZREMRANGEBYSCORE', key, '-inf', '(2'],
];

/** On the keys `z…`; those that block wait for any writer of them. */
export function severalSortedSets(draw: Draw): Command {
  const [to, one, other] = [draw.key('z'), draw.key('z'), draw.key('z')];
  switch (draw.random.below(8)) {
    case 0:
      return draw.of(['ZRANGESTORE', to, one, '0', draw.pick('-1', '1')], to, one);
    case 1:
      return draw.of([draw.pick('ZUNIONSTORE', 'ZINTERSTORE', 'ZDIFFSTORE'), to, '2', one, other], to, one, other);
    case 2:
      return draw.of(['ZUNION', '2', one, other, 'WITHSCORES'], one, other);
    case 3:
      return draw.of(['ZRANDMEMBER', one, ...draw.pick([], ['2'], ['-3', 'WITHSCORES'])], one);
    case 4:
      return draw.of(['ZSCAN', one, '0'], one);
    case 5:
      return draw.of([draw.pick('BZPOPMIN', 'BZPOPMAX'), one, draw.seconds()], one);
    default:
      return draw.of([draw.pick('BZPOPMIN', 'BZPOPMAX'), one, other, draw.seconds()], one, other);
  }
}
