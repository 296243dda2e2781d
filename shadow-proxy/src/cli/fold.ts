/** Formats text in 80 columns. */

export const WIDTH = 80;
const INDENT = 9;

/** Lines of at most `width`, except for a longer word. */
export function wrap(text: string, width = WIDTH): string[] {
  const lines: string[] = [''];
  for (const word of text.split(/\s+/)) {
    if (lines[lines.length - 1].length + word.length + 1 > width && lines[lines.length - 1] !== '') lines.push(word);
    else lines[lines.length - 1] += lines[lines.length - 1] === '' ? word : ` ${word}`;
  }
  return lines;
}

export const fold = (text: string): string => wrap(text).join('\n');

/** A finding after a word for its severity, and its meaning below. */
export const entry = (word: string, what: string, means: string): string =>
  [
    ...wrap(what, WIDTH - INDENT).map((line, i) => `${(i === 0 ? word : '').padEnd(INDENT)}${line}`),
    ...wrap(`→ ${means}`, WIDTH - INDENT).map((line) => `${''.padEnd(INDENT)}${line}`),
  ].join('\n');
