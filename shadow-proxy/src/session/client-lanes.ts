/**
 * The lanes that carry one client's commands, and what it has in flight on them. Its commands are never reordered:
 * while some are in flight on one lane, one for another lane waits.
 */
import { closeFor } from '../pipeline/failures.js';
import type { KeyLocks, LockRequest } from '../pipeline/key-locks.js';
import type { Lane } from '../pipeline/lane.js';
import { NOTHING, Operation, type Sink } from '../pipeline/operation.js';
import { argumentsOf, isError, text } from '../resp/decode.js';
import { error } from '../resp/encode.js';
import type { Side } from '../route/stage.js';
import { HandshakeRefused } from '../upstream/server.js';
import type { Clients } from './clients.js';
import type { ClientState } from './client-state.js';
import type { Flow } from './flow.js';
import { Window } from './window.js';

const MINUS = '-'.charCodeAt(0);
/** Bytes that a lane may owe its server before its clients are read no further. */
const MAX_UNSENT = 1 << 20;
/** A script that has been in flight for longer than this, in ms, may be one that a client is about to end. */
const LONG_SCRIPT_MS = 500;

/** Whose lanes they are. */
export interface LaneUser extends Sink {
  readonly client: ClientState;
  readonly clients: Clients;
  readonly flow: Flow;
  /** A server does not let the client in: its own error. */
  replyRefused(refused: HandshakeRefused): void;
  destroy(): void;
  /** The proxy has failed at a command of this client, which is closed. */
  failed(problem: unknown): void;
  /** A command is answered, or lost. */
  settled(): void;
}

/** What is done with a server's refusal, or with null; it must not reject. */
type Inquiry = (refusal: Buffer | null) => void | Promise<void>;

export class ClientLanes {
  readonly #window = new Window();
  /** The lane of its commands in flight, or of the last one. */
  #lane: Lane | null = null;
  /** The lanes for what it says of itself now. */
  #lanes: Record<Side, Lane | null> = { source: null, target: null };
  /** Its last command in flight, and bytes of replies of the proxy's own that wait for that. */
  #last: Operation | null = null;
  #followingBytes = 0;
  /** No reply has come yet that shows what its replies take; and how many reads it has in flight meanwhile. */
  #untried = true;
  #untriedReads = 0;
  /** The place of the command at hand in the order of keys, if it has had to wait. */
  #lockRequest: LockRequest | null = null;

  constructor(private readonly of: LaneUser) {}

  get inFlight(): number {
    return this.#window.inFlight;
  }

  get followingBytes(): number {
    return this.#followingBytes;
  }

  /** Bytes of the largest reply of late. */
  get largestReply(): number {
    return this.#window.largestReply;
  }

