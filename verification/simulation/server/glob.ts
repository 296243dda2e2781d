/** Patterns as KEYS, SCAN and PSUBSCRIBE have them (`stringmatchlen`). */

const cache = new Map<string, RegExp>();

/** Whether the whole text matches the pattern. */
export function matches(pattern: string, text: string): boolean {
  if (pattern === '*') return true;
  let found = cache.get(pattern);
  if (found === undefined) {
    found = compile(pattern);
    if (cache.size > 1000) cache.clear();
    cache.set(pattern, found);
  }
  return found.test(text);
}

function compile(pattern: string): RegExp {
  let source = '';
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at];
    if (char === '*') source += '[^]*';
    else if (char === '?') source += '[^]';
    else if (char === '\\' && at + 1 < pattern.length) source += quote(pattern[++at]);
    else if (char === '[') {
      const negated = pattern[at + 1] === '^';
      let members = '';
      at += negated ? 2 : 1;
      for (; at < pattern.length && pattern[at] !== ']'; at++) {
        if (pattern[at] === '\\' && at + 1 < pattern.length) members += quote(pattern[++at]);
        else if (pattern[at + 1] === '-' && at + 2 < pattern.length) {
          const [low, high] = [pattern[at], pattern[at + 2]].sort();
          members += `${quote(low)}-${quote(high)}`;
          at += 2;
        } else members += quote(pattern[at]);
      }
      source += members === '' ? (negated ? '[^]' : '[]') : `[${negated ? '^' : ''}${members}]`;
    } else source += quote(char);
  }
  return new RegExp(`^${source}$`);
}

const quote = (char: string): string => char.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
