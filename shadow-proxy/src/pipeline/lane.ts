/**
 * A lane to an authority: one connection, one database, one user, one protocol; it carries commands of any number of
 * clients, and the replies in the same order.
 *
 *   submit(operation) ──▶ outbox ──▶ server ──▶ readable ──▶ answered(operation, reply)
 */
import { monotonicMs } from '../io/clock.js';
import { argumentCount } from '../resp/decode.js';
import type { FrameReader } from '../resp/frame-reader.js';
import type { Connection, ConnectionOwner } from '../upstream/connection.js';
import type { LatencyRecorder } from '../io/latency.js';
import { OutOfStep } from './failures.js';
import { FRAMING, measuredAs, type Carrier, type LaneIdentity, type Operation } from './operation.js';
import { Ring } from '../io/ring.js';
import { nextTurn } from '../io/timers.js';
import type { Server } from '../upstream/server.js';
import type { Turn } from '../io/turn.js';

export interface LaneEvents {
  /** The reply is `buffer[start, end)`. */
  answered(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void;
  /** Commands whose replies are lost; the lane is closed. */
  lost(lane: Lane, operations: readonly Operation[], reason: Error): void;
}

const PUSH = '>'.charCodeAt(0);
const MINUS = '-'.charCodeAt(0);

/** Whether a reply confirms that the lane is in the state that later commands need. */
export type Confirms = (reply: Buffer) => boolean;
export const isNoError: Confirms = (reply) => reply[0] !== MINUS;
/** A chunk of this size (a TLS record) may have more data behind it. */
const FULL_CHUNK = 16_384;

export class Lane implements ConnectionOwner, Carrier {
  closed = false;
  /** Set when the lane must not be given to another client. */
  retired = false;
  /**
   * The lane for questions about this lane's commands. A private lane may be blocked, or belong to another client by
   * then.
   */
  home: Lane = this;
  /** Whether the lane's user may run the reads that the proxy adds to a transaction, as far as is known. */
  mayProbe = true;
  mayAskLife = true;
  /** Whether the lane's user may MULTI, by the server's last answer; null if it was not asked. */
  mayMulti: boolean | null = null;
  /** When the lane last carried something, in ms of the monotonic clock. */
  usedAt: number;
  /** When the connection was last read to the end. */
  #emptiedAt: number;
  /** The longest silence that an operation in flight waited through, in ms, and when that ended. */
  #longestMs = 0;
  #longestEndedAt = 0;
  readonly #inFlight = new Ring<Operation>();
  #submitted = 0;
  #answered = 0;
  /** Operations that wait until the server has confirmed what they depend on; null if nothing has to be confirmed. */
  #held: Operation[] | null = null;
  #heldBytes = 0;
  /** Functions to call once the first `at` operations are answered. */
  readonly #marks: { at: number; then: () => void }[] = [];

  constructor(
    readonly server: Server,
    /** Changes only on a private lane, whose client may SELECT. */
    public identity: LaneIdentity,
    private readonly connection: Connection,
    private readonly latency: LatencyRecorder,
    private readonly events: LaneEvents,
    private readonly turn: Turn,
  ) {
    this.usedAt = turn.now();
    this.#emptiedAt = this.usedAt;
    connection.attach(this);
  }

  get clientId(): number {
    return this.connection.clientId;
  }
  /** The run ID of the server at the other end. */
  get runId(): string {
    return this.connection.runId;
  }
  /** Whether the server admitted the lane's user. */
  get admitted(): boolean {
    return this.connection.admitted;
  }
  get waits(): boolean {
    return this.#inFlight.length > 0;
  }
  get inFlight(): number {
    return this.#inFlight.length;
  }
  /** Commands in flight that may take the server long, including those in transactions. */
  get longCommands(): LongCommands {
    return longCommandsIn(this.#inFlight, ({ submittedAt }) => submittedAt);
  }
  /** Commands in flight; each command of a transaction counts. */
  get commandsInFlight(): number {
    let count = 0;
    for (let i = 0; i < this.#inFlight.length; i++) count += this.#inFlight.at(i)!.batch?.commands.length ?? 1;
    return count;
  }
  /** Bytes that are not written to the server yet. */
  get unsentBytes(): number {
    return this.connection.outbox.bytes + this.#heldBytes;
  }

  /** On a lane that is lost the operation is lost at once: nothing may wait for it forever. */
  submit(operation: Operation): void {
    operation.lane = this;
    if (this.closed) {
      nextTurn(() => this.events.lost(this, [operation], new Error('the connection to the server is closed')));
      return;
    }
    this.#inFlight.push(operation);
    this.#submitted++;
    const now = this.turn.now();
    operation.submittedAt = now | 0;
    this.latency.sent(now, measuredAs(operation));
    this.#sendOrHold(operation);
  }

  #sendOrHold(operation: Operation): void {
    if (this.#held === null) return this.#send(operation);
    this.#held.push(operation);
    this.#heldBytes += bytesOf(operation);
  }

  #send(operation: Operation): void {
    this.connection.outbox.add(operation.frame, operation.start, operation.end);
    if (operation.check === FRAMING) this.#held = [];
  }

  /** Submits an operation on which all later ones depend, as `first` says. */
  submitFirst(operation: Operation): void {
    this.first(operation);
    this.submit(operation);
  }

  /**
   * The operation about to be submitted, such as a SELECT, is one on which all later ones depend: nothing more is sent
   * before the server has answered it. If the answer is not a confirmation, the lane is closed, and the waiting
   * operations were never sent.
   * @param confirms judges the answer; by default any reply but an error confirms
   * @param dependents if given, only these operations depend on it. They are submitted right behind it. Without a
   * confirmation they are not sent, and get the same answer
   */
  first(operation: Operation, confirms: Confirms = isNoError, dependents: readonly Operation[] | null = null): void {
    const { sink } = operation;
    operation.check = FRAMING;
    operation.sink = {
      answered: (answered, buffer, start, end) => {
        try {
          sink?.answered(answered, buffer, start, end);
        } finally {
          if (confirms(buffer.subarray(start, end))) this.#sendHeld();
          else if (dependents === null) this.close();
          else this.#refuse(dependents, buffer, start, end);
        }
      },
      lost: (lost, reason) => sink?.lost(lost, reason),
    };
  }

  /** Answers operations that were not sent: the oldest in flight, and its dependents among those that wait. */
  #refuse(dependents: readonly Operation[], buffer: Buffer, start: number, end: number): void {
    const now = monotonicMs();
    for (const operation of dependents) {
      this.#inFlight.shift();
      this.#held?.shift();
      this.#heldBytes -= bytesOf(operation);
      this.#answered++;
      this.events.answered(operation, buffer, start, end, now);
    }
    this.#sendHeld();
  }

