/** Redis's glob patterns over bytes: `*`, `?`, `[a-z]`, `[^x]`, `\x`. Source: stringmatchlen in Redis's util.c. */

const [STAR, QUESTION, OPEN, CLOSE, CARET, DASH, BACKSLASH] = [42, 63, 91, 93, 94, 45, 92];

/** Matches the bytes `key[start, end)`. */
export type Matcher = (key: Buffer, start: number, end: number) => boolean;

/** Compiles a pattern. The common forms `prefix*` and plain names become a comparison of bytes. */
export function compileGlob(pattern: string): Matcher {
  const bytes = Buffer.from(pattern);
  const special = bytes.findIndex((byte) => byte === STAR || byte === QUESTION || byte === OPEN || byte === BACKSLASH);
  if (special === -1)
    return (key, start, end) => end - start === bytes.length && startsWith(bytes, bytes.length, key, start);
  if (special === bytes.length - 1 && bytes[special] === STAR) {
    return (key, start, end) => end - start >= special && startsWith(bytes, special, key, start);
  }
  return (key, start, end) => matches(bytes, 0, key, start, end);
}

function startsWith(prefix: Buffer, length: number, key: Buffer, start: number): boolean {
  for (let i = 0; i < length; i++) if (prefix[i] !== key[start + i]) return false;
  return true;
}

function matches(pattern: Buffer, from: number, key: Buffer, start: number, end: number): boolean {
  let p = from;
  let k = start;
  // Where to continue when a byte does not match: after the last star, which takes one more byte.
  let starPattern = -1;
  let starKey = 0;
  while (k < end || p < pattern.length) {
    if (p < pattern.length && pattern[p] === STAR) {
      starPattern = ++p;
      starKey = k;
      continue;
    }
    const next = p < pattern.length && k < end ? matchOne(pattern, p, key[k]) : -1;
    if (next !== -1) {
      p = next;
      k++;
    } else if (starPattern !== -1 && starKey < end) {
      k = ++starKey;
      p = starPattern;
    } else {
      return false;
    }
  }
  return true;
}

/** The offset after the pattern's element at `p` if `byte` matches it, else -1. */
function matchOne(pattern: Buffer, p: number, byte: number): number {
  if (pattern[p] === QUESTION) return p + 1;
  if (pattern[p] === BACKSLASH && p + 1 < pattern.length) return pattern[p + 1] === byte ? p + 2 : -1;
  if (pattern[p] !== OPEN) return pattern[p] === byte ? p + 1 : -1;
  let at = p + 1;
  const negated = pattern[at] === CARET;
  if (negated) at++;
  let found = false;
  for (; at < pattern.length && pattern[at] !== CLOSE; at++) {
    if (pattern[at] === BACKSLASH && at + 1 < pattern.length) {
      if (pattern[++at] === byte) found = true;
    } else if (pattern[at + 1] === DASH && at + 2 < pattern.length) {
      const [low, high] = [pattern[at], pattern[at + 2]].sort((a, b) => a - b);
      if (byte >= low && byte <= high) found = true;
      at += 2;
    } else if (pattern[at] === byte) {
      found = true;
    }
  }
  return found !== negated ? at + 1 : -1;
}
