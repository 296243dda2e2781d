/** Replies as latin1 text: one character a byte. A connection turns them into bytes once, when it writes them. */
export type Protocol = 2 | 3;

export const OK = '+OK\r\n';
export const QUEUED = '+QUEUED\r\n';
export const ZERO = ':0\r\n';
export const ONE = ':1\r\n';
export const EMPTY_ARRAY = '*0\r\n';

/** Why a server refuses a command: thrown by commands, caught where commands are run. */
export class Refusal {
  constructor(readonly text: string) {}
}

export const WRONG_TYPE = new Refusal('WRONGTYPE Operation against a key holding the wrong kind of value');
export const SYNTAX = new Refusal('ERR syntax error');
export const NOT_INTEGER = new Refusal('ERR value is not an integer or out of range');
export const NOT_FLOAT = new Refusal('ERR value is not a valid float');
export const NO_SUCH_KEY = new Refusal('ERR no such key');
export const SAME_OBJECT = new Refusal('ERR source and destination objects are the same');
export const NO_DATABASE = new Refusal('ERR DB index is out of range');

export const simple = (text: string): string => `+${text}\r\n`;
export const error = (text: string): string => `-${text}\r\n`;
export const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;
export const integer = (value: number | bigint): string => `:${value}\r\n`;

export const nil = (protocol: Protocol): string => (protocol === 2 ? '$-1\r\n' : '_\r\n');
export const nilArray = (protocol: Protocol): string => (protocol === 2 ? '*-1\r\n' : '_\r\n');
export const bulkOrNil = (text: string | undefined, protocol: Protocol): string =>
  text === undefined ? nil(protocol) : bulk(text);

export const arrayOf = (length: number): string => `*${length}\r\n`;
/** The head of a map of so many pairs. */
export const mapOf = (pairs: number, protocol: Protocol): string =>
  protocol === 2 ? `*${pairs * 2}\r\n` : `%${pairs}\r\n`;
export const setOf = (length: number, protocol: Protocol): string =>
  protocol === 2 ? `*${length}\r\n` : `~${length}\r\n`;

/** The head of what a server sends without being asked. */
export const pushOf = (length: number, protocol: Protocol): string =>
  protocol === 2 ? `*${length}\r\n` : `>${length}\r\n`;

export function bulks(texts: readonly string[]): string {
  let reply = `*${texts.length}\r\n`;
  for (const text of texts) reply += `$${text.length}\r\n${text}\r\n`;
  return reply;
}

export const array = (replies: readonly string[]): string => arrayOf(replies.length) + replies.join('');

/** An array of alternating names, as bulk strings, and replies. */
export const named = (fields: readonly (readonly [string, string])[], protocol: Protocol): string =>
  mapOf(fields.length, protocol) + fields.map(([name, reply]) => bulk(name) + reply).join('');

/** A long text: a bulk string in RESP2, a verbatim string in RESP3. */
export const verbatim = (text: string, protocol: Protocol): string =>
  protocol === 2 ? bulk(text) : `=${text.length + 4}\r\ntxt:${text}\r\n`;
