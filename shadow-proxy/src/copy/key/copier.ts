/**
 * copy(key): the key's value and time to live, read on the authority's lane, replace the key on the mirror at that
 * reply's place in the order. Writes before it are inside the copy, writes after it come on top.
 *
 *   lane(authority): DUMP PTTL, of each key ─▶ answered ─▶ mirror.append: MSET, then SET | RESTORE PEXPIRE | UNLINK, of
 *   each ─▶ confirmed
 *
 * Many keys are copied by one operation on each lane: that costs a fraction of one operation for each key. DUMP and
 * PTTL of a key are adjacent on their lane, and other lanes wait for the keys until all replies are in. MULTI is no
 * alternative: a server that has reached its memory limit refuses it.
 *
 * Room: copy/key: copy one key at one place in the order.
 * Called by: copy/job, copy/large, copy/verify, copy/repair, copy/foreign, stages, shard.
 * Calls: text, io, resp, route, upstream, pipeline, copy/rdb.
 */
import { monotonicMs } from '../../io/clock.js';
import { isOver } from '../../resp/key-life.js';
import { Scalars } from '../../resp/scalars.js';
import type { Lane } from '../../pipeline/lane.js';
import {
  ACCEPT,
  NOTHING,
  Operation,
  questions,
  TTL_TOLERANCE_MS,
  ttlErrorMs,
  WRITE,
  type Sink,
} from '../../pipeline/operation.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { otherSide, type Side } from '../../route/stage.js';
import { withoutFieldTtls } from './field-ttl.js';
import { COMMANDS_PER_KEY, keyDumpCommands, readKeyDump, type CopiedKey, type KeyDump } from './key-dump.js';
import { COMMAND_BYTES } from './copy-commands.js';
import { CopyBatch } from './copy-batch.js';

export const COPY_ERRORS = [
  /** The key is written to in a way that lets no chunked copy end. */
  'moving',
  /** `SWAPDB` gave its database another number during its chunked copy, or comparison: it may begin again there. */
  'swapped',
  /** A connection was lost: the copy may succeed when it is back. */
  'lost',
  /** The authority refused to read it. */
  'authority',
  /** The mirror refused to take it. */
  'mirror',
  /** The mirror has no memory left. */
  'memory',
  /** What the authority gave cannot be translated for the mirror. */
  'payload',
  /** The key is not to be copied now: called off, or another copy does it. */
  'declined',
] as const;
export type CopyErrorCode = (typeof COPY_ERRORS)[number];

/**
 * A key could not be copied; the message says why. It has no stack: when a mirror is lost, or its queue is full, there
 * is one for each key under way.
 */
export class CopyError extends Error {
  override readonly name = 'CopyError';
  constructor(
    readonly code: CopyErrorCode,
    message: string,
  ) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

export interface CopyEvents<K extends CopiedKey> {
  /** The authority has answered, or never will. */
  answered(): void;
  /** The copies are in the mirror's order, with this total size in bytes: later writes come on top of them. */
  ordered(bytes: number): void;
  /**
   * The mirror has confirmed it. `lateMs` is by how much its time to live may be off, where that is more than is
   * tolerated, or a field of it is about to expire; else 0. `removed` says how, if the authority does not have the key:
   * `deleted` from the mirror, or on neither.
   */
  confirmed(key: K, lateMs: number, removed: 'deleted' | 'neither' | null): void;
  /**
   * Whether the mirror keeps a key that the authority does not have: then nothing is sent, and `kept` is called.
   * Absent: it does not.
   */
  keeps?(key: K): boolean;
  kept?(key: K): void;
  /** The authority does not have the key: its delete is about to be sent. */
  deleting?(key: K): void;
  /** A stream counts its entries wrongly on the authority: the mirror has those that the authority serves. */
  recounted?(key: K): void;
  /** The key was not copied. */
  failed(key: K, error: CopyError): void;
}

/** Copies in flight. The caller holds the locks of the keys. */
export class Copy<K extends CopiedKey> implements Sink {
  #askedAt = 0;
  /** Keys of which a field is about to expire. */
  readonly #unsettled = new Set<K>();

  /** @param keys of the lane's database, and not so large that they must not be read together */
  constructor(
    private readonly sequencer: Sequencer,
    private readonly lane: Lane,
    private readonly keys: readonly K[],
    private readonly events: CopyEvents<K>,
  ) {}

  start(): void {
    ask(this.sequencer, this.lane, this.keys, this);
  }

  answered(operation: Operation, buffer: Buffer, start: number, end: number): void {
    this.events.answered();
    this.#askedAt = operation.submittedAt;
    const replies = new Scalars(buffer, start);
    const mirror = this.sequencer.servers[otherSide(this.lane.server.side)];
    const puts = new CopyBatch<K>(
      end - start + this.keys.length * COMMAND_BYTES,
      !mirror.endpoint.isCluster,
      mirror.traits,
    );
    for (const key of this.keys) {
      const dump = readKeyDump(replies);
      if (typeof dump === 'string') this.#fail(key, 'authority', `the authority refused: ${dump}`);
      else this.#addCopy(key, dump, puts);
    }
    if (puts.replies > 0) this.#append(operation, puts);
  }

