/**
 * Makes foreign text (from servers, clients, receivers, files) safe to print. A character that moves the cursor, hides
 * or reorders text, or begins a line becomes a visible escape, such as `\u001b`. In JSON these escapes mean the same
 * character. Pure, because browsers run it, too.
 */

/** Control and format characters, halves of surrogate pairs, separators of lines and paragraphs. */
const RAW = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** The same, but line breaks and tabs are allowed, for a text of several lines. */
const RAW_IN_LINES = /[^\P{Cc}\n\t]|[\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');

/** For a text on one line. */
export const printable = (text: string): string => text.replace(RAW, escaped);

/** For a text of several lines, or JSON: line breaks and tabs are kept. */
export const printableLines = (text: string): string => text.replace(RAW_IN_LINES, escaped);

/** Longer text of a server does not help. */
const MAX_TEXT = 1_000;

/** A server's bytes, each a character of latin1, read as UTF-8. A byte that is no UTF-8 becomes `\xNN`. */
export function printableBytes(latin1: string): string {
  const shown = latin1
    .slice(0, MAX_TEXT)
    .replace(/[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/g, (bytes) =>
      bytes.length === 1
        ? `\\x${bytes.charCodeAt(0).toString(16)}`
        : new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))),
    );
  return printable(latin1.length > MAX_TEXT ? `${shown}…` : shown);
}

/** A JSON value in which each text and each name is on one line. */
export function printableAll<T>(value: T): T {
  if (typeof value === 'string') return printable(value) as T;
  if (Array.isArray(value)) return value.map(printableAll) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [printable(name), printableAll(each)])) as T;
}
