/**
 * SCAN goes on at the server where it began, also after a change of stage: the cursors of the target are given to
 * clients with one bit more. It lies far above those that a server uses (a cursor is below the number of buckets of a
 * database), and low enough for clients that take a cursor for a number, exact up to 2^53.
 */
import { decodeReply, wordOf, type Reply } from '../../resp/decode.js';
import { array, bulk, encodeCommand } from '../../resp/encode.js';
import type { Matcher } from '../../route/glob.js';
import type { Side } from '../../route/stage.js';
import type { CommandContext } from '../context.js';

const OF_THE_TARGET = 1n << 52n;

export interface Scan {
  readonly side: Side;
  /** The command as that server is to get it; null for as it came. */
  readonly frame: Buffer | null;
}

/** The server of the SCAN at hand: `authority` if the scan begins, or its cursor is not valid. */
export function scanOf(context: CommandContext, authority: Side): Scan {
  const { argc } = context.parser;
  const text = argc > 1 ? wordOf(context.argument(1)) : '';
  if (!/^\d{1,19}$/.test(text) || BigInt(text) === 0n) return { side: authority, frame: null };
  const cursor = BigInt(text);
  if ((cursor & OF_THE_TARGET) === 0n) return { side: 'source', frame: null };
  const args = Array.from({ length: argc }, (_, i) => (i === 1 ? String(cursor ^ OF_THE_TARGET) : context.argument(i)));
  return { side: 'target', frame: encodeCommand(args) };
}

/**
 * What a client gets instead of a server's reply to SCAN or KEYS, of which `owned` are this shard's keys; null where it
 * gets that one.
 */
export function shapeOf(name: string, side: Side, owned: Matcher | null): ((reply: Buffer) => Buffer) | null {
  if (name === 'keys') return owned && ((reply) => keysOwned(decodeReply(reply).reply, owned) ?? reply);
  if (name !== 'scan') return null;
  const withCursor = side === 'target' ? withCursorOfTarget : same;
  if (owned === null) return side === 'target' ? withCursor : null;
  return (reply) => {
    const { items } = decodeReply(reply).reply;
    return items ? withCursor(array([bulk(items[0].data!), keysOwned(items[1], owned)!])) : reply;
  };
}

const same = (reply: Buffer): Buffer => reply;

/** A list of keys without those of others; null for anything else. */
function keysOwned({ items }: Reply, owned: Matcher): Buffer | null {
  const keys = items?.map(({ data }) => data!).filter((key) => owned(key, 0, key.length));
  return keys ? array(keys.map((key) => bulk(key))) : null;
}

/** The target's reply to SCAN with its cursor as clients are given it; any other reply as it is. */
function withCursorOfTarget(reply: Buffer): Buffer {
  const head = /^\*2\r\n\$\d+\r\n(\d+)\r\n/.exec(reply.toString('latin1', 0, 64));
  if (head === null || head[1] === '0') return reply;
  const cursor = String(BigInt(head[1]) | OF_THE_TARGET);
  return Buffer.concat([Buffer.from(`*2\r\n$${cursor.length}\r\n${cursor}\r\n`), reply.subarray(head[0].length)]);
}
