/** Several keys whose values say whose they are: `q…`. They may be of several workloads, and of several authorities. */
import type { Command, Draw } from '../draw.js';

export function pairs(draw: Draw): Command {
  // An open bracket begins no hash tag.
  const names = Array.from({ length: 2 + draw.random.below(3) }, () => draw.key(draw.pick('q', 'q', 'q', 'q{')));
  const set = (key: string): readonly string[] => [key, `${key}=${draw.value()}`];
  const [first, second] = names;
  switch (draw.random.below(8)) {
    case 0:
    case 1:
      return draw.of(['SET', ...set(first)], first);
    case 2:
    case 3:
      return draw.of(['MGET', ...names], ...names);
    case 4:
      return draw.of([draw.pick('MSET', 'MSETNX'), ...set(first), ...set(second)], first, second);
    case 5:
      return draw.of([draw.pick('EXISTS', 'TOUCH'), ...names], ...names);
    case 6:
      return draw.of(['GET', first], first);
    default:
      return draw.of([draw.pick('DEL', 'UNLINK'), ...names], ...names);
  }
}
