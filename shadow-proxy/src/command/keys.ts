/** Finds the keys of a command, and the access to each. They are read from the table into a list that is reused. */

/** The command may touch keys that its arguments do not name. */
export const UNKNOWN_KEYS = -1;
/** The server will refuse the command because of its arguments, without touching any key. */
export const MALFORMED = -2;

/** The result depends on the key's earlier value. */
export const READS = 1;
/** The key may be changed, created or removed. */
export const WRITES = 2;

/** Keys of one command. Entries up to the count that `keysOf` returned are valid until its next call. */
export class KeyList {
  /** Positions of the keys among the arguments. */
  readonly index: number[] = [];
  /** READS, WRITES, or both (3). */
  readonly access: number[] = [];
  /** With UNKNOWN_KEYS: how many of the keys are known anyway. */
  known = 0;

  /** Sets the entry `at`. @returns the number of entries */
  put(at: number, index: number, access: number): number {
    this.index[at] = index;
    this.access[at] = access;
    return at + 1;
  }
}

/** One specification of keys, as `COMMAND` of Redis 7 gives it (documentation: "Command key specifications"). */
export interface KeySpec {
  readonly access: number;
  /** Index of the first key; if `counted`, the index from which `last` and `numkeys` count. */
  readonly begin: number;
  /** Whether the number of keys is an argument. */
  readonly counted: boolean;
  /** If counted: the minimum number. */
  readonly least: number;
  /**
   * Range: the last key, relative to the first; if negative, relative to the end (-1 is the last argument). Counted:
   * offset of the number.
   */
  readonly last: number;
  /** If counted: offset of the first key. */
  readonly first: number;
  readonly step: number;
}

/** The data that `keysOf` needs about a command. */
export interface Keyed {
  readonly arity: number;
  readonly keySpecs: readonly KeySpec[];
  /** Finds the keys if no specifications do. */
  readonly readKeys: KeyReader | null;
}

export type KeyReader = (
  frame: Buffer,
  argStart: readonly number[],
  argEnd: readonly number[],
  argc: number,
  out: KeyList,
) => number;

/** Whether the server accepts this number of arguments, including the name (and subcommand). */
export const arityHolds = (arity: number, argc: number): boolean => (arity < 0 ? argc >= -arity : argc === arity);

/**
 * Fills `out` with the keys of a command. @returns the number of keys, or UNKNOWN_KEYS, or MALFORMED (both negative)
 */
export function keysOf(
  spec: Keyed,
  frame: Buffer,
  argStart: readonly number[],
  argEnd: readonly number[],
  argc: number,
  out: KeyList,
): number {
  if (!arityHolds(spec.arity, argc)) return MALFORMED;
  if (spec.readKeys !== null) return spec.readKeys(frame, argStart, argEnd, argc, out);
  const specs = spec.keySpecs;
  let count = 0;
  for (let i = 0; i < specs.length; i++) {
    const { access, begin, counted, least, last, first, step } = specs[i];
    let from = begin;
    let to = last < 0 ? argc + last : begin + last;
    if (counted) {
      const number = countAt(frame, argStart[begin + last], argEnd[begin + last]);
      from = begin + first;
      to = from + (number - 1) * step;
      if (number < least || to >= argc) return MALFORMED;
    }
    for (let at = from; at <= to; at += step) count = out.put(count, at, access);
  }
  return count;
}

/**
 * The decimal number in `frame[start, end)`, in the only form that Redis accepts for a count; -1 for any other text.
 */
export function countAt(frame: Buffer, start: number, end: number): number {
  if (end <= start || end - start > 9 || (frame[start] === ZERO && end - start > 1)) return -1;
  let number = 0;
  for (let i = start; i < end; i++) {
    const digit = frame[i] - ZERO;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number;
}

const ZERO = 48;

/** Whether `frame[start, end)` is `word` in any case; `word` must be in lower case. */
export function isWord(frame: Buffer, start: number, end: number, word: string): boolean {
  if (end - start !== word.length) return false;
  for (let i = 0; i < word.length; i++) if (lower(frame[start + i]) !== word.charCodeAt(i)) return false;
  return true;
}

/** An ASCII letter in lower case; any other byte unchanged. */
export const lower = (byte: number): number => (byte >= 65 && byte <= 90 ? byte + 32 : byte);
