/**
 * copy(key): the key's value and time to live, read on the authority's lane, replace the key on the mirror at that
 * reply's place in the order. Writes before it are inside the copy, writes after it come on top.
 *
 * The two are neighbours on their lane, and other lanes wait for the key until both are answered. MULTI would not do:
 * a server that has come to its memory's limit takes nothing inside it.
 */
import { decodeReply, isError, isNull, text, type Reply } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import type { Workload } from '../route/router.js';
import type { Lane } from '../lane/lane.js';
import { ACCEPT, NOTHING, Operation, TTL_TOLERANCE_MS, ttlErrorMs, WRITE, type Sink } from '../lane/operation.js';
import type { Sequencer } from '../lane/sequencer.js';
import { transcode } from './rdb/transcode.js';

/** The newest RDB version that every supported mirror reads (KeyDB 6.3.4, Redis 5 and later). */
const RDB_VERSION = 9;

/** A key could not be copied; the message says why. */
export class CopyError extends Error {
  readonly code = 'COPY';
}

export interface CopyEvents {
  /** The authority's reply is in, and the copy, so large, in the mirror's order: from here on it holds. */
  ordered(bytes: number): void;
  /** The mirror has confirmed it; `late` where its time to live may be off by more than is tolerated. */
  confirmed(late: boolean): void;
}

/**
 * Copies one key. Resolves when the mirror has confirmed it.
 * @throws {CopyError} when either server refuses, the payload cannot be translated, or a connection is lost
 */
export function copyKey(sequencer: Sequencer, lane: Lane, workload: Workload, db: number, key: Buffer, events: CopyEvents): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (why: string): void => reject(new CopyError(why));
    const send = (frame: Buffer, sink: Sink | null): Operation => {
      const operation = new Operation(frame, 0, frame.length, sink, undefined, workload, db, 2, NOTHING);
      sequencer.submit(operation, lane);
      return operation;
    };
    const lost = (): void => failed('the connection to the authority was lost');
    let dump: Reply;
    const dumped: Sink = {
      lost: () => undefined,
      answered: (_operation, buffer, start) => {
        dump = decodeReply(buffer, start).reply;
      },
    };
    send(encodeCommand(['DUMP', key]), dumped);
    const last = send(encodeCommand(['PTTL', key]), {
      lost,
      answered: (operation, buffer, start) => {
        const left = decodeReply(buffer, start).reply;
        if (isError(dump) || isError(left)) return failed(`the authority refused: ${text(isError(dump) ? dump : left)}`);
        const pttl = isNull(dump) ? -2 : Number(text(left));
        let frame: Buffer;
        try {
          frame = pttl === -2 || pttl === 0 ? encodeCommand(['UNLINK', key]) : restore(key, dump.data!, pttl);
        } catch (error) {
          return failed((error as Error).message);
        }
        // As RESTORE, so that its time to live is shortened while it waits.
        const effect = new Operation(frame, 0, frame.length, null, sequencer.table.byName('restore'), workload, db, 2, WRITE);
        effect.lane = lane;
        effect.answeredAt = operation.answeredAt;
        effect.stalledMs = operation.stalledMs;
        effect.check = ACCEPT;
        effect.confirmed = (answer) => {
          if (answer === null) return failed('the connection to the mirror was lost');
          if (answer[0] === MINUS) return failed(`the mirror refused: ${answer.toString('latin1', 1, answer.length - 2)}`);
          const now = performance.now();
          sequencer.expiry.copied(db, key, pttl, operation.submittedAt, now);
          events.confirmed(pttl > 0 && ttlErrorMs(effect, now) > TTL_TOLERANCE_MS);
          resolve();
        };
        sequencer.mirrorOf(effect).append(effect);
        events.ordered(frame.length);
      },
    });
    sequencer.hold(last, lane, [key.toString('latin1')]);
  });
}

/** A TTL of 0 means for ever to RESTORE; -1 is for ever to PTTL. */
function restore(key: Buffer, payload: Buffer, pttl: number): Buffer {
  return encodeCommand(['RESTORE', key, pttl === -1 ? 0 : pttl, transcode(payload, RDB_VERSION), 'REPLACE']);
}

const MINUS = '-'.charCodeAt(0);
