/** Keys of which another region is the only writer: `u…` are on the target, `y…` on the source alone. */
import type { Command, Draw } from '../draw.js';

export function secondWriter(draw: Draw): Command {
  const [theirs, own, ours] = [draw.key('u'), draw.key('y'), draw.key('s')];
  switch (draw.random.below(8)) {
    case 0:
      return draw.of(['INCR', theirs], theirs);
    case 1:
      return draw.of(['GET', theirs], theirs);
    case 2:
      return draw.of(['COPY', theirs, ours, 'REPLACE'], theirs, ours);
    case 3:
      return draw.of(['COPY', ours, theirs, 'REPLACE'], ours, theirs);
    case 4:
      return draw.of(['INCR', own], own);
    case 5:
      return draw.of(['GET', own], own);
    case 6:
      return draw.of(['FLUSHDB']);
    default:
      return draw.of(['DEL', ours, theirs], ours, theirs);
  }
}
