/**
 * verify(key): value and time to live of the key on both servers, read at the same place in the order.
 *
 *   lane(authority): DUMP PTTL, of each key ─▶ answered ─▶ mirror.append: the same ─▶ compared
 *
 * Values are compared decoded, so that how a server encodes them does not matter; most are alike before that.
 *
 * Room: copy/verify: compare one key on both servers at one place in the order.
 * Called by: copy/job, copy/large, copy/repair, stages.
 * Calls: io, resp, pipeline, copy/key, copy/rdb.
 */
import { monotonicMs } from '../../io/clock.js';
import { expiresWithin, isOver, type KeyLife } from '../../resp/key-life.js';
import { Scalars } from '../../resp/scalars.js';
import type { Lane } from '../../pipeline/lane.js';
import { ACCEPT, NOTHING, Operation, TTL_TOLERANCE_MS, type Sink } from '../../pipeline/operation.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { ask, CopyError, refusalOfMirror } from '../key/copier.js';
import { withoutFieldTtls } from '../key/field-ttl.js';
import { equalStrings, equalValues } from './equal-values.js';
import { readKeyDump, type CopiedKey, type KeyDump } from '../key/key-dump.js';
import { areAlike } from '../rdb/alike.js';
import { decodeDump, openString } from '../rdb/transcode.js';

/**
 * How a key differs: the mirror lacks it; it alone has it, written by the kit or perhaps not; another type, value or
 * time to live.
 */
export type DifferenceKind = 'missing' | 'extra' | 'foreign' | 'type' | 'value' | 'ttl';

/** A difference between two keys. */
export interface Differing {
  readonly kind: DifferenceKind;
  /** False if only their times to live, or fields that expire now, may differ. */
  readonly sure: boolean;
}

export interface Difference extends Differing {
  readonly authority: KeyDump;
  readonly mirror: KeyDump;
}

export interface VerifyEvents<K extends CopiedKey> {
  /** The authority has answered with so many bytes, or its connection was lost. */
  answered(bytes: number): void;
  verified(key: K, difference: Difference | null): void;
  /** The comparison of the key is inconclusive. */
  failed(key: K, error: CopyError): void;
}

/** Verifications in flight. The caller holds the locks of the keys. */
export class Verification<K extends CopiedKey> implements Sink {
  /** @param keys of the lane's database, and not so large that they must not be read together */
  constructor(
    private readonly sequencer: Sequencer,
    private readonly lane: Lane,
    private readonly keys: readonly K[],
    private readonly events: VerifyEvents<K>,
  ) {}

  start(): void {
    ask(this.sequencer, this.lane, this.keys, this);
  }

  /** Asks the mirror the same questions at the place of the authority's replies. */
  answered(operation: Operation, buffer: Buffer, start: number, end: number): void {
    this.events.answered(end - start);
    const { frame, workload, db, bundle, answeredAt, stalledMs } = operation;
    const question = new Operation(frame, 0, frame.length, null, undefined, workload, db, 2, NOTHING);
    question.bundle = bundle;
    question.lane = this.lane;
    question.answeredAt = answeredAt;
    question.check = ACCEPT;
    question.confirmed = (answer) => {
      if (answer === null)
        this.#lost('the connection to the mirror was lost', refusalOfMirror(this.sequencer, this.lane.server.side, db));
      // How far apart in time the two servers' answers may be, in ms.
      else this.#compare(new Scalars(buffer, start), new Scalars(answer), monotonicMs() - answeredAt + stalledMs);
    };
    this.sequencer.mirrorOf(question).append(question);
  }

  lost(): void {
    this.events.answered(0);
    this.#lost('the connection to the authority was lost');
  }

  /** @param refused why the mirror was not asked; null if a connection was lost */
  #lost(why: string, refused: CopyError | null = null): void {
    for (const key of this.keys) this.events.failed(key, refused ?? new CopyError('lost', why));
  }

  #compare(authority: Scalars, mirror: Scalars, lagMs: number): void {
    for (const key of this.keys) {
      const [one, other] = [readKeyDump(authority), readKeyDump(mirror)];
      if (typeof one === 'string') this.#refused(key, one);
      else if (typeof other === 'string') this.#refused(key, other);
      else this.#judge(key, one, other, lagMs);
    }
  }

  #refused(key: K, said: string): void {
    this.events.failed(key, new CopyError('authority', `a server refused: ${said}`));
  }

  #judge(key: K, authority: KeyDump, mirror: KeyDump, lagMs: number): void {
    let differing: Differing | null;
    try {
      const plain = withoutFieldTtls(this.sequencer, this.lane.server.side, key, authority);
      differing = differenceOf(plain.dump, mirror, lagMs);
      if (differing !== null && !plain.settled) differing = { ...differing, sure: false };
    } catch (error) {
      return this.events.failed(key, new CopyError('payload', (error as Error).message));
    }
    this.events.verified(key, differing === null ? null : { ...differing, authority, mirror });
  }
}

/**
 * How the two differ; null if they do not.
 * @param lagMs how much later than the authority the mirror may have been read, at most
 * @param toleranceMs by how much times to live may differ; so close to its end a key may be there or not
 * @throws {TranscodeError} if a payload cannot be read
 */
export function differenceOf(
  authority: KeyDump,
  mirror: KeyDump,
  lagMs: number,
  toleranceMs = TTL_TOLERANCE_MS,
): Differing | null {
  const ending = ({ payload, life }: KeyDump): boolean =>
    payload !== null && (isOver(life) || expiresWithin(life, toleranceMs + lagMs));
  if (authority.payload === null || mirror.payload === null) {
    if (authority.payload === mirror.payload || ending(authority) || ending(mirror)) return null;
    return { kind: mirror.payload === null ? 'missing' : 'extra', sure: true };
  }
  const kind = valuesDiffer(authority.payload, mirror.payload);
  if (kind !== null) return { kind, sure: true };
  return livesDiffer(authority.life, mirror.life, lagMs, toleranceMs);
}

/**
 * How the lives of a key with equal values differ; the mirror's was read up to `lagMs` later, so its TTL is as much
 * shorter. A key that was deleted or expired since its value was read has nothing left.
 */
export function livesDiffer(
  authority: KeyLife,
  mirror: KeyLife,
  lagMs: number,
  toleranceMs = TTL_TOLERANCE_MS,
): Differing | null {
  if (authority.state === 'persistent' || mirror.state === 'persistent')
    return authority.state === mirror.state ? null : { kind: 'ttl', sure: true };
  const difference = leftOf(mirror) - leftOf(authority);
  const [least, most] = [difference, difference + lagMs];
  if (least >= -toleranceMs && most <= toleranceMs) return null;
  return { kind: 'ttl', sure: least > toleranceMs || most < -toleranceMs };
}

/** The rest of a TTL, in ms. */
const leftOf = (life: KeyLife): number => (life.state === 'expires' ? life.ms : 0);

function valuesDiffer(a: Buffer, b: Buffer): 'type' | 'value' | null {
  if (areAlike(a, b)) return null;
  const [x, y] = [openString(a), openString(b)];
  if (x !== null && y !== null) return equalStrings(x, y) ? null : 'value';
  if (x !== null || y !== null) return 'type';
  const [one, other] = [decodeDump(a), decodeDump(b)];
  if (one.type !== other.type) return 'type';
  return equalValues(one, other) ? null : 'value';
}
