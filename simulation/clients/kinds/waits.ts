/** Clients that wait for elements, many without a limit, and leave; and those that push. */
import type { Command, Draw } from '../draw.js';

/** Commands that block for longer than a client may be idle. */
export const longWait = (draw: Draw): Command => {
  const key = draw.key('n');
  return draw.of(['BLPOP', key, draw.pick('1.5', '2.5')], key);
};

export function waits(draw: Draw): Command {
  const [key, other] = [draw.key('w'), draw.key('w')];
  const value = draw.value();
  const leaves = { patienceMs: 1 + draw.random.share() * draw.random.pick([5, 60]) };
  switch (draw.random.below(12)) {
    case 0:
      return { ...draw.of(['BLPOP', key, '0'], key), ...leaves };
    case 1:
      return { ...draw.of(['BRPOP', key, other, '0'], key, other), ...leaves };
    case 2:
      return { ...draw.of(['BLMOVE', key, other, 'LEFT', 'RIGHT', '0'], key, other), ...leaves };
    case 3:
      return { ...draw.of(['BLPOP', key, '0'], key), finishes: true };
    case 4:
      return draw.of(['BRPOP', key, other, draw.seconds()], key, other);
    case 5:
      return draw.of(['BLPOP', key, draw.seconds()], key);
    case 6:
      return draw.of([draw.pick('LLEN', 'LPOP'), key], key);
    case 7:
      return draw.of(['LRANGE', key, '0', '-1'], key);
    case 8:
      return draw.of(['RPUSH', key, value, `${value}+`, `${value}++`], key);
    default:
      return draw.of([draw.pick('LPUSH', 'RPUSH'), key, value], key);
  }
}
