/**
 * Most commands that may block find something at once. So each is first tried without blocking, on the shared lane, in
 * order. Only a command that finds nothing is sent to block, on a lane of its own.
 */
import { blockOption } from '../../command/policy.js';
import { wordOf } from '../../resp/decode.js';
import { bulk, encodeCommand } from '../../resp/encode.js';

export interface Attempt {
  /** A command that does the same without blocking: its name in the table, and its bytes. */
  readonly name: string;
  readonly frame: Buffer;
  /** Turns its reply into that of the blocking command; null if it found nothing, or the user may not run it. */
  answer(reply: Buffer): Buffer | null;
}

/**
 * @param commands the commands that the server knows
 * @returns null if there is no such command, or the timeout may be refused
 */
export function attemptOf(args: readonly Buffer[], commands: ReadonlySet<string>): Attempt | null {
  const name = wordOf(args[0]).toLowerCase();
  const keys = args.slice(1, -1);
  switch (name) {
    case 'blpop':
    case 'brpop': {
      if (!isSeconds(args.at(-1))) return null;
      if (keys.length === 1)
        return attempt([name.slice(1), keys[0]], (reply) => Buffer.concat([TWO, bulk(keys[0]), reply]));
      return ifKnown(commands, ['lmpop', keys.length, ...keys, name === 'blpop' ? 'LEFT' : 'RIGHT'], (reply) =>
        without(reply, '*1\r\n'),
      );
    }
    case 'bzpopmin':
    case 'bzpopmax': {
      if (!isSeconds(args.at(-1))) return null;
      if (keys.length === 1)
        return attempt([name.slice(1), keys[0]], (reply) =>
          Buffer.concat([THREE, bulk(keys[0]), reply.subarray(TWO.length)]),
        );
      return ifKnown(commands, ['zmpop', keys.length, ...keys, name === 'bzpopmin' ? 'MIN' : 'MAX'], (reply) =>
        Buffer.concat([THREE, without(reply, '*1\r\n*2\r\n').subarray(TWO.length)]),
      );
    }
    case 'blmove':
    case 'brpoplpush':
      return isSeconds(args.at(-1)) ? attempt([name.slice(1), ...keys], asItIs) : null;
    case 'blmpop':
    case 'bzmpop':
      return isSeconds(args[1]) ? attempt([name.slice(1), ...args.slice(2)], asItIs) : null;
    case 'xread':
    case 'xreadgroup': {
      const at = blockOption(args);
      if (!/^\d{1,12}$/.test(wordOf(args[at + 1] ?? NONE)) || args.some((arg) => arg.length === 1 && arg[0] === DOLLAR))
        return null;
      return attempt([name, ...args.slice(1, at), ...args.slice(at + 2)], asItIs);
    }
    default:
      return null;
  }
}

const NONE = Buffer.alloc(0);

type Words = readonly (Buffer | string | number)[];

const attempt = ([name, ...args]: Words, shape: (reply: Buffer) => Buffer): Attempt => ({
  name: String(name),
  frame: encodeCommand([name, ...args]),
  answer: (reply) =>
    foundNothing(reply) ? null : reply[0] === MINUS ? (isRefusal(reply) ? null : reply) : shape(reply),
});

const ifKnown = (commands: ReadonlySet<string>, words: Words, shape: (reply: Buffer) => Buffer): Attempt | null =>
  commands.has(String(words[0])) ? attempt(words, shape) : null;

const asItIs = (reply: Buffer): Buffer => reply;
const isSeconds = (arg: Buffer | undefined): boolean => /^\d{1,9}(\.\d{1,6})?$/.test(wordOf(arg ?? NONE));
/** Nil in either protocol. */
export const isNothing = (reply: Buffer): boolean =>
  reply[0] === UNDERSCORE || ((reply[0] === STAR || reply[0] === DOLLAR) && reply[1] === MINUS);
/** The reply of a pop that finds nothing. */
const foundNothing = (reply: Buffer): boolean => isNothing(reply) || (reply[0] === STAR && reply[1] === ZERO);
/**
 * The user may run the blocking command and not this one, or only the blocking command itself can explain what is
 * wrong.
 */
const isRefusal = (reply: Buffer): boolean => !/^-(WRONGTYPE|NOGROUP) /.test(reply.toString('latin1', 0, 16));

/** A reply `*2 key rest` without the bytes between the key and the rest. */
function without(reply: Buffer, heads: string): Buffer {
  const [, head, length] = /^(\*2\r\n\$(\d+)\r\n)/.exec(reply.toString('latin1', 0, 32))!;
  const end = head.length + Number(length) + 2;
  return Buffer.concat([reply.subarray(0, end), reply.subarray(end + heads.length)]);
}

const [TWO, THREE] = [Buffer.from('*2\r\n'), Buffer.from('*3\r\n')];
const [MINUS, STAR, DOLLAR, UNDERSCORE, ZERO] = ['-', '*', '$', '_', '0'].map((char) => char.charCodeAt(0));
