/** How large a key is, before it is copied. */
import type { Lane } from '../../pipeline/lane.js';
import { NOTHING, Operation, type Sink } from '../../pipeline/operation.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { decodeReply, isError, text, type Reply } from '../../resp/decode.js';
import { encodeCommand, type Argument } from '../../resp/encode.js';
import type { Workload } from '../../route/router.js';
import { CopyError } from '../key/copier.js';

/** A key of this size or more is copied in chunks. */
export interface Thresholds {
  readonly bytes: number;
  readonly elements: number;
}

/** By type, as `TYPE` names it: how to ask for the length. */
export const LENGTH: Readonly<Record<string, string>> = {
  string: 'STRLEN',
  list: 'LLEN',
  hash: 'HLEN',
  set: 'SCARD',
  zset: 'ZCARD',
  stream: 'XLEN',
};

export interface KeySize {
  /** As `TYPE` names it; `none` where there is no such key. */
  readonly type: string;
  /** Elements; bytes of a string. */
  readonly length: number;
  /** The size in bytes, estimated by the server; 0 if it does not say. */
  readonly bytes: number;
}

/** Asks the key's authority, in the key's database. */
export interface Asker {
  ask(...args: Argument[]): Promise<Reply>;
}

/** @throws {CopyError} if the server refuses */
export async function sizeOf(server: Asker, key: Buffer): Promise<KeySize> {
  const [typed, used] = await Promise.all([server.ask('TYPE', key), server.ask('MEMORY', 'USAGE', key)]);
  const type = text(typed);
  if (isError(typed)) throw new CopyError('authority', `the authority refused: ${type}`);
  const command = LENGTH[type];
  if (command === undefined) return { type, length: 0, bytes: 0 };
  const counted = await server.ask(command, key);
  // The key was replaced by now.
  if (isError(counted)) return sizeOf(server, key);
  const length = Number(text(counted));
  return { type, length, bytes: type === 'string' ? length : (usedBytes(used) ?? 0) };
}

/** Asks on the clients' lane. */
export const onLane = (sequencer: Sequencer, lane: Lane, workload: Workload, db: number): Asker => ({
  ask: (...args) =>
    new Promise((resolve, reject) => {
      const frame = encodeCommand(args);
      const sink: Sink = {
        answered: (_operation, buffer, start) => resolve(decodeReply(buffer, start).reply),
        lost: (_operation, reason) => reject(reason),
      };
      sequencer.submit(new Operation(frame, 0, frame.length, sink, undefined, workload, db, 2, NOTHING), lane);
    }),
});

/** What MEMORY USAGE says; null if the server refuses: those before 4.0, and users who may not, have none. */
export const usedBytes = (reply: Reply): number | null => (isError(reply) ? null : Number(text(reply)));

/** The smallest size of an element, in a list of small numbers, in bytes. */
const ELEMENT_BYTES = 2;

/**
 * Whether a key with so much `MEMORY USAGE` may be large: most need no second question. Null if the server does not
 * tell.
 */
export const mayBeLarge = (used: number | null, { bytes, elements }: Thresholds): boolean =>
  used === null || used >= Math.min(bytes, elements * ELEMENT_BYTES);

/** Whether a key of this size is to be copied in chunks. */
export const isLarge = ({ type, length, bytes }: KeySize, { bytes: most, elements }: Thresholds): boolean =>
  bytes >= most || (type !== 'string' && length >= elements);
