/** Sets. */
import type { Command, Draw, Form } from '../draw.js';

const member = (draw: Draw): string => `m${draw.random.below(6)}`;

export const SET: readonly Form[] = [
  (draw, key) => ['SADD', key, member(draw)],
  (draw, key) => ['SADD', key, member(draw), member(draw)],
  (draw, key) => ['SREM', key, member(draw)],
  (draw, key) => ['SREM', key, member(draw), member(draw)],
  (_, key) => ['SPOP', key],
  (draw, key) => ['SPOP', key, draw.below(4)],
  (draw, key) => ['SISMEMBER', key, member(draw)],
  (draw, key) => ['SMISMEMBER', key, member(draw), member(draw)],
  (draw, key) => ['SRANDMEMBER', key, ...draw.pick([], ['2'], ['-3'])],
  (_, key) => ['SCARD', key],
  (_, key) => ['SMEMBERS', key],
];

export function severalSets(draw: Draw): Command {
  const [to, one, other] = [draw.key('t'), draw.key('t'), draw.key('t')];
  switch (draw.random.below(5)) {
    case 0:
      return draw.of(['SMOVE', one, to, member(draw)], one, to);
    case 1:
    case 2:
      return draw.of([draw.pick('SINTERSTORE', 'SUNIONSTORE', 'SDIFFSTORE'), to, one, other], to, one, other);
    case 3:
      return draw.of([draw.pick('SINTER', 'SUNION', 'SDIFF'), one, other], one, other);
    default:
      return draw.of(['SSCAN', one, '0'], one);
  }
}
