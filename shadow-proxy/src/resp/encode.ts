/**
 * Encodes commands and small replies as RESP bytes. Source of the format: the Redis serialization protocol
 * specification (RESP2 and RESP3).
 */
import { copyBytes } from '../io/copy-bytes.js';

/** One argument of a command: bytes are sent unchanged, text as UTF-8, numbers in decimal. */
export type Argument = Buffer | string | number;

/** The command as an array of bulk strings, the only form that servers need. */
export function encodeCommand(args: readonly Argument[]): Buffer {
  const out = Buffer.allocUnsafe(commandSize(args));
  writeCommand(out, 0, args);
  return out;
}

function commandSize(args: readonly Argument[]): number {
  let size = headSize(args.length);
  for (let i = 0; i < args.length; i++) size += bulkSize(lengthOf(args[i]));
  return size;
}

function writeCommand(out: Buffer, start: number, args: readonly Argument[]): void {
  let at = writeHead(out, start, ASTERISK, args.length);
  for (let i = 0; i < args.length; i++) at = writeArgument(out, at, args[i]);
}

const [ASTERISK, DOLLAR, CR, LF, ZERO] = [42, 36, 13, 10, 48];

/** Size of `*12\r\n` or `$12\r\n`. */
const headSize = (count: number): number => 3 + digitsOf(count);
const bulkSize = (length: number): number => headSize(length) + length + 2;

function digitsOf(number: number): number {
  let digits = 1;
  for (let left = number; left >= 10; left = Math.floor(left / 10)) digits++;
  return digits;
}

function lengthOf(arg: Argument): number {
  if (typeof arg === 'string') return Buffer.byteLength(arg);
  return typeof arg === 'number' ? String(arg).length : arg.length;
}

function writeHead(out: Buffer, start: number, mark: number, count: number): number {
  const end = start + headSize(count);
  out[start] = mark;
  let left = count;
  for (let at = end - 3; at > start; at--) {
    out[at] = ZERO + (left % 10);
    left = Math.floor(left / 10);
  }
  out[end - 2] = CR;
  out[end - 1] = LF;
  return end;
}

function writeArgument(out: Buffer, start: number, arg: Argument): number {
  const length = lengthOf(arg);
  const at = writeHead(out, start, DOLLAR, length);
  if (typeof arg === 'object') copyBytes(arg, 0, length, out, at);
  else writeText(out, at, String(arg), length);
  out[at + length] = CR;
  out[at + length + 1] = LF;
  return at + length + 2;
}

/** Writes short ASCII text, such as command names and numbers: a loop is faster than a call. */
function writeText(out: Buffer, at: number, text: string, length: number): void {
  if (text.length === length && length <= 16) for (let i = 0; i < length; i++) out[at + i] = text.charCodeAt(i);
  else out.write(text, at);
}

const CRLF = Buffer.from('\r\n');

/** A bulk string reply; if `value` is null, the null of the protocol. */
export function bulk(value: Buffer | string | null, protocol: 2 | 3 = 2): Buffer {
  if (value === null) return protocol === 3 ? NULL3 : NULL2;
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`, 'latin1'), bytes, CRLF]);
}

const NULL2 = Buffer.from('$-1\r\n');
const NULL3 = Buffer.from('_\r\n');

/** The reply `+text`; the text must have no line break. */
export const simple = (text: string): Buffer => Buffer.from(`+${text}\r\n`);
/** The reply `-CODE text`; line breaks, which the format cannot carry, become spaces. */
export const error = (text: string): Buffer => Buffer.from(`-${text.replace(/[\r\n]+/g, ' ')}\r\n`);
export const integer = (value: number | bigint): Buffer => Buffer.from(`:${value}\r\n`, 'latin1');

/** An array reply; its items are already encoded. */
export function array(items: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from(`*${items.length}\r\n`, 'latin1'), ...items]);
}

/** A map reply (RESP3), or the equivalent flat array (RESP2); `items` alternates keys and values. */
export function map(items: readonly Buffer[], protocol: 2 | 3): Buffer {
  const head = protocol === 3 ? `%${items.length / 2}\r\n` : `*${items.length}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), ...items]);
}

export const OK = simple('OK');