  /** Sends the waiting operations, up to the next one on which all later ones depend. */
  #sendHeld(): void {
    const held = this.#held ?? [];
    this.#held = null;
    this.#heldBytes = 0;
    for (const operation of held) this.#sendOrHold(operation);
  }

  /** Calls `then` once all that is in flight now is answered (or lost). */
  afterInFlight(then: () => void): void {
    if (this.#inFlight.length === 0) then();
    else this.#marks.push({ at: this.#submitted, then });
  }

  close(): void {
    this.connection.destroy();
  }

  readable(reader: FrameReader): void {
    // The turn's own time is that of its beginning: the server may have run the commands since.
    const now = monotonicMs();
    // A reply that comes now had not arrived when the connection was last read to the end. So it was late by at most
    // this much, unless it follows a silence: what a network held back arrives bit by bit.
    const silentMs = now - this.#emptiedAt;
    const oldest = this.#inFlight.at(0)?.submittedAt ?? now;
    const waitedMs = Math.min(silentMs, now - oldest);
    if (waitedMs >= this.#longestMs || oldest >= this.#longestEndedAt) {
      this.#longestMs = waitedMs;
      this.#longestEndedAt = now;
    }
    this.usedAt = now;
    const before = this.#answered;
    while (reader.next(this.#inFlight.at(0)?.bundle?.replies)) {
      if (reader.buffer[reader.start] === PUSH) continue;
      const operation = this.#inFlight.shift();
      if (operation === undefined) throw new OutOfStep(`${this.server.endpoint.label} sent a reply without a request`);
      this.#answered++;
      const lateMs = operation.submittedAt < this.#longestEndedAt ? this.#longestMs : silentMs;
      operation.stalledMs = Math.ceil(Math.min(lateMs, now - operation.submittedAt)) | 0;
      this.events.answered(operation, reader.buffer, reader.start, reader.end, now);
    }
    // If a reply has arrived only in part, the socket was not emptied.
    if (reader.fedBytes < FULL_CHUNK && reader.at === reader.limit) this.#emptiedAt = now;
    this.latency.answered(this.#answered - before, now);
    if (this.#marks.length > 0) this.#passMarks();
  }

  lost(reason: Error): void {
    this.closed = true;
    const operations = this.#inFlight.drain();
    this.latency.reset();
    this.events.lost(this, operations, reason);
    for (const mark of this.#marks.splice(0)) mark.then();
  }

  #passMarks(): void {
    while (this.#marks.length > 0 && this.#marks[0].at <= this.#answered) this.#marks.shift()!.then();
  }
}

const bytesOf = ({ start, end }: Operation): number => end - start;

/** Commands that a server may be working on for long. Times are in ms of the monotonic clock; Infinity for none. */
export interface LongCommands {
  readonly scripts: number;
  /** When the first script was sent. */
  readonly scriptSince: number;
  /** How long the commands with many arguments may take together, in ms. */
  readonly largeMs: number;
  /** When the first of them was sent. */
  readonly largeSince: number;
}

/** A command with fewer arguments is not long. */
const MANY_ARGUMENTS = 10_000;
/**
 * How long an argument may take on a busy machine, in ms: a busy KeyDB has worked on an `SADD` of a million members for
 * over 3 s.
 */
const ARGUMENT_MS = 0.01;

/** The long commands among the operations. */
export function longCommandsIn(operations: Ring<Operation>, sentAt: (operation: Operation) => number): LongCommands {
  let [scripts, scriptSince, largeMs, largeSince] = [0, Infinity, 0, Infinity];
  for (let i = 0; i < operations.length; i++) {
    const operation = operations.at(i)!;
    if (operation.spec?.handling === 'script') {
      scripts++;
      scriptSince = Math.min(scriptSince, sentAt(operation));
    }
    const count = argumentCount(operation.frame, operation.start);
    if (count < MANY_ARGUMENTS) continue;
    largeMs += count * ARGUMENT_MS;
    largeSince = Math.min(largeSince, sentAt(operation));
  }
  return { scripts, scriptSince, largeMs, largeSince };
}

/** Those of several connections: the server runs them one after the other. */
export const allLongCommands = (each: readonly LongCommands[]): LongCommands => ({
  scripts: each.reduce((sum, { scripts }) => sum + scripts, 0),
  scriptSince: Math.min(...each.map(({ scriptSince }) => scriptSince)),
  largeMs: each.reduce((sum, { largeMs }) => sum + largeMs, 0),
  largeSince: Math.min(...each.map(({ largeSince }) => largeSince)),
});
