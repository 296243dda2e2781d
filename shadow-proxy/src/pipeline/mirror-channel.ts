/**
 * One connection to the mirror, which stays in one database: nothing is sent on it before the server has confirmed that
 * database, so no effect can run in another one.
 *
 * Replies are equal most of the time, so the mirror's bytes are compared before they are parsed: expected replies that
 * are neighbours in memory are compared at once.
 */
import { monotonicMs } from '../io/clock.js';
import type { FrameReader } from '../resp/frame-reader.js';
import { encodeCommand } from '../resp/encode.js';
import type { Workload } from '../route/router.js';
import { LatencyRecorder, type Latencies } from '../io/latency.js';
import { Ring } from '../io/ring.js';
import type { Connection, ConnectionOwner } from '../upstream/connection.js';
import { OutOfStep } from './failures.js';
import type { MirrorEvents } from './mirror-events.js';
import { ACCEPT, COMPARE, FRAMING, measuredAs, NOTHING, Operation } from './operation.js';

const PUSH = '>'.charCodeAt(0);
const MINUS = '-'.charCodeAt(0);

/** What a channel needs of the mirror lane. */
export interface ChannelOwner {
  /** The server's name in messages. */
  readonly label: string;
  readonly events: MirrorEvents;
  readonly framing: Workload;
  /** An operation was answered or lost: its bytes are free again. */
  release(operation: Operation): void;
  /** Some replies were read. */
  progressed(): void;
  lost(channel: MirrorChannel): void;
}

export class MirrorChannel implements ConnectionOwner {
  readonly sent = new Ring<Operation>();
  connection: Connection | undefined;
  /** The connection is being made. */
  opening = false;
  /** Why the server refuses effects in the database; null if it accepts them, or was not asked yet. */
  refusal: string | null = null;
  /** When a refused database is tried again, in ms of the monotonic clock. */
  retryAt = 0;
  /** Set when the database must be selected again, and confirmed, before anything else is sent. */
  stale = false;
  /** Set while a reply must come before anything else is sent. */
  asking = false;
  protocol: 2 | 3 = 2;
  /** Whether the server accepts HELLO 3; null if it was not asked. */
  speaks3: boolean | null = null;
  /** Effects that were appended for this database, and how many of them are confirmed or dropped. */
  appended = 0;
  done = 0;
  /** How many of the oldest operations in `sent` are detached. */
  detached = 0;
  /** When the channel last carried something, in ms of the monotonic clock. */
  usedAt = 0;
  readonly #latency: LatencyRecorder;

  constructor(
    readonly db: number,
    latencies: Latencies,
    private readonly owner: ChannelOwner,
  ) {
    this.#latency = new LatencyRecorder(latencies);
  }

  get waits(): boolean {
    return this.sent.length > 0;
  }

  /** Begins on a connection whose database is selected. */
  begin(connection: Connection, stale: boolean): void {
    this.connection = connection;
    this.opening = false;
    this.refusal = null;
    this.stale = stale;
    this.asking = false;
    this.protocol = 2;
    this.speaks3 = null;
    connection.attach(this);
  }

  /** Ends the connection. @returns operations that were sent and not answered */
  end(): Operation[] {
    this.connection = undefined;
    this.opening = false;
    this.refusal = null;
    this.asking = false;
    this.detached = 0;
    this.#latency.reset();
    return this.sent.drain();
  }

  send(operation: Operation, now: number): void {
    this.sent.push(operation);
    this.#latency.sent(now, measuredAs(operation));
    this.connection!.outbox.add(operation.frame, operation.start, operation.end);
  }

  /**
   * Sends a command that only prepares the connection.
   * @param answered gets the reply, or null if the connection is lost
   */
  frame(args: readonly (string | number)[], now: number, answered: (reply: Buffer | null) => void): Operation {
    const frame = encodeCommand(args);
    const { framing } = this.owner;
    const operation = new Operation(frame, 0, frame.length, null, undefined, framing, this.db, 2, NOTHING);
    operation.check = FRAMING;
    operation.answeredAt = now;
    operation.confirmed = answered;
    this.send(operation, now);
    return operation;
  }

