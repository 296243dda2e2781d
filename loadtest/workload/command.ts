/** The effect of a profile's command on counters, so that their sum can be checked at the end. Pure. */

/** A command that adds to a counter. */
export interface Counter {
  /** By how much the counter changes each time; negative for DECR; NaN if it is no number. */
  readonly amount: number;
  /** The type of key that holds the counter. */
  readonly in: 'string' | 'hash' | 'zset';
  /** As in the profile, with placeholders. */
  readonly key: string;
  /** The field of a hash. For a sorted set, all members are added up. */
  readonly field?: string;
}

export const wordsOf = (command: string): string[] => command.trim().split(/\s+/);

/** The command's name in capital letters. */
export const verbOf = (command: string): string => wordsOf(command)[0].toUpperCase();

/** Null for a command that counts nothing. */
export function counterOf(command: string): Counter | null {
  const [, key, second, third] = wordsOf(command);
  switch (verbOf(command)) {
    case 'INCR':
      return { amount: 1, in: 'string', key };
    case 'DECR':
      return { amount: -1, in: 'string', key };
    case 'INCRBY':
      return { amount: Number(second), in: 'string', key };
    case 'DECRBY':
      return { amount: -Number(second), in: 'string', key };
    case 'HINCRBY':
      return { amount: Number(third), in: 'hash', key, field: second };
    case 'ZINCRBY':
      return { amount: Number(second), in: 'zset', key };
    default:
      return null;
  }
}

/** Replaces `__prefix__` and `__expiry__`; the load generator replaces `__key__` and `__data__`. */
export const fill = (command: string, prefix: string, expiry: number | undefined): string =>
  command.replaceAll('__prefix__', prefix).replaceAll('__expiry__', `${expiry}`);
