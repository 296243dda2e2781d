/** Whether a page shows what a command prints: the same words, whatever the figures are today. Pure. */
import { flatten } from '../../../src/runbook/expect.js';

/** A line `…` in the sample stands for whatever is there. */
export function shows(sample: string, printed: string): boolean {
  let rest = words(printed);
  const parts = sample.split(/^…$/m).map(words);
  for (const [at, part] of parts.entries()) {
    const found = rest.indexOf(part);
    if (found === -1 || (at === 0 && found !== 0)) return false;
    rest = rest.slice(found + part.length);
  }
  return (parts.length > 1 && parts.at(-1) === '') || rest.trim() === '';
}

/**
 * What may change from run to run without the page being wrong: figures, units, which rules allowed a difference, how
 * long writes were counted, and whose command was the last at that moment.
 */
const words = (text: string): string =>
  flatten(text)
    .replace(/\d([\d.,:TZ-]*[\dZ])?/g, '#')
    .replace(/\b(B|KiB|MiB|GiB)\b/g, 'B')
    .replace(/ \([a-z-]+ #(, [a-z-]+ #)*\)/g, '')
    .replace(/ writing now: \S+ \([\w|]+\)(, \S+ \([\w|]+\))*/g, '')
    .replace(
      /connected to the source directly(, and for # min the source counted only the writes of the proxy|; call counts could not be compared \([^)]*\))/g,
      'connected to the source directly',
    )
    .trim();
