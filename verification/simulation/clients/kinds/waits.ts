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

/** One element wakes one client: of those that are woken together no reply shows the order. */
export function certainWaits(draw: Draw): Command {
  const command = waits(draw);
  const [name, , ...elements] = command.args;
  return name === 'BLMOVE' || (name === 'RPUSH' && elements.length > 1) ? certainWaits(draw) : command;
}

/** Clients that wait for seconds, on the keys `j…`, `i…` and `g…`, and those that push there; nobody pushes to `n…`. */
export function sleepers(draw: Draw): Command {
  const [list, other, sorted, stream, empty] = [
    draw.key('j'),
    draw.key('j'),
    draw.key('i'),
    draw.key('g'),
    draw.key('n'),
  ];
  const value = draw.value();
  const seconds = draw.pick('1', '2');
  const made = draw.fresh();
  switch (draw.random.below(14)) {
    case 0:
      return draw.of(['BLPOP', list, seconds], list);
    case 1:
      return draw.of(['BRPOP', list, other, seconds], list, other);
    case 2:
      return draw.of(['BLMOVE', list, made, 'LEFT', 'RIGHT', seconds], list, made);
    case 3:
      return draw.of(['BLPOP', empty, list, seconds], empty, list);
    case 4:
      return draw.of(['BZPOPMIN', sorted, seconds], sorted);
    case 5:
      return draw.of(['XREAD', 'BLOCK', draw.pick('1000', '2000'), 'STREAMS', stream, '$'], stream);
    case 6:
      return draw.of(['BRPOP', empty, draw.pick('0.05', '0.4', '2', '2')], empty);
    case 7:
      return draw.of(['ZADD', sorted, draw.below(9), value], sorted);
    case 8:
      return draw.of(['XADD', stream, 'MAXLEN', '5', '*', 'f', value], stream);
    case 9:
      return draw.of(['LPOP', list], list);
    default:
      return draw.of([draw.pick('LPUSH', 'RPUSH'), list, value], list);
  }
}
