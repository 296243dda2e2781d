/**
 * What the applications of the rehearsal hold, and how it is written and read: each key has one writer, who knows what
 * must be there.
 */

export const KINDS = ['session', 'rl', 'board', 'misc'] as const;
export type Kind = (typeof KINDS)[number];
export type Command = readonly [name: string, ...args: string[]];

/** Keys of each kind that are there from the start. */
export const KEYS = 4_000;
/** Of these, so many are written while the migration runs; the others have to stay as they are. */
export const BUSY = 150;

export const keyOf = (kind: Kind, index: number): string => `${kind}:${index}`;
/** What stands in a key for its number: a session's request count, a counter, a score, a text's suffix. */
export const seedOf = (index: number): number => (index * 7919) % 10_000;
/** Every tenth text has a time to live. */
export const hasTtl = (kind: Kind, index: number): boolean => kind === 'misc' && index % 10 === 0;
const DAY_S = 86_400;

/** How the key gets `value`, whatever it held. */
export function put(kind: Kind, index: number, value: number): Command {
  const key = keyOf(kind, index);
  switch (kind) {
    case 'session':
      return ['HSET', key, 'user', `u${index}`, 'n', String(value)];
    case 'rl':
      return ['SET', key, String(value)];
    case 'board':
      return ['ZADD', key, String(value), 'first', String(value + 1), 'second'];
    case 'misc':
      return ['SET', key, `text-${value}`, ...(hasTtl(kind, index) ? ['EX', String(DAY_S)] : [])];
  }
}

/** The next write, when the key holds `value`: it holds `value + 1` afterwards. */
export const step = (kind: Kind, index: number, value: number): Command =>
  kind === 'rl' ? ['INCR', keyOf(kind, index)] : put(kind, index, value + 1);

export function read(kind: Kind, index: number): Command {
  const key = keyOf(kind, index);
  switch (kind) {
    case 'session':
      return ['HMGET', key, 'user', 'n'];
    case 'board':
      return ['ZRANGE', key, '0', '-1', 'WITHSCORES'];
    case 'rl':
    case 'misc':
      return ['GET', key];
  }
}

/** The number in a reply to `read`; null where the key is not as any of our writes leaves it. */
export function valueOf(kind: Kind, index: number, reply: unknown): number | null {
  const words = (Array.isArray(reply) ? reply.flat() : [reply]).map(String);
  const number = (text: string | undefined, prefix = ''): number | null =>
    text?.startsWith(prefix) && /^\d+$/.test(text.slice(prefix.length)) ? Number(text.slice(prefix.length)) : null;
  switch (kind) {
    case 'session':
      return words[0] === `u${index}` ? number(words[1]) : null;
    case 'rl':
      return number(words[0]);
    case 'board':
      return words.length === 4 &&
        words[0] === 'first' &&
        words[2] === 'second' &&
        Number(words[3]) === Number(words[1]) + 1
        ? number(words[1])
        : null;
    case 'misc':
      return number(words[0], 'text-');
  }
}

/** By key: the value that it has to have. */
export type Expected = Record<string, number>;

export function seeded(): Expected {
  const expected: Expected = {};
  for (const kind of KINDS) for (let index = 0; index < KEYS; index++) expected[keyOf(kind, index)] = seedOf(index);
  return expected;
}
