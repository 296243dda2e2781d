/** Reads of the keys `o…`, which only the target has: the proxy has not written them. */
import type { Command, Draw } from '../draw.js';

export function foreign(draw: Draw): Command {
  const [key, other, own] = [draw.key('o'), draw.key('o'), draw.key('s')];
  switch (draw.random.below(5)) {
    case 0:
      return draw.of(['GET', key], key);
    case 1:
      return draw.of(['MGET', own, key, other], own, key, other);
    case 2:
      return draw.of(['EXISTS', key], key);
    case 3:
      return draw.of(['COPY', key, own, 'REPLACE'], key, own);
    default:
      return draw.of(['STRLEN', key], key);
  }
}
