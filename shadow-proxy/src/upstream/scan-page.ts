/** One page of SCAN, in a way that does KeyDB no harm. */
import type { Server } from './server.js';
import type { Connection } from './connection.js';
import { encodeCommand } from '../resp/encode.js';
import { Scalars } from '../resp/scalars.js';
import { printableBytes } from '../text/printable.js';

/** A server does not let its keys be scanned. */
export class ScanError extends Error {
  readonly code = 'SCAN';

  /** @param refusal which server refuses which command, for people */
  constructor(refusal: string, reply: string) {
    super(`${refusal}: ${reply}; allow it to the kit's user`);
  }
}

export interface KeyPage {
  /** The cursor of the next page; `FIRST_PAGE` after the last one. */
  readonly cursor: string;
  /** Slices of the reply. */
  readonly keys: readonly Buffer[];
}

export const FIRST_PAGE = '0';

const MULTI = encodeCommand(['MULTI']);
const EXEC = encodeCommand(['EXEC']);

/**
 * The page at the cursor: about `count` keys.
 *
 * KeyDB answers SCAN with a COUNT of 100 or more, and KEYS, from a snapshot. While the snapshot exists, a SET on a key
 * with a time to live treats it as a new key. `KEEPTTL` keeps nothing, and the server counts one key with a time to
 * live too many. After that no process of it can save any more (`ckeysExpired == db->expireSize()`, rdb.cpp:1372 of
 * 6.3.4). Inside MULTI there is no snapshot.
 * @throws {ScanError} if the server refuses
 * @throws {ConnectionLost}
 */
export async function scanPage(
  server: Server,
  connection: Connection,
  cursor: string,
  count: number,
): Promise<KeyPage> {
  const scan = encodeCommand(['SCAN', cursor, 'COUNT', count]);
  const replies = new Scalars(
    await (server.traits.isKeydb
      ? connection.askBytes(Buffer.concat([MULTI, scan, EXEC]), 3)
      : connection.askBytes(scan)),
  );
  const orRefused = (): void => {
    if (replies.isError) throw new ScanError(`${server.endpoint.label} refuses SCAN`, printableBytes(replies.text()));
  };
  if (server.traits.isKeydb) {
    for (let queued = 0; queued < 2; queued++) {
      orRefused();
      replies.skipLine();
    }
    orRefused();
    replies.integer();
  }
  orRefused();
  replies.integer();
  const next = replies.text();
  const keys: Buffer[] = [];
  // Array.from would take twice as long.
  for (let left = replies.integer(); left > 0; left--) keys.push(replies.bytes()!);
  return { cursor: next, keys };
}
