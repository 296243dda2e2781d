/**
 * Strings. One that grows chunk by chunk is moved by its server again and again, at 100 MiB for 50 ms. So it is sent
 * as one SET, on a connection of its own, in pieces that are read off the lane; and takes the key's place. Were there
 * writes meanwhile, each piece is read again on the lane, and written over what is there.
 */
import { nextTurn, sleep } from '../../io/timers.js';
import { text } from '../../resp/decode.js';
import type { Connection } from '../../upstream/connection.js';
import { ENDS, Disturbed } from './meanwhile.js';
import { refusedByMirror, type Parts } from './parts.js';
import { CopyError } from '../key/copier.js';

/** Commands that change or add bytes of a string. */
const LOCAL = new Set(['SETRANGE', 'SETBIT', 'APPEND', 'BITFIELD']);
/** A field of BITFIELD that lies across the end of what is copied was not counted up as a whole. */
const FIELD_BYTES = 9;

/** Between two pieces: KeyDB moves what it has so far as it comes, and other clients want their turn. */
const PAUSE_MS = 2;

/** @param freight to the mirror, in the key's database */
export async function copyString(parts: Parts, length: number, freight: Connection): Promise<void> {
  const { key, temporary, meanwhile, limits } = parts;
  let written = false;
  let position = 0;
  meanwhile.onWritten((name) => {
    if (ENDS.includes(name)) return;
    if (!LOCAL.has(name)) return meanwhile.disturb(`${name} has replaced it`);
    written = true;
    if (name === 'BITFIELD') position = Math.max(0, position - FIELD_BYTES);
  });
  await send(parts, length, freight);
  await parts.at([['STRLEN', key]], ([now], life) => {
    if (Number(text(now)) < length) throw new Disturbed('it is shorter than it was');
    return [['RENAME', temporary, key], parts.timeToLive(life)];
  });
  parts.elements = 1;
  if (!written) {
    meanwhile.onWritten(null);
    return;
  }
  for (let done = false; !done;) {
    const from = position;
    await parts.at(
      [
        ['GETRANGE', key, from, from + limits.chunkBytes - 1],
        ['STRLEN', key],
      ],
      ([piece, now]) => {
        // A field across the end of the chunk before this one may have been written since.
        const mustReread = position < from;
        if (!mustReread) position = from + piece.data!.length;
        done = !mustReread && position >= Number(text(now));
        if (done) meanwhile.onWritten(null);
        return piece.data!.length === 0 ? [] : [['SETRANGE', key, from, piece.data!]];
      },
    );
  }
}

/** SET, whose value is on its way while it is read. */
async function send(parts: Parts, length: number, freight: Connection): Promise<void> {
  const { key, temporary, meanwhile, limits } = parts;
  const head = Buffer.from(
    `*3\r\n$3\r\nSET\r\n$${temporary.length}\r\n${temporary.toString('latin1')}\r\n$${length}\r\n`,
    'latin1',
  );
  const answer = freight.askFrame(head);
  answer.catch(() => undefined);
  for (let sent = 0; sent < length;) {
    meanwhile.assertUndisturbed();
    const piece = (await parts.askAuthority('GETRANGE', key, sent, Math.min(length, sent + limits.chunkBytes) - 1))
      .data!;
    if (piece.length === 0) throw new Disturbed('it is shorter than it was');
    sent += piece.length;
    parts.bytes += piece.length;
    await parts.pace();
    freight.outbox.addWhole(piece);
    await Promise.race([drained(freight), answer]).catch(lost);
    await sleep(PAUSE_MS);
  }
  freight.outbox.addWhole(Buffer.from('\r\n'));
  const reply = await answer.catch(lost);
  if (reply.type === '-') throw refusedByMirror(reply);
}

function lost(): never {
  throw new CopyError('lost', 'the connection to the mirror was lost');
}

/** Resolves when the kernel has taken what was written; at the end of the turn, before which nothing is. */
const drained = (connection: Connection): Promise<void> =>
  new Promise((resolve) => {
    nextTurn(() => (connection.congested && !connection.ended ? connection.onceDrained(resolve) : resolve()));
  });