  /** The lanes that it is on. */
  get used(): readonly (Lane | null)[] {
    return [this.#lanes.source, this.#lanes.target];
  }

  /** The client has another database, user or protocol. */
  reidentified(): void {
    this.#lanes = { source: null, target: null };
  }

  // ── which lane ──────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * The lane for this client's commands to one of the servers; null when the command at hand waits: for a lane that is
   * being opened, or for its own commands in flight on another one.
   */
  to(side: Side): Lane | null {
    const { flow, client, clients } = this.of;
    const known = this.#lanes[side];
    const wasLost = known !== null && known.closed;
    if (known !== null && !wasLost) {
      if (known === this.#lane || this.inFlight === 0) return known;
      flow.retryWhen('idle');
      return null;
    }
    const lanes = clients.sequencer.lanes[side];
    const { identity } = client;
    const open = lanes.get(identity);
    if (open !== undefined && !open.closed) {
      this.#lanes[side] = open;
      return this.to(side);
    }
    this.retryOn(lanes.open(identity), wasLost);
    return null;
  }

  /**
   * Sends a read to the replica, if one serves this client.
   * @returns whether it is sent, or waits for the client's commands in flight on another lane; where not, the
   * authority answers
   */
  readReplica(operation: Operation): boolean {
    const { flow, client, clients } = this.of;
    const lane = clients.replicas?.to(client.identity) ?? null;
    if (lane === null) return false;
    if (lane !== this.#lane && this.inFlight > 0) flow.retryWhen('idle');
    else {
      this.adopt(operation, lane);
      clients.replicas!.submit(operation, lane);
    }
    return true;
  }

  /**
   * The command at hand is looked at again when a lane is open; without it, the command has failed.
   * @param replaces a lane that was lost: a server that does not let the client in any more would have ended its
   *   connection
   */
  retryOn(opening: Promise<unknown>, replaces = false): void {
    const { flow } = this.of;
    flow.holdForRetry();
    opening.then(
      () => flow.resume(),
      (problem: Error) => (replaces && isAboutLogin(problem) ? this.of.destroy() : this.failed(problem)),
    );
  }

  /** The command at hand has failed: a server refused it, or cannot be asked. The client goes on behind it. */
  failed(problem: Error): void {
    const { client, flow } = this.of;
    if (client.closed) return;
    // As the loss of the server would show itself.
    if (!(problem instanceof HandshakeRefused)) return closeFor(problem, this.of);
    this.of.replyRefused(problem);
    flow.skip();
  }

  // ── whether the keys are free ───────────────────────────────────────────────────────────────────────────────────

  /** Whether the keys are free of what other lanes have in flight; if not, the command at hand waits. */
  admits(lane: Lane, keys: readonly string[], writes: boolean): boolean {
    const locks = this.of.clients.sequencer.lanes[lane.server.side].locks(lane.identity.db);
    if (!locks.active) return true;
    // What it wakes, it has the keys of, too.
    return this.#admitsOrWaits(locks, lane, writes ? locks.withWoken(keys) : keys, writes);
  }

  /** Whether none of the keys is taken; if one is, the command at hand waits. */
  admitsAlone(locks: KeyLocks, keys: readonly string[]): boolean {
    return this.#admitsOrWaits(locks, null, keys, true);
  }

  #admitsOrWaits(locks: KeyLocks, lane: Lane | null, keys: readonly string[], writes: boolean): boolean {
    const { flow } = this.of;
    if (this.#lockRequest !== null && this.#lockRequest.locks !== locks) this.leaveQueue();
    const lockRequest = this.#lockRequest;
    if (locks.admits(lane, keys, writes, lockRequest)) {
      if (lockRequest !== null) this.leaveQueue();
      return true;
    }
    flow.holdForRetry();
    this.#lockRequest = locks.wait({ lane, keys, writes, go: () => flow.resume() }, lockRequest);
    return false;
  }

  /** The command at hand waits for no keys any more. */
  leaveQueue(): void {
    const lockRequest = this.#lockRequest;
    this.#lockRequest = null;
    lockRequest?.locks.leave(lockRequest);
  }

  // ── in flight ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Puts an operation of this client, or one that will be answered in its name, on a lane. */
  submit(operation: Operation, lane: Lane): void {
    this.adopt(operation, lane);
    this.of.clients.sequencer.submit(operation, lane);
  }

  /** Counts an operation as in flight whose reply will come through `answered` or `deliver`. */
  adopt(operation: Operation, lane: Lane): void {
    const { client, flow } = this.of;
    if (client.replies !== 'on') {
      operation.silent = true;
      if (client.replies === 'skip') client.wants('on');
    }
    this.#lane = lane;
    this.#last = operation;
    const isWrite = operation.spec?.write === true;
    this.#window.sent(isWrite);
    const mayNotTry = !isWrite && this.#untried && !this.#mayTryMore();
    // One that is held waits for something else, which alone lets it go on.
    if (flow.held) return;
    if (mayNotTry) flow.holdUntil(this.inFlight - 1);
    else if (this.#window.isFull || lane.unsentBytes > MAX_UNSENT) flow.holdUntil(this.inFlight >> 1);
  }

  /** A reply of so many bytes has come; `settled` follows. */
  answered(operation: Operation, bytes: number): void {
    if (this.#untried) this.tried();
    this.#window.answered(operation.spec?.write === true, bytes);
  }

  /** A command is answered, or lost. @returns how many are left */
  settled(): number {
    const left = this.#window.settled();
    if (left === 0) {
      this.#last = null;
      this.#followingBytes = 0;
    }
    return left;
  }

  /** Has the reply follow those that are in flight; false where there are none. */
  behindLast(reply: Buffer): boolean {
    if (this.#last === null) return false;
    (this.#last.followingReplies ??= []).push(reply);
    this.#followingBytes += reply.length;
    return true;
  }

  /** Notes one more read in flight whose reply has an unknown size. */
  #mayTryMore(): boolean {
    const { largeReplies, sequencer } = this.of.clients;
    this.#untriedReads++;
    return largeReplies.mayTry(sequencer.turn.now());
  }

  /** What its replies take is known now, or never will be. */
  tried(): void {
    if (!this.#untried) return;
    this.#untried = false;
    this.of.clients.largeReplies.tried(this.#untriedReads);
  }

  // ── questions ───────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Asks the authority something in this client's name; the client is held meanwhile. Once all that it sent before is
   * answered, `then` gets the refusal, or null: the answer itself is for nobody. The client is held until `then` is
   * done.
   */
  inquire(frame: Buffer, then: Inquiry): void {
    const { client, clients, flow } = this.of;
    const { router, turn } = clients.sequencer;
    const lane = this.to(router.default.keylessRule.authority);
    if (lane === null) return;
    // A server that is busy answers HELLO and its like to a new client: the lane may wait for the script that this one
    // is to end.
    if (this.inFlight === 0 && turn.now() - lane.scripts.since > LONG_SCRIPT_MS)
      return this.#inquireBeside(frame, lane, then);
    const sink: Sink = {
      answered: (_operation, buffer, start, end) => {
        this.of.settled();
        this.#conclude(then, buffer[start] === MINUS ? buffer.subarray(start, end) : null);
      },
      lost: (operation, reason) => this.of.lost(operation, reason),
    };
    this.#lane = lane;
    this.#window.sent(false);
    flow.hold();
    const { db, protocol } = client;
    const question = new Operation(frame, 0, frame.length, sink, undefined, router.default, db, protocol, NOTHING);
    clients.sequencer.submit(question, lane);
  }

  /** The client goes on once `then` is done. */
  #conclude(then: Inquiry, refusal: Buffer | null): void {
    const { flow } = this.of;
    let done: void | Promise<void>;
    try {
      done = then(refusal);
    } catch (problem) {
      return this.of.failed(problem);
    }
    if (done === undefined) flow.resume();
    else
      done.then(
        () => flow.resume(),
        (problem: unknown) => this.of.failed(problem),
      );
  }

  /** `inquire` on a connection of its own. */
  #inquireBeside(frame: Buffer, lane: Lane, then: Inquiry): void {
    const { client, flow } = this.of;
    flow.hold();
    lane.server.askAs(client.credentials, ...argumentsOf(frame)).then(
      (reply) => this.#conclude(then, isError(reply) ? error(text(reply)) : null),
      (problem: Error) => this.failed(problem),
    );
  }
}

/** Whether a server does not let the user in, or not any more. */
const isAboutLogin = (problem: Error): boolean =>
  problem instanceof HandshakeRefused && /^(NOAUTH|WRONGPASS) /.test(problem.reply);
