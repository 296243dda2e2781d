/**
 * SCAN continues at the server where it began, also after a stage change. The target's cursors are given to clients
 * with one more bit set. The bit is far above all cursors of a server (a cursor is below the number of buckets of a
 * database), and below 2^53, so that clients may read a cursor as a number.
 */
import { decodeReply, wordOf, type Reply } from '../../resp/decode.js';
import { array, bulk, encodeCommand } from '../../resp/encode.js';
import type { Matcher } from '../../route/glob.js';
import type { Side } from '../../route/stage.js';
import type { CommandContext } from '../context.js';

const OF_THE_TARGET = 1n << 52n;

export interface Scan {
  readonly side: Side;
  /** The command as the server is to get it; null for the client's own bytes. */
  readonly frame: Buffer | null;
}

/** The server of the SCAN at hand. A scan that begins, or has an invalid cursor, goes to `authority`. */
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
 * The function that changes the server's reply to SCAN or KEYS for the client; null if the reply is passed on
 * unchanged.
 * @param owned matches this shard's keys
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

/** A list of keys without other shards' keys; null for any other reply. */
function keysOwned({ items }: Reply, owned: Matcher): Buffer | null {
  const keys = items?.map(({ data }) => data!).filter((key) => owned(key, 0, key.length));
  return keys ? array(keys.map((key) => bulk(key))) : null;
}

/** The target's reply to SCAN with the cursor for clients; any other reply unchanged. */
function withCursorOfTarget(reply: Buffer): Buffer {
  const head = /^\*2\r\n\$\d+\r\n(\d+)\r\n/.exec(reply.toString('latin1', 0, 64));
  if (head === null || head[1] === '0') return reply;
  const cursor = String(BigInt(head[1]) | OF_THE_TARGET);
  return Buffer.concat([Buffer.from(`*2\r\n$${cursor.length}\r\n${cursor}\r\n`), reply.subarray(head[0].length)]);
}
