/**
 * verify(key): value and time to live of the key on both servers, read at the same place in the order.
 *
 *   lane(authority): DUMP PTTL ─▶ answered ─▶ mirror.append: DUMP PTTL ─▶ compared
 *
 * Values are compared decoded, so that how a server encodes them does not matter.
 */
import { decodeReply, isError, isNull, text, type Reply } from '../resp/decode.js';
import type { Workload } from '../route/router.js';
import type { Lane } from '../lane/lane.js';
import { ACCEPT, NOTHING, Operation, TTL_TOLERANCE_MS, type Sink } from '../lane/operation.js';
import type { Sequencer } from '../lane/sequencer.js';
import { CopyError, questionsAbout, type Copied } from './copier.js';
import { equalStrings, equalValues } from './equal.js';
import { decodeDump, openString } from './rdb/transcode.js';

/** How a key differs: the mirror lacks it; it alone has it; another type, value or time to live. */
export type DifferenceKind = 'missing' | 'extra' | 'type' | 'value' | 'ttl';

export interface Held {
  /** As DUMP gave it; null where the key is not there. */
  readonly payload: Buffer | null;
  /** As PTTL gave it: ms, -1 for none, -2 where the key is not there. */
  readonly pttl: number;
}

export interface Difference {
  readonly kind: DifferenceKind;
  readonly authority: Held;
  readonly mirror: Held;
}

export interface VerifyEvents {
  /** The authority's replies are in, so large, and the mirror is being asked. */
  ordered(copied: Copied, bytes: number): void;
  verified(copied: Copied, difference: Difference | null): void;
  /** It could not be told. */
  failed(copied: Copied, error: CopyError): void;
}

/** One verification on its way. Whoever starts it has the key's turn in the order of its lanes. */
export class KeyVerification implements Sink, Copied {
  readonly #replies: Reply[] = [];
  readonly #questions: { frame: Buffer; second: number };
  /** What may pass between the two servers' answers, in ms. */
  #lagMs = 0;
  #answeredAt = 0;
  #lost = false;

  constructor(
    private readonly sequencer: Sequencer,
    readonly lane: Lane,
    readonly workload: Workload,
    readonly db: number,
    readonly key: Buffer,
    private readonly events: VerifyEvents,
  ) {
    this.#questions = questionsAbout(key);
  }

  start(): void {
    const [dump, last] = this.#operations();
    this.sequencer.submit(dump, this.lane);
    this.sequencer.submit(last, this.lane);
    const { active } = this.sequencer.lanes[this.lane.server.side].order(this.db);
    if (active) this.sequencer.hold(last, this.lane, [this.key.toString('latin1')]);
  }

  #operations(): [dump: Operation, pttl: Operation] {
    const { frame, second } = this.#questions;
    const ask = (start: number, end: number): Operation => new Operation(frame, start, end, this, undefined, this.workload, this.db, 2, NOTHING);
    return [ask(0, second), ask(second, frame.length)];
  }

  answered(operation: Operation, buffer: Buffer, start: number): void {
    this.#replies.push(decodeReply(buffer, start).reply);
    if (this.#replies.length === 2) this.#ask(operation);
  }

  lost(): void {
    this.#fail('the connection to the authority was lost');
  }

  /** The mirror is asked at the place of the authority's replies. */
  #ask(last: Operation): void {
    this.#answeredAt = last.answeredAt;
    this.#lagMs = last.stalledMs;
    const questions = this.#operations();
    const confirmed = (answer: Buffer | null): void => this.#confirmed(answer);
    for (const question of questions) {
      question.lane = this.lane;
      question.answeredAt = last.answeredAt;
      question.check = ACCEPT;
      question.confirmed = confirmed;
    }
    this.events.ordered(this, this.#replies[0].data?.length ?? 0);
    this.sequencer.mirrorOf(last).appendAll(questions);
  }

  #confirmed(answer: Buffer | null): void {
    if (answer === null) return this.#fail('the connection to the mirror was lost');
    if (this.#replies.push(decodeReply(answer, 0).reply) < 4) return;
    this.#compare(performance.now() - this.#answeredAt + this.#lagMs);
  }

  #compare(lagMs: number): void {
    const refused = this.#replies.find(isError);
    if (refused !== undefined) return this.events.failed(this, new CopyError('authority', `a server refused: ${text(refused)}`));
    const [authority, mirror] = [this.#held(0), this.#held(2)];
    let kind: DifferenceKind | null;
    try {
      kind = differenceOf(authority, mirror, lagMs + TTL_TOLERANCE_MS);
    } catch (error) {
      return this.events.failed(this, new CopyError('payload', (error as Error).message));
    }
    this.events.verified(this, kind === null ? null : { kind, authority, mirror });
  }

  #held(at: number): Held {
    const [dump, left] = this.#replies.slice(at, at + 2);
    return { payload: isNull(dump) ? null : dump.data!, pttl: Number(text(left)) };
  }

  #fail(why: string): void {
    if (this.#lost) return;
    this.#lost = true;
    this.events.failed(this, new CopyError('lost', why));
  }
}

/**
 * How the two differ; null where they do not.
 * @param toleranceMs by how much times to live may differ, and within which of its end a key may be there or not
 * @throws {TranscodeError} where a payload cannot be read
 */
export function differenceOf(authority: Held, mirror: Held, toleranceMs: number): DifferenceKind | null {
  const ending = ({ pttl }: Held): boolean => pttl >= 0 && pttl <= toleranceMs;
  if (authority.payload === null || mirror.payload === null) {
    if (authority.payload === mirror.payload || ending(authority) || ending(mirror)) return null;
    return mirror.payload === null ? 'missing' : 'extra';
  }
  const kind = valuesDiffer(authority.payload, mirror.payload);
  if (kind !== null) return kind;
  // Between its DUMP and its PTTL it may have ended.
  if (authority.pttl === -2 || mirror.pttl === -2) return null;
  if (authority.pttl === -1 || mirror.pttl === -1) return authority.pttl === mirror.pttl ? null : 'ttl';
  return Math.abs(authority.pttl - mirror.pttl) <= toleranceMs ? null : 'ttl';
}

function valuesDiffer(a: Buffer, b: Buffer): 'type' | 'value' | null {
  const [x, y] = [openString(a), openString(b)];
  if (x !== null && y !== null) return equalStrings(x, y) ? null : 'value';
  if (x !== null || y !== null) return 'type';
  const [one, other] = [decodeDump(a), decodeDump(b)];
  if (one.type !== other.type) return 'type';
  return equalValues(one, other) ? null : 'value';
}
