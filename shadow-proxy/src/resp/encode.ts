/**
 * Frames out: commands and small replies as RESP bytes.
 * Source of the format: the Redis serialization protocol specification (RESP2 and RESP3).
 */

/** One argument of a command: bytes stay bytes, text is UTF-8, numbers are decimal. */
export type Argument = Buffer | string | number;

/** The command as an array of bulk strings, the only form Redis servers need. */
export function encodeCommand(args: readonly Argument[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${args.length}\r\n`, 'latin1')];
  for (const arg of args) {
    const bytes = typeof arg === 'number' ? Buffer.from(String(arg), 'latin1') : typeof arg === 'string' ? Buffer.from(arg) : arg;
    parts.push(Buffer.from(`$${bytes.length}\r\n`, 'latin1'), bytes, CRLF);
  }
  return Buffer.concat(parts);
}

const CRLF = Buffer.from('\r\n');

/** A bulk string reply, or the null of the protocol when `value` is null. */
export function bulk(value: Buffer | string | null, protocol: 2 | 3 = 2): Buffer {
  if (value === null) return protocol === 3 ? NULL3 : NULL2;
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`, 'latin1'), bytes, CRLF]);
}

const NULL2 = Buffer.from('$-1\r\n');
const NULL3 = Buffer.from('_\r\n');

/** `+text`: the text must hold no line break. */
export const simple = (text: string): Buffer => Buffer.from(`+${text}\r\n`);
/** `-CODE text`: line breaks, which the format cannot carry, become spaces. */
export const error = (text: string): Buffer => Buffer.from(`-${text.replace(/[\r\n]+/g, ' ')}\r\n`);
export const integer = (value: number | bigint): Buffer => Buffer.from(`:${value}\r\n`, 'latin1');

/** An array reply of replies that are encoded already. */
export function array(items: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from(`*${items.length}\r\n`, 'latin1'), ...items]);
}

/** A map reply (RESP3), or the flat array that stands for it in RESP2; `items` alternates keys and values. */
export function map(items: readonly Buffer[], protocol: 2 | 3): Buffer {
  const head = protocol === 3 ? `%${items.length / 2}\r\n` : `*${items.length}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), ...items]);
}

export const OK = simple('OK');
