/**
 * Whether two glob patterns can match the same key. The patterns are run together as automata. Their elements are those
 * of `route/glob.ts`: `*`, `?`, `[a-z]`, `[^x]`, `\x`, over bytes.
 */

/** The bytes that one element of a pattern matches; null is a star, which matches any sequence of bytes. */
type Element = ReadonlySet<number> | null;

export function patternsOverlap(a: string, b: string): boolean {
  const [left, right] = [elements(a), elements(b)];
  const seen = new Set<number>();
  const overlapFrom = (i: number, j: number): boolean => {
    const state = i * (right.length + 1) + j;
    if (seen.has(state)) return false;
    seen.add(state);
    if (i === left.length && j === right.length) return true;
    const [x, y] = [left[i], right[j]];
    if (x === null && overlapFrom(i + 1, j)) return true;
    if (y === null && overlapFrom(i, j + 1)) return true;
    if (x === undefined || y === undefined || (x === null && y === null)) return false;
    if (!common(x, y)) return false;
    return overlapFrom(x === null ? i : i + 1, y === null ? j : j + 1);
  };
  return overlapFrom(0, 0);
}

/**
 * Whether `outer` certainly matches every key that `inner` matches: they are the same, or `outer` is `prefix*`. False
 * may mean that it is not known.
 */
export function patternIncludes(outer: string, inner: string): boolean {
  if (outer === inner) return true;
  const prefix = literalPrefix(outer);
  return outer === `${prefix}*` && literalPrefix(inner).startsWith(prefix);
}

/** Maximum number of steps of one comparison. Patterns that need more are assumed to have a key of their own. */
const MAX_STEPS = 50_000;

/**
 * Whether every key that `inner` matches is matched by one of `outers`, or by several of them together. Runs the
 * automaton of `inner` beside all states in which those of `outers` may be.
 */
export function patternsCover(outers: readonly string[], inner: string): boolean {
  const mine: readonly Element[] = elements(inner);
  const theirs: readonly (readonly Element[])[] = outers.filter((outer) => patternsOverlap(outer, inner)).map(elements);
  if (theirs.length === 0) return false;
  const bytes = kindsOf([mine, ...theirs].flat());
  const seen = new Set<string>();
  const open: [at: number, states: readonly State[]][] = [[0, closed(theirs.map((pattern) => ({ pattern, at: 0 })))]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [at, states] = next;
    const id = `${at} ${states
      .map(({ pattern, at: theirAt }) => `${theirs.indexOf(pattern)}.${theirAt}`)
      .sort()
      .join(' ')}`;
    if (seen.has(id)) continue;
    if (seen.add(id).size > MAX_STEPS) return false;
    if (at === mine.length) {
      if (!states.some(({ pattern, at: theirAt }) => theirAt === pattern.length)) return false;
      continue;
    }
    const element = mine[at];
    if (element === null) open.push([at + 1, states]);
    for (const byte of bytes)
      if (element === null || element.has(byte)) open.push([element === null ? at : at + 1, stepped(states, byte)]);
  }
  return true;
}

interface State {
  readonly pattern: readonly Element[];
  readonly at: number;
}

/** Adds the states that are reached if a star matches no byte. */
function closed(states: readonly State[]): State[] {
  const all = [...states];
  for (const { pattern, at } of all) {
    if (
      at < pattern.length &&
      pattern[at] === null &&
      !all.some((other) => other.pattern === pattern && other.at === at + 1)
    )
      all.push({ pattern, at: at + 1 });
  }
  return all;
}

function stepped(states: readonly State[], byte: number): State[] {
  const next = states.flatMap(({ pattern, at }): State[] => {
    if (at === pattern.length) return [];
    const element = pattern[at];
    if (element === null) return [{ pattern, at }];
    return element.has(byte) ? [{ pattern, at: at + 1 }] : [];
  });
  return closed(
    next.filter(({ pattern, at }, i) => next.findIndex((other) => other.pattern === pattern && other.at === at) === i),
  );
}

/** One byte of each group of bytes that no element distinguishes. */
function kindsOf(all: readonly Element[]): readonly number[] {
  const sets = all.filter((element) => element !== null);
  const kinds = new Map(EVERY_BYTE.map((byte) => [sets.map((set) => (set.has(byte) ? '1' : '0')).join(''), byte]));
  return [...kinds.values()];
}

/** The problem of a pattern that Redis accepts although it cannot mean what it says; null if there is none. */
export function patternProblem(pattern: string): string | null {
  for (let at = 0; at < pattern.length; at++) {
    if (pattern[at] === '\\') {
      if (++at < pattern.length) continue;
      return 'ends with a backslash that escapes nothing: write \\\\ for a backslash';
    }
    if (pattern[at] !== '[') continue;
    const begin = pattern[at + 1] === '^' ? at + 2 : at + 1;
    for (at = begin; at < pattern.length && pattern[at] !== ']'; at++) if (pattern[at] === '\\') at++;
    if (at >= pattern.length) return 'has a [ without a ]: close it, or write \\[ for the character itself';
    if (at === begin)
      return 'has a class without characters: write them between [ and ], or \\[ for the character itself';
  }
  return null;
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

/**
 * Reads a character class whose first byte is at `at`; returns the offset of its end. The closing bracket may be
 * missing, as in Redis.
 */
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
