/**
 * Commands on keys that only the target has at first, and that the proxy has not written: reads of the keys `o…`, and
 * commands that add to one of the keys `w…`, or take a value from it.
 */
import type { Command, Draw } from '../draw.js';

/** How many keys `w…` there are. */
export const ADDED_TO = 60;

const FORMS = 4;

/** A command that adds an element to the key, or makes the key. Its reply does not show whether the key existed. */
export function added(number: number, element: string): readonly string[] {
  const key = `w${number}`;
  const forms = [
    ['HSET', key, element, 'v'],
    ['SADD', key, element],
    ['ZADD', key, '1', element],
    ['RPUSH', key, element],
  ];
  return forms[number % FORMS];
}

export function foreign(draw: Draw): Command {
  const [key, other, own] = [draw.key('o'), draw.key('o'), draw.key('s')];
  const number = draw.random.below(ADDED_TO);
  const written = `w${number}`;
  switch (draw.random.below(11)) {
    case 0:
      return draw.of(['GET', key], key);
    case 1:
      return draw.of(['MGET', own, key, other], own, key, other);
    case 2:
      return draw.of(['EXISTS', key], key);
    case 3:
      return draw.of(['COPY', key, own, 'REPLACE'], key, own);
    case 4:
      return draw.of(['STRLEN', key], key);
    case 5:
      return draw.of([draw.pick('COPY', 'RENAME'), written, own], written, own);
    case 6:
      return draw.of(['SUNIONSTORE', draw.key('t'), draw.key('t'), written], written);
    case 7: {
      const [from, to] = [draw.key('b'), `w${number - (number % FORMS) + FORMS - 1}`];
      return draw.of(['BLMOVE', from, to, 'LEFT', 'RIGHT', draw.seconds()], from, to);
    }
    default:
      return draw.of(added(number, draw.value()), written);
  }
}
