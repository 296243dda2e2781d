/**
 * Commands whose keys, or the access to them, depend on options. The options are read as the commands themselves do
 * (sort.c, geo.c, t_stream.c, cluster.c, t_string.c, bitops.c of Redis 7.0).
 */
import { isWord, MALFORMED, READS, UNKNOWN_KEYS, WRITES, type KeyReader } from './keys.js';

const ASTERISK = 42;

/** SORT key [BY p] [LIMIT o n] [GET p]… [STORE key]: a pattern with `*` names keys that depend on the sorted values. */
export const sortKeys =
  (mayStore: boolean): KeyReader =>
  (frame, argStart, argEnd, argc, out) => {
    const is = (at: number, word: string): boolean => isWord(frame, argStart[at], argEnd[at], word);
    let stored = 0;
    let hidden = false;
    for (let i = 2; i < argc; i++) {
      if (is(i, 'asc') || is(i, 'desc') || is(i, 'alpha')) continue;
      if (is(i, 'limit')) i += 2;
      else if (is(i, 'by') || is(i, 'get')) {
        i++;
        if (i < argc) hidden ||= frame.subarray(argStart[i], argEnd[i]).includes(ASTERISK);
      } else if (mayStore && is(i, 'store')) stored = ++i;
      else return MALFORMED;
      if (i >= argc) return MALFORMED;
    }
    const read = out.put(0, 1, READS);
    const count = stored === 0 ? read : out.put(read, stored, WRITES);
    if (!hidden) return count;
    out.known = count;
    return UNKNOWN_KEYS;
  };

/**
 * GEORADIUS[BYMEMBER] … [STORE key] [STOREDIST key]: the command uses the last of several options (`COMMAND GETKEYS`
 * differs).
 */
export const georadiusKeys =
  (fixed: number): KeyReader =>
  (frame, argStart, argEnd, argc, out) => {
    let stored = 0;
    for (let i = fixed; i < argc - 1; i++) {
      if (!isWord(frame, argStart[i], argEnd[i], 'store') && !isWord(frame, argStart[i], argEnd[i], 'storedist'))
        continue;
      stored = ++i;
    }
    const count = out.put(0, 1, READS);
    return stored === 0 ? count : out.put(count, stored, WRITES);
  };

/**
 * XREAD, XREADGROUP: after STREAMS, there are as many keys as IDs. Reading for a group changes the group's pending
 * entries.
 */
export const streamKeys =
  (ofGroup: boolean): KeyReader =>
  (frame, argStart, argEnd, argc, out) => {
    const is = (at: number, word: string): boolean => isWord(frame, argStart[at], argEnd[at], word);
    let group = false;
    for (let i = 1; i < argc; i++) {
      if (is(i, 'block') || is(i, 'count') || is(i, 'maxcount') || is(i, 'maxsize')) i++;
      else if (ofGroup && is(i, 'claim')) i++;
      else if (is(i, 'group')) {
        group = true;
        i += 2;
      } else if (is(i, 'streams')) {
        const rest = argc - i - 1;
        if (rest === 0 || rest % 2 !== 0 || group !== ofGroup) return MALFORMED;
        for (let key = 0; key < rest / 2; key++) out.put(key, i + 1 + key, ofGroup ? READS | WRITES : READS);
        return rest / 2;
      } else if (!is(i, 'noack')) return MALFORMED;
    }
    return MALFORMED;
  };

/** MIGRATE host port key db timeout … [KEYS key…]; the first key is empty if KEYS is given. */
export const migrateKeys: KeyReader = (frame, argStart, argEnd, argc, out) => {
  if (argStart[3] === argEnd[3]) {
    for (let i = 6; i < argc; i++) {
      if (isWord(frame, argStart[i], argEnd[i], 'auth')) i++;
      else if (isWord(frame, argStart[i], argEnd[i], 'auth2')) i += 2;
      else if (isWord(frame, argStart[i], argEnd[i], 'keys')) {
        for (let key = i + 1; key < argc; key++) out.put(key - i - 1, key, READS | WRITES);
        return argc - i - 1;
      }
    }
  }
  return out.put(0, 3, READS | WRITES);
};

/** SET reads the key only if an option asks for the old value. */
export const setKeys: KeyReader = (frame, argStart, argEnd, argc, out) => {
  for (let i = 3; i < argc; i++) {
    const start = argStart[i];
    const end = argEnd[i];
    if (
      isWord(frame, start, end, 'get') ||
      isWord(frame, start, end, 'nx') ||
      isWord(frame, start, end, 'xx') ||
      isWord(frame, start, end, 'keepttl') ||
      isWord(frame, start, end, 'ifeq') ||
      isWord(frame, start, end, 'ifne') ||
      isWord(frame, start, end, 'ifdeq') ||
      isWord(frame, start, end, 'ifdne')
    ) {
      return out.put(0, 1, READS | WRITES);
    }
  }
  return out.put(0, 1, WRITES);
};

/** BITFIELD writes unless it has only GET. */
export const bitfieldKeys: KeyReader = (frame, argStart, argEnd, argc, out) => {
  let at = 2;
  while (at < argc) {
    if (isWord(frame, argStart[at], argEnd[at], 'get')) at += 3;
    else if (isWord(frame, argStart[at], argEnd[at], 'overflow')) at += 2;
    else return out.put(0, 1, READS | WRITES);
  }
  return at > argc ? MALFORMED : out.put(0, 1, READS);
};
