/** MULTI with commands of many kinds, WATCH, and what a transaction refuses. */
import { partsOf } from '../../world/key-name.js';
import type { Command, Draw } from '../draw.js';
import { HASH } from './hashes.js';
import { anyKey, FORBIDDEN, large, several } from './keys.js';
import { blocking, LIST } from './lists.js';
import { lock, script } from './scripts.js';
import { SET } from './sets.js';
import { SORTED_SET } from './sorted-sets.js';
import { STREAM } from './streams.js';
import { COUNTER, EXPIRING, STRING } from './strings.js';

const INSIDE: readonly ((draw: Draw) => Command)[] = [
  (draw) => draw.form(STRING, draw.key('s')),
  (draw) => draw.form(STRING, draw.key('s')),
  (draw) => draw.form(COUNTER, draw.key('c')),
  (draw) => draw.form(LIST, draw.key('l')),
  (draw) => draw.form(LIST, draw.key('b')),
  (draw) => draw.form(EXPIRING, draw.key('e')),
  (draw) => draw.form(HASH, draw.key('h')),
  (draw) => draw.form(SET, draw.key('t')),
  (draw) => draw.form(SORTED_SET, draw.key('z')),
  (draw) => draw.form(STREAM, draw.key('x')),
  large,
  several,
  // Does not block in a transaction.
  blocking,
  script,
  lock,
  // The proxy answers the second one.
  (draw) => draw.pick(draw.of(['PUBLISH', 'ch2', draw.value()]), draw.of(['CLIENT', 'GETNAME'])),
  // Mostly of the wrong type: an error among the replies of EXEC.
  (draw) => draw.form(draw.random.pick([STRING, LIST, HASH]), anyKey(draw)),
];

/** EXEC answers EXECABORT after one of these: a server refuses some, and the proxy others. */
const REFUSED: readonly (readonly string[])[] = [['GET'], ['LPUSH', 'b1'], ['NOSUCH', 'b1'], ...FORBIDDEN];

/** On keys whose histories are checked: what their specification knows. */
const FOLLOWED: readonly ((draw: Draw) => Command)[] = [
  (draw) => draw.form(STRING, draw.key('s')),
  (draw) => draw.form(LIST, draw.key('l')),
  (draw) => draw.form(HASH, draw.key('h')),
  (draw) => draw.form(SET, draw.key('t')),
  (draw) => draw.form(SORTED_SET, draw.key('z')),
  several,
];

/** On keys of other kinds, too: what certainly does the same on both servers. */
const CERTAIN: readonly ((draw: Draw) => Command)[] = [
  (draw) => draw.form(STRING, draw.key('s')),
  (draw) => draw.form(COUNTER, draw.key('c')),
  (draw) => draw.form(HASH, draw.key('h')),
  (draw) => draw.form(SET, draw.key('t')),
  (draw) => {
    const list = draw.key('w');
    return draw.of(['RPUSH', list, draw.value()], list);
  },
  several,
];

export const certainTransaction = (draw: Draw): readonly Command[] => transaction(draw, CERTAIN);

/** Transactions, and single commands that meet them, on one group of keys. */
export const followedTransaction = (draw: Draw): Command | readonly Command[] =>
  draw.random.chance(0.5) ? draw.random.pick(FOLLOWED)(draw) : transaction(draw, FOLLOWED);

export function transaction(draw: Draw, kinds = INSIDE): readonly Command[] {
  const { random } = draw;
  const inside = Array.from({ length: 1 + random.below(4) }, () => random.pick(kinds)(draw));
  const isRefused = random.chance(0.05);
  if (isRefused) inside.push(draw.of(random.pick(REFUSED)));
  const keys = inside.flatMap((each) => each.keys);
  const names = [...new Set(keys.map((key) => partsOf(key).name))];
  const watches = names.length > 0 && random.chance(0.3);
  const unwatches = watches && random.chance(0.1);
  return [
    ...(watches ? [draw.of(['WATCH', ...names], ...names)] : []),
    ...(watches && random.chance(0.3) ? [draw.of(['EXISTS', names[0]], names[0])] : []),
    ...(unwatches ? [draw.of(['UNWATCH'], ...names)] : []),
    draw.of(['MULTI']),
    ...inside.map((each) => ({ ...each, inTransaction: true })),
    random.chance(0.1)
      ? { args: ['DISCARD'], keys }
      : {
          args: ['EXEC'],
          keys: isRefused ? [] : [...new Set(keys)],
          queued: inside.map(({ args }) => args),
          watches: watches && !unwatches,
        },
  ];
}

const LARGE = 'x'.repeat(250_000);

/** What a client sends next that queues megabytes. @param queued since its MULTI; absent where there was none */
export function hoarded(draw: Draw, queued?: readonly (readonly string[])[]): Command {
  if (queued === undefined) return draw.of(['MULTI']);
  if (queued.length < 16) return { ...draw.of(['SET', 'hoard', LARGE], 'hoard'), inTransaction: true };
  return { args: ['EXEC'], keys: [], queued };
}
