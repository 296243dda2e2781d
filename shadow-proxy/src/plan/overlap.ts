/**
 * Whether two glob patterns can match the same key: the patterns as automata, walked together.
 * Elements are those of `route/glob.ts`: `*`, `?`, `[a-z]`, `[^x]`, `\x`, over bytes.
 */

/** The bytes that one element of a pattern fits; null is a star, which fits any row of bytes. */
type Element = ReadonlySet<number> | null;

export function patternsOverlap(a: string, b: string): boolean {
  const [left, right] = [elements(a), elements(b)];
  const seen = new Set<number>();
  const walk = (i: number, j: number): boolean => {
    const state = i * (right.length + 1) + j;
    if (seen.has(state)) return false;
    seen.add(state);
    if (i === left.length && j === right.length) return true;
    const [x, y] = [left[i], right[j]];
    if (x === null && walk(i + 1, j)) return true;
    if (y === null && walk(i, j + 1)) return true;
    if (x === undefined || y === undefined || (x === null && y === null)) return false;
    if (!common(x, y)) return false;
    return walk(x === null ? i : i + 1, y === null ? j : j + 1);
  };
  return walk(0, 0);
}

/** Whether `outer` surely matches every key that `inner` matches: they are the same, or `outer` is `prefix*`. False may be a miss. */
export function patternIncludes(outer: string, inner: string): boolean {
  if (outer === inner) return true;
  const prefix = literalPrefix(outer);
  return outer === `${prefix}*` && literalPrefix(inner).startsWith(prefix);
}

const literalPrefix = (pattern: string): string => /^[^*?[\\]*/.exec(pattern)![0];

function common(x: Element, y: Element): boolean {
  if (x === null) return y!.size > 0;
  if (y === null) return x.size > 0;
  for (const byte of x) if (y.has(byte)) return true;
  return false;
}

const EVERY_BYTE: readonly number[] = Array.from({ length: 256 }, (_, byte) => byte);
const [STAR, QUESTION, OPEN, CLOSE, CARET, DASH, BACKSLASH] = Buffer.from('*?[]^-\\');

function elements(pattern: string): Element[] {
  const bytes = Buffer.from(pattern);
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === STAR) found.push(null);
    else if (bytes[at] === QUESTION) found.push(new Set(EVERY_BYTE));
    else if (bytes[at] === OPEN) at = classOf(bytes, at + 1, found);
    else if (bytes[at] === BACKSLASH && at + 1 < bytes.length) found.push(new Set([bytes[++at]]));
    else found.push(new Set([bytes[at]]));
  }
  return found;
}

/** Reads a class whose first byte is at `at`; returns the offset of its end. As in Redis, a class may lack its bracket. */
function classOf(bytes: Buffer, at: number, found: Element[]): number {
  const negated = bytes[at] === CARET;
  if (negated) at++;
  const members = new Set<number>();
  for (; at < bytes.length && bytes[at] !== CLOSE; at++) {
    if (bytes[at] === BACKSLASH && at + 1 < bytes.length) {
      members.add(bytes[++at]);
    } else if (bytes[at + 1] === DASH && at + 2 < bytes.length) {
      const [low, high] = [bytes[at], bytes[at + 2]].sort((a, b) => a - b);
      for (let byte = low; byte <= high; byte++) members.add(byte);
      at += 2;
    } else {
      members.add(bytes[at]);
    }
  }
  found.push(negated ? new Set(EVERY_BYTE.filter((byte) => !members.has(byte))) : members);
  return at;
}
