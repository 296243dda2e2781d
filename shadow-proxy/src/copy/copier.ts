/**
 * copy(key): the key's value and time to live, read on the authority's lane, replace the key on the mirror at that
 * reply's place in the order. Writes before it are inside the copy, writes after it come on top.
 *
 * The two are neighbours on their lane, and other lanes wait for the key until both are answered. MULTI would not do:
 * a server that has come to its memory's limit takes nothing inside it.
 */
import { decodeReply, isError, isNull, text, type Reply } from '../resp/decode.js';
import { encodeCommand, encodePair } from '../resp/encode.js';
import type { Workload } from '../route/router.js';
import type { Lane } from '../lane/lane.js';
import { ACCEPT, NOTHING, Operation, TTL_TOLERANCE_MS, ttlErrorMs, WRITE, type Sink } from '../lane/operation.js';
import type { Sequencer } from '../lane/sequencer.js';
import { openString, transcode } from './rdb/transcode.js';

/** The newest RDB version that every supported mirror reads (KeyDB 6.3.4, Redis 5 and later). */
const RDB_VERSION = 9;

export type CopyErrorCode =
  /** It is written to in a way that lets no copy in parts end. */
  | 'moving'
  /** A connection was lost: it may go when it is back. */
  | 'lost'
  /** The authority refused to read it. */
  | 'authority'
  /** The mirror refused to take it. */
  | 'mirror'
  /** The mirror has no memory left. */
  | 'memory'
  /** What the authority gave cannot be translated for the mirror. */
  | 'payload'
  /** It is not to be copied (now): called off, or somebody else does it. */
  | 'declined';

/** A key could not be copied; the message says why. */
export class CopyError extends Error {
  override readonly name = 'CopyError';
  constructor(
    readonly code: CopyErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** A key that is copied or verified, and the lane on which its authority is asked. */
export interface Copied {
  readonly lane: Lane;
  readonly workload: Workload;
  readonly db: number;
  readonly key: Buffer;
}

export interface CopyEvents {
  /** The authority's reply is in, and the copy, so large, in the mirror's order: from here on it holds. */
  ordered(copied: Copied, bytes: number): void;
  /** The mirror has confirmed it; `late` where its time to live may be off by more than is tolerated. */
  confirmed(copied: Copied, late: boolean): void;
  /** It is not copied. */
  failed(copied: Copied, error: CopyError): void;
}

/** One copy on its way. Whoever starts it has the key's turn in the order of its lanes. */
export class KeyCopy implements Sink, Copied {
  #dump: Reply | undefined;
  #pttl = 0;
  #askedAt = 0;
  #failed = false;

  constructor(
    private readonly sequencer: Sequencer,
    readonly lane: Lane,
    readonly workload: Workload,
    readonly db: number,
    readonly key: Buffer,
    private readonly events: CopyEvents,
  ) {}

  start(): void {
    const { frame, second } = questionsAbout(this.key);
    this.#ask(frame, 0, second);
    const last = this.#ask(frame, second, frame.length);
    const { active } = this.sequencer.lanes[this.lane.server.side].order(this.db);
    if (active) this.sequencer.hold(last, this.lane, [this.key.toString('latin1')]);
  }

  #ask(frame: Buffer, start: number, end: number): Operation {
    const operation = new Operation(frame, start, end, this, undefined, this.workload, this.db, 2, NOTHING);
    this.sequencer.submit(operation, this.lane);
    return operation;
  }

  answered(operation: Operation, buffer: Buffer, start: number): void {
    const { reply } = decodeReply(buffer, start);
    if (this.#dump === undefined) this.#dump = reply;
    else this.#follow(operation, this.#dump, reply);
  }

  lost(): void {
    // Both are, or the second alone.
    if (this.#failed) return;
    this.#fail('lost', 'the connection to the authority was lost');
  }

  #follow(operation: Operation, dump: Reply, left: Reply): void {
    if (isError(dump) || isError(left)) return this.#fail('authority', `the authority refused: ${text(isError(dump) ? dump : left)}`);
    const { sequencer, key, db, workload } = this;
    this.#pttl = isNull(dump) ? -2 : Number(text(left));
    const gone = this.#pttl === -2 || this.#pttl === 0;
    let frame: Buffer;
    let name = 'restore';
    try {
      const value = gone ? null : openString(dump.data!);
      if (value !== null) name = 'set';
      frame = gone ? encodeCommand(['UNLINK', key]) : value !== null ? set(key, value, this.#pttl) : restoreCommand(key, dump.data!, this.#pttl);
    } catch (error) {
      return this.#fail('payload', (error as Error).message);
    }
    // A time to live is shortened while it waits; UNLINK is taken for a RESTORE without one.
    const effect = new Operation(frame, 0, frame.length, null, sequencer.table.byName(name), workload, db, 2, WRITE);
    effect.lane = this.lane;
    effect.answeredAt = operation.answeredAt;
    effect.check = ACCEPT;
    effect.stalledMs = operation.stalledMs;
    this.#askedAt = operation.submittedAt;
    effect.confirmed = (answer) => this.#confirmed(effect, answer);
    sequencer.mirrorOf(effect).append(effect);
    if (!this.#failed) this.events.ordered(this, frame.length);
  }

  #confirmed(effect: Operation, answer: Buffer | null): void {
    if (answer === null) return this.#fail('lost', 'the connection to the mirror was lost');
    if (answer[0] === MINUS) {
      const refusal = answer.toString('latin1', 1, answer.length - 2);
      return this.#fail(refusal.startsWith('OOM') ? 'memory' : 'mirror', `the mirror refused: ${refusal}`);
    }
    const now = performance.now();
    this.sequencer.expiry.copied(this.db, this.key, this.#pttl, this.#askedAt, now);
    this.events.confirmed(this, this.#pttl > 0 && ttlErrorMs(effect, now) > TTL_TOLERANCE_MS);
  }

  #fail(code: CopyErrorCode, why: string): void {
    this.#failed = true;
    this.events.failed(this, new CopyError(code, why));
  }
}

/**
 * Copies one key. Resolves when the mirror has confirmed it.
 * @throws {CopyError} when either server refuses, the payload cannot be translated, or a connection is lost
 */
export function copyKey(sequencer: Sequencer, lane: Lane, workload: Workload, db: number, key: Buffer, events: Pick<CopyEvents, 'ordered' | 'confirmed'>): Promise<void> {
  return new Promise((resolve, reject) => {
    new KeyCopy(sequencer, lane, workload, db, key, {
      ordered: (copied, bytes) => events.ordered(copied, bytes),
      confirmed: (copied, late) => {
        events.confirmed(copied, late);
        resolve();
      },
      failed: (_copied, error) => reject(error),
    }).start();
  });
}

/** What is there, and how long it stays. */
export const questionsAbout = (key: Buffer): { frame: Buffer; second: number } => encodePair(['DUMP', key], ['PTTL', key]);

/** A string as what it is: half the work of a RESTORE on either side. */
const set = (key: Buffer, value: Buffer, pttl: number): Buffer => (pttl === -1 ? encodeCommand(['SET', key, value]) : encodeCommand(['SET', key, value, 'PX', pttl]));

/** A TTL of 0 means for ever to RESTORE; -1 is for ever to PTTL. */
export function restoreCommand(key: Buffer, payload: Buffer, pttl: number): Buffer {
  return encodeCommand(['RESTORE', key, pttl === -1 ? 0 : pttl, transcode(payload, RDB_VERSION), 'REPLACE']);
}

const MINUS = '-'.charCodeAt(0);