  readable(reader: FrameReader): void {
    // The turn's own time is that of its beginning: the mirror may have run the commands since.
    const now = monotonicMs();
    this.usedAt = now;
    let answered = 0;
    for (;;) {
      const run = this.#equalRun(reader);
      if (run > 0) {
        answered += run;
        for (let i = 0; i < run; i++) this.#matched(now);
        continue;
      }
      if (!reader.next(this.sent.at(0)?.bundle?.replies)) break;
      if (reader.buffer[reader.start] === PUSH) continue;
      answered++;
      this.#answered(reader, now);
    }
    this.#latency.answered(answered, now);
    this.owner.progressed();
  }

  lost(): void {
    if (this.connection !== undefined) this.owner.lost(this);
  }

  /** Consumes replies that are exactly as expected. @returns how many operations they answer */
  #equalRun(reader: FrameReader): number {
    const first = this.sent.at(0);
    if (first === undefined || first.check !== COMPARE) return 0;
    const { buffer, at, limit } = reader;
    const { reply, replyStart } = first;
    let end = first.replyEnd;
    if (at + end - replyStart > limit) return 0;
    let run = 1;
    for (; ; run++) {
      const next = this.sent.at(run);
      if (next === undefined || next.reply !== reply || next.replyStart !== end || next.check !== COMPARE) break;
      if (at + next.replyEnd - replyStart > limit) break;
      end = next.replyEnd;
    }
    if (run > 1) {
      if (buffer.compare(reply, replyStart, end, at, at + end - replyStart) === 0) {
        reader.skip(end - replyStart);
        return run;
      }
      end = first.replyEnd;
    }
    if (!equalBytes(buffer, at, reply, replyStart, end)) return 0;
    reader.skip(end - replyStart);
    return 1;
  }

  #matched(now: number): void {
    const operation = this.#take();
    const { reply, replyStart, replyEnd, confirmed } = operation;
    try {
      this.owner.events.matched(operation, now);
      if (confirmed !== null) confirmed(reply.subarray(replyStart, replyEnd));
    } catch (thrown) {
      this.#failed(operation, thrown);
    }
  }

  #answered(reader: FrameReader, now: number): void {
    const { events } = this.owner;
    const operation = this.#take();
    const { buffer, start, end } = reader;
    try {
      if (operation.confirmed !== null) {
        // A producer of the proxy's own judges its reply itself.
        operation.confirmed(buffer.subarray(start, end));
      } else if (operation.check === COMPARE || buffer[start] === MINUS) {
        events.differs(operation, buffer, start, end, now);
      } else if (operation.check === ACCEPT) {
        events.accepted(operation, now);
      }
    } catch (thrown) {
      this.#failed(operation, thrown);
    }
  }

  /** The meaning of the reply is unknown: the operation counts as lost, and the connection goes on. */
  #failed(operation: Operation, thrown: unknown): void {
    this.owner.events.failed(operation, thrown);
    operation.confirmed?.(null);
  }

  #take(): Operation {
    const operation = this.sent.shift();
    if (operation === undefined) throw new OutOfStep(`${this.owner.label} sent a reply without a request`);
    if (isEffect(operation)) this.done++;
    if (this.detached > 0) this.detached--;
    this.owner.release(operation);
    return operation;
  }
}

/** Whether the operation is an effect or a read, not one that only prepares the connection. */
export const isEffect = ({ check, follow }: Operation): boolean => check !== FRAMING || follow !== NOTHING;

/** For short replies, and most are short, a loop is faster than a call. */
function equalBytes(a: Buffer, at: number, b: Buffer, start: number, end: number): boolean {
  const length = end - start;
  if (length > 64) return a.compare(b, start, end, at, at + length) === 0;
  for (let i = 0; i < length; i++) if (a[at + i] !== b[start + i]) return false;
  return true;
}
