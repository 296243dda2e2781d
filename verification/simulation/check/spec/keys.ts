/** Commands of keys of any type, and of several keys. */
import { bulk, Refused, type Run, type Space } from './space.js';

const count =
  (of: (space: Space, key: string) => boolean): Run =>
  (space, [, ...keys]) =>
    keys.filter((key) => of(space, key)).length;

const remove = count((space, key) => space.remove(key));
const has = count((space, key) => space.has(key));

const pairs = (args: readonly string[]): [string, string][] =>
  Array.from({ length: (args.length - 1) / 2 }, (_, i) => [args[2 * i + 1], args[2 * i + 2]]);

const rename =
  (onlyNew: boolean): Run =>
  (space, [, from, to]) => {
    if (!space.has(from)) throw new Refused('ERR');
    if (onlyNew && space.has(to)) return 0;
    if (from !== to) {
      space.copy(from, to);
      space.remove(from);
    }
    return onlyNew ? 1 : '+OK';
  };

export const KEY_RUNS: Readonly<Record<string, Run>> = {
  DEL: remove,
  UNLINK: remove,
  EXISTS: has,
  TOUCH: has,
  MSET(space, args) {
    for (const [key, value] of pairs(args)) space.put(key, 'string', value, false);
    return '+OK';
  },
  MSETNX(space, args) {
    if (pairs(args).some(([key]) => space.has(key))) return 0;
    for (const [key, value] of pairs(args)) space.put(key, 'string', value, false);
    return 1;
  },
  MGET: (space, [, ...keys]) => keys.map((key) => bulk(space.get(key, 'string'))),
  RENAME: rename(false),
  RENAMENX: rename(true),
  COPY(space, [, from, to, replace]) {
    if (from === to) throw new Refused('ERR');
    if (!space.has(from) || (replace === undefined && space.has(to))) return 0;
    space.copy(from, to);
    return 1;
  },
};
