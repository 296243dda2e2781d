/** Replies written down as what they mean. */
import type { Verdict } from '../../../src/compare/compare.js';

const join = (...parts: (string | Buffer)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)));

export const status = (text: string): Buffer => join(`+${text}\r\n`);
export const error = (text: string): Buffer => join(`-${text}\r\n`);
export const integer = (value: number | bigint | string): Buffer => join(`:${value}\r\n`);
export const double = (value: string): Buffer => join(`,${value}\r\n`);
export const string = (value: string | Buffer): Buffer => join(`$${value.length}\r\n`, value, '\r\n');
export const verbatim = (text: string): Buffer => join(`=${text.length + 4}\r\ntxt:${text}\r\n`);
export const nil = join('$-1\r\n');
export const nilArray = join('*-1\r\n');
export const null3 = join('_\r\n');
export const array = (...items: Buffer[]): Buffer => join(`*${items.length}\r\n`, ...items);
export const set = (...items: Buffer[]): Buffer => join(`~${items.length}\r\n`, ...items);
export const map = (...items: Buffer[]): Buffer => join(`%${items.length / 2}\r\n`, ...items);
/** An array of strings, given as words. */
export const strings = (words: string): Buffer => array(...words.split(' ').filter(Boolean).map(string));

/** A verdict in one word: `match`, the rule, `!kind of mismatch`, `?reason`. */
export function inShort(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'match':
      return 'match';
    case 'allowed':
      return verdict.rule;
    case 'mismatch':
      return `!${verdict.what}`;
    case 'inconclusive':
      return `?${verdict.reason}`;
  }
}

/** What the verdict is when the two servers change places. */
export const mirrored = (short: string): string =>
  short.endsWith('-on-mirror') ? short.replace('mirror', 'authority') : short.replace('-on-authority', '-on-mirror');
