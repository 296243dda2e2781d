/** Decodes frames. It is used if a reply's content matters (effects, comparison), never on the plain path. */
import { printableBytes } from '../text/printable.js';

const CR = 13;

/** The type byte of a RESP frame, as a character. */
export type ReplyType = '+' | '-' | ':' | '$' | '*' | '_' | '#' | ',' | '(' | '!' | '=' | '%' | '~' | '>';

/**
 * One reply. Scalars have `data`: the bytes between the type and the line end, or the bulk's bytes. Aggregates have
 * `items`; a map's keys and values alternate. Nulls of any form have neither.
 */
export interface Reply {
  readonly type: ReplyType;
  readonly data: Buffer | null;
  readonly items: readonly Reply[] | null;
}

/** An aggregate that is being filled. The content of an attribute is dropped when it is complete. */
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
    // The element may be the last of several nested aggregates.
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

/** Maximum length of an option, a subcommand or a number of a command. */
const MAX_WORD = 128;

/**
 * An argument of a client as latin1, if a word or a number is expected. A longer argument is cut: then it is neither.
 */
export const wordOf = (arg: Buffer): string => arg.toString('latin1', 0, Math.min(arg.length, MAX_WORD));

/** The reply's bytes as latin1 text, so that nothing is lost; `''` for nulls and aggregates. */
export const text = (reply: Reply): string => reply.data?.toString('latin1') ?? '';

/** The text of an error for people. A client always gets the server's own bytes. */
export const errorText = (reply: Reply): string => printableBytes(text(reply));

/** An error's code: its first word, such as `WRONGTYPE`. */
export const errorCode = (reply: Reply): string => text(reply).split(' ', 1)[0];

/** The arguments of the command frame (an array of bulk strings) at `start`, as slices of it. */
export function argumentsOf(frame: Buffer, start = 0): Buffer[] {
  return decodeReply(frame, start).reply.items!.map((item) => item.data!);
}

/**
 * The positions of the arguments in the command frame at `start`: fills both lists and returns the number of arguments.
 * The frame must be a whole array of bulk strings, as every forwarded command is.
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

/** The number of arguments of the command frame at `start`, including the name. */
export function argumentCount(frame: Buffer, start: number): number {
  let count = 0;
  for (let at = start + 1; frame[at] !== 13; at++) count = count * 10 + frame[at] - 48;
  return count;
}
