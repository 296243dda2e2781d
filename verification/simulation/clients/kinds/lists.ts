/** Lists, and commands that wait for an element. */
import type { Command, Draw, Form } from '../draw.js';

export const LIST: readonly Form[] = [
  (draw, key) => ['RPUSH', key, draw.value()],
  (draw, key) => ['LPUSH', key, draw.value()],
  (draw, key) => {
    const value = draw.value();
    return ['RPUSH', key, value, `${value}+`];
  },
  (draw, key) => ['RPUSHX', key, draw.value()],
  (_, key) => ['LPOP', key],
  (_, key) => ['RPOP', key],
  (_, key) => ['LPOP', key, '2'],
  (_, key) => ['RPOP', key, '2'],
  (_, key) => ['LLEN', key],
  (_, key) => ['LRANGE', key, '0', '-1'],
  (draw, key) => ['LINDEX', key, draw.below(4)],
  (draw, key) => ['LSET', key, draw.below(3), draw.value()],
  (draw, key) => ['LTRIM', key, '0', draw.below(20)],
  (_, key) => ['LMOVE', key, key, 'LEFT', 'RIGHT'],
];

/** Commands that block, and those that wake them: all on the keys `b…`. */
export function blocking(draw: Draw): Command {
  const [key, other] = [draw.key('b'), draw.key('b')];
  const ends = [draw.pick('LEFT', 'RIGHT'), draw.pick('LEFT', 'RIGHT')];
  switch (draw.random.below(12)) {
    case 0:
      // KeyDB takes less than a millisecond for no limit.
      return draw.of(['BLPOP', key, draw.random.chance(0.2) ? '0.0004' : draw.seconds()], key);
    case 1:
      return draw.random.chance(0.5)
        ? draw.of(['BRPOP', key, draw.seconds()], key)
        : draw.of(['BRPOP', key, other, draw.seconds()], key, other);
    case 2:
      return draw.of(['BLPOP', key, other, draw.seconds()], key, other);
    case 3:
      return draw.of(['BLMOVE', key, other, ...ends, draw.seconds()], key, other);
    case 4:
      return draw.of(['BRPOPLPUSH', key, other, draw.seconds()], key, other);
    case 5:
      return draw.of(['LMOVE', key, other, ...ends], key, other);
    case 6:
      return draw.of(['RPOPLPUSH', key, other], key, other);
    case 7:
      return draw.of(['LPOP', key], key);
    case 8:
      return draw.of(['DEL', key], key);
    case 9:
      return draw.of(['RPUSH', key, draw.value()], key);
    default: {
      const value = draw.value();
      return draw.of(['LPUSH', key, value, `${value}+`], key);
    }
  }
}