  #addCopy(key: K, read: KeyDump, puts: CopyBatch<K>): void {
    let dump = read;
    try {
      const plain = withoutFieldTtls(this.sequencer, this.lane.server.side, key, read);
      dump = plain.dump;
      if (!plain.settled) this.#unsettled.add(key);
    } catch (error) {
      return this.#fail(key, 'payload', (error as Error).message);
    }
    if (dump.payload === null || isOver(dump.life)) {
      if (this.events.keeps?.(key) === true) return this.events.kept?.(key);
      this.events.deleting?.(key);
    }
    try {
      puts.add(key, dump);
    } catch (error) {
      this.#fail(key, 'payload', (error as Error).message);
    }
  }

  lost(): void {
    this.events.answered();
    for (const key of this.keys) this.#fail(key, 'lost', 'the connection to the authority was lost');
  }

  #append(operation: Operation, puts: CopyBatch<K>): void {
    const { keys, replies } = puts;
    const { frame, shorten } = puts.finish();
    const effect = new Operation(frame, 0, frame.length, null, undefined, operation.workload, operation.db, 2, WRITE);
    effect.bundle = { replies, keys: keys.map(({ key }) => key), shorten };
    effect.lane = this.lane;
    effect.answeredAt = operation.answeredAt;
    effect.check = ACCEPT;
    effect.stalledMs = operation.stalledMs;
    let taken = true;
    effect.confirmed = (answer) => {
      taken = answer !== null;
      if (answer !== null) this.#confirmed(effect, puts, answer);
      else for (const key of keys) this.#lost(key);
    };
    this.sequencer.mirrorOf(effect).append(effect);
    if (taken) this.events.ordered(frame.length);
  }

  #confirmed(effect: Operation, puts: CopyBatch<K>, answer: Buffer): void {
    const now = monotonicMs();
    const errorMs = ttlErrorMs(effect, now);
    puts.each(new Scalars(answer), (key, { refusal, removed, life, miscounted }) => {
      if (refusal !== null)
        return this.#fail(key, refusal.startsWith('OOM') ? 'memory' : 'mirror', `the mirror refused: ${refusal}`);
      if (miscounted) this.events.recounted?.(key);
      this.sequencer.expiry.copied(key.db, key.key, life, this.#askedAt, now);
      const isLate = errorMs > TTL_TOLERANCE_MS && removed === null && life.state === 'expires';
      this.events.confirmed(key, isLate || this.#unsettled.has(key) ? Math.max(1, errorMs) : 0, removed);
    });
  }

  /** The copy was not sent to the mirror, or the mirror's reply was lost. */
  #lost(key: K): void {
    const refused = refusalOfMirror(this.sequencer, this.lane.server.side, key.db);
    if (refused !== null) this.events.failed(key, refused);
    else this.#fail(key, 'lost', 'the connection to the mirror was lost');
  }

  #fail(key: K, code: CopyErrorCode, why: string): void {
    this.events.failed(key, new CopyError(code, why));
  }
}

/** Why nothing can be copied into the database: the mirror of that authority refuses it; null if it does not. */
export function refusalOfMirror({ mirrors }: Sequencer, authority: Side, db: number): CopyError | null {
  const side = otherSide(authority);
  const refusal = mirrors[side].refusalOf(db);
  return refusal === null ? null : new CopyError('mirror', `the ${side} refuses database ${db}: ${refusal}`);
}

/**
 * Asks for what the lane's server holds under the keys, of all of them as one operation; other lanes wait meanwhile.
 */
export function ask(sequencer: Sequencer, lane: Lane, keys: readonly CopiedKey[], sink: Sink): void {
  const frame = keyDumpCommands(keys);
  const { db, workload } = keys[0];
  const operation = new Operation(frame, 0, frame.length, sink, undefined, workload, db, 2, NOTHING);
  operation.bundle = questions(COMMANDS_PER_KEY * keys.length);
  sequencer.submit(operation, lane);
  const { active } = sequencer.lanes[lane.server.side].locks(db);
  if (active)
    sequencer.hold(
      operation,
      lane,
      keys.map(({ key }) => key.toString('latin1')),
    );
}

/**
 * Copies one key. Resolves when the mirror has confirmed it; false if it keeps what the authority does not have.
 * @param events.keeps whether it does; absent: it does not
 * @throws {CopyError} if either server refuses, the payload cannot be translated, or a connection is lost
 */
export function copyKey(
  sequencer: Sequencer,
  lane: Lane,
  key: CopiedKey,
  events: {
    ordered(bytes: number): void;
    confirmed(lateMs: number): void;
    keeps?(): boolean;
    recounted?(): void;
  },
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    new Copy(sequencer, lane, [key], {
      answered: () => undefined,
      ordered: (bytes) => events.ordered(bytes),
      confirmed: (_key, lateMs) => {
        events.confirmed(lateMs);
        resolve(true);
      },
      keeps: () => events.keeps?.() === true,
      recounted: () => events.recounted?.(),
      kept: () => resolve(false),
      failed: (_key, error) => reject(error),
    }).start();
  });
}
