/** Frames in, decoded: used where a reply's content matters (effects, comparison), never on the plain path. */
import { printableBytes } from '../text/printable.js';

const CR = 13;

/** The type byte of a RESP frame, as a character. */
export type ReplyType = '+' | '-' | ':' | '$' | '*' | '_' | '#' | ',' | '(' | '!' | '=' | '%' | '~' | '>';

/**
 * One reply. Scalars carry `data` (the bytes between the type and the line end, or the bulk's bytes),
 * aggregates carry `items` (a map's keys and values alternate). Nulls of any form carry neither.
 */
export interface Reply {
  readonly type: ReplyType;
  readonly data: Buffer | null;
  readonly items: readonly Reply[] | null;
}

/** An aggregate that is being filled; an attribute's own content is dropped when it is full. */
interface Open {
  readonly type: ReplyType | '|';
  readonly items: Reply[];
  left: number;
}

/**
 * Decodes the complete frame at `start`; `end` is the offset just after it. Attributes are skipped. It does not
 * recurse: a script's reply may nest 8,000 deep.
 */
export function decodeReply(buffer: Buffer, start = 0): { reply: Reply; end: number } {
  const opened: Open[] = [];
  let at = start;
  for (;;) {
    const lineEnd = buffer.indexOf(CR, at + 1);
    const type = String.fromCharCode(buffer[at]) as ReplyType | '|';
    const line = buffer.subarray(at + 1, lineEnd);
    at = lineEnd + 2;
    let reply: Reply | null;
    switch (type) {
      case '$':
      case '=':
      case '!': {
        const length = Number(line.toString('latin1'));
        if (length < 0) {
          reply = { type, data: null, items: null };
        } else {
          reply = { type, data: buffer.subarray(at, at + length), items: null };
          at += length + 2;
        }
        break;
      }
      case '*':
      case '~':
      case '>':
      case '%':
      case '|': {
        const count = Number(line.toString('latin1'));
        const left = type === '%' || type === '|' ? count * 2 : count;
        if (left > 0) {
          opened.push({ type, items: [], left });
          continue;
        }
        if (type === '|') continue;
        reply = { type, data: null, items: left < 0 ? null : [] };
        break;
      }
      case '_':
        reply = { type, data: null, items: null };
        break;
      default:
        reply = { type, data: line, items: null };
    }
    // The element closes the aggregates that it is the last of.
    while (reply !== null) {
      const parent: Open | undefined = opened[opened.length - 1];
      if (parent === undefined) return { reply, end: at };
      parent.items.push(reply);
      if (--parent.left > 0) break;
      opened.pop();
      reply = parent.type === '|' ? null : { type: parent.type, data: null, items: parent.items };
    }
  }
}

export const isNull = (reply: Reply): boolean => reply.data === null && reply.items === null;
export const isError = (reply: Reply): boolean => reply.type === '-' || reply.type === '!';

/** No option, subcommand or number of a command has more bytes. */
const MAX_WORD = 128;

/** What a client sent where a word or a number is expected, as latin1: a longer argument is cut, and so is neither. */
export const wordOf = (arg: Buffer): string => arg.toString('latin1', 0, Math.min(arg.length, MAX_WORD));

/** The reply's bytes as text (latin1, so that nothing is lost), `''` for nulls and aggregates. */
export const text = (reply: Reply): string => reply.data?.toString('latin1') ?? '';

/** What an error says, for people: never for a client, who gets the server's own bytes. */
export const errorText = (reply: Reply): string => printableBytes(text(reply));

/** An error's code: its first word, such as `WRONGTYPE`. */
export const errorCode = (reply: Reply): string => text(reply).split(' ', 1)[0];

/** The arguments of the command frame (an array of bulk strings) at `start`, as slices of it. */
export function argumentsOf(frame: Buffer, start = 0): Buffer[] {
  return decodeReply(frame, start).reply.items!.map((item) => item.data!);
}

/**
 * Where the arguments of the whole command frame at `start` lie: fills both lists and returns how many there are.
 * The frame must be an array of bulk strings, as a client's command is by the time that it is forwarded.
 */
export function locateArguments(frame: Buffer, start: number, argStart: number[], argEnd: number[]): number {
  const count = argumentCount(frame, start);
  let at = start + 1;
  while (frame[at] !== 13) at++;
  at += 2;
  for (let i = 0; i < count; i++) {
    let length = 0;
    for (at++; frame[at] !== 13; at++) length = length * 10 + frame[at] - 48;
    at += 2;
    argStart[i] = at;
    argEnd[i] = at + length;
    at += length + 2;
  }
  return count;
}

/** How many arguments the command frame at `start` has, the name among them. */
export function argumentCount(frame: Buffer, start: number): number {
  let count = 0;
  for (let at = start + 1; frame[at] !== 13; at++) count = count * 10 + frame[at] - 48;
  return count;
}
