/**
 * The lanes that carry one client's commands, and the commands in flight on them. They are never reordered: while some
 * are in flight on one lane, a command for another lane waits.
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
/** Bytes that may wait to be written to the server before a lane's clients are not read any further. */
const MAX_UNSENT = 1 << 20;
/** A script that runs for longer than this, in ms, may be one that a client wants to kill. */
const LONG_SCRIPT_MS = 500;

/** What the lanes need to know of their client. */
export interface LaneUser extends Sink {
  readonly client: ClientState;
  readonly clients: Clients;
  readonly flow: Flow;
  /** The server refuses to log the client in: the client gets the server's own error. */
  replyRefused(refused: HandshakeRefused): void;
  destroy(): void;
  /** The proxy has thrown at a command of this client: the client is closed. */
  failed(problem: unknown): void;
  /** One of the client's commands was answered or lost. */
  settled(): void;
}

/** Gets a server's refusal, or null if there is none. The function must not reject. */
type Inquiry = (refusal: Buffer | null) => void | Promise<void>;

export class ClientLanes {
  readonly #window = new Window();
  /** The lane that carries the commands in flight, or carried the last one. */
  #lane: Lane | null = null;
  /** The lane to each server for the client's present database, user and protocol. */
  #lanes: Record<Side, Lane | null> = { source: null, target: null };
  /** The client's last command in flight, and bytes of the proxy's own replies that wait behind it. */
  #last: Operation | null = null;
  #followingBytes = 0;
  /**
   * Set until the first reply shows how large the client's replies are; and the number of reads in flight until then.
   */
  #untried = true;
  #untriedReads = 0;
  /** The request for locks of the command at hand, if it had to wait for keys. */
  #lockRequest: LockRequest | null = null;

  constructor(private readonly of: LaneUser) {}

  get inFlight(): number {
    return this.#window.inFlight;
  }

  get followingBytes(): number {
    return this.#followingBytes;
  }

  /** Bytes of the largest recent reply. */
  get largestReply(): number {
    return this.#window.largestReply;
  }

  /** The lanes that the client uses. */
  get used(): readonly (Lane | null)[] {
    return [this.#lanes.source, this.#lanes.target];
  }

  /** The client has another database, user or protocol. */
  reidentified(): void {
    this.#lanes = { source: null, target: null };
  }

  // ── which lane ──────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * The lane for this client's commands to one of the servers; null if the command at hand has to wait, for a lane that
   * is being opened or for the client's commands in flight on another lane.
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
   * @returns whether it is sent, or waits for the client's commands in flight on another lane; if false, the authority
   * answers
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
   * Dispatches the command at hand again when a lane is open; if it cannot be opened, the command fails.
   * @param replaces a lane that was lost: a server that refuses the client now would also have closed its connection
   */
  retryOn(opening: Promise<unknown>, replaces = false): void {
    const { flow } = this.of;
    flow.holdForRetry();
    opening.then(
      () => flow.resume(),
      (problem: Error) => (replaces && isAboutLogin(problem) ? this.of.destroy() : this.failed(problem)),
    );
  }

  /**
   * The command at hand has failed: a server refused it, or cannot be reached. The client continues with its next
   * command.
   */
  failed(problem: Error): void {
    const { client, flow } = this.of;
    if (client.closed) return;
    // The client sees a closed connection, as if it had lost the server itself.
    if (!(problem instanceof HandshakeRefused)) return closeFor(problem, this.of);
    this.of.replyRefused(problem);
    flow.skip();
  }

  // ── whether the keys are free ───────────────────────────────────────────────────────────────────────────────────

  /** Whether no other lane has commands on these keys in flight. If one has, the command at hand waits. */
  admits(lane: Lane, keys: readonly string[], writes: boolean): boolean {
    const locks = this.of.clients.sequencer.locksOf(lane, lane.identity.db);
    if (!locks.active) return true;
    // A write that wakes blocked clients reserves their other keys, too.
    return this.#admitsOrWaits(locks, lane, writes ? locks.withWoken(keys) : keys, writes);
  }

  /** Whether no other command holds one of the keys. If one does, the command at hand waits. */
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

  /** Withdraws the request for locks of the command at hand. */
  leaveQueue(): void {
    const lockRequest = this.#lockRequest;
    this.#lockRequest = null;
    lockRequest?.locks.leave(lockRequest);
  }

  // ── in flight ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Puts an operation on a lane. Its reply goes to this client. */
  submit(operation: Operation, lane: Lane): void {
    this.adopt(operation, lane);
    this.of.clients.sequencer.submit(operation, lane);
  }

  /**
   * Counts an operation as in flight that was put on a lane by other means. Its reply comes through `answered` or
   * `deliver`.
   */
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
    // A client that is held is resumed only by what it waits for.
    if (flow.held) return;
    if (mayNotTry) flow.holdUntil(this.inFlight - 1);
    else if (this.#window.isFull || lane.unsentBytes > MAX_UNSENT) flow.holdUntil(this.inFlight >> 1);
  }

  /** A reply of `bytes` bytes has come; `settled` follows. */
  answered(operation: Operation, bytes: number): void {
    if (this.#untried) this.tried();
    this.#window.answered(operation.spec?.write === true, bytes);
  }

  /** A command was answered or lost. @returns how many are left */
  settled(): number {
    const left = this.#window.settled();
    if (left === 0) {
      this.#last = null;
      this.#followingBytes = 0;
    }
    return left;
  }

  /** Queues a reply of the proxy behind those in flight. @returns false if none is in flight */
  behindLast(reply: Buffer): boolean {
    if (this.#last === null) return false;
    (this.#last.followingReplies ??= []).push(reply);
    this.#followingBytes += reply.length;
    return true;
  }

  /** Counts one more read in flight whose reply has an unknown size. @returns whether it may be sent */
  #mayTryMore(): boolean {
    const { largeReplies, sequencer } = this.of.clients;
    this.#untriedReads++;
    return largeReplies.mayTry(sequencer.turn.now());
  }

  /** The size of the client's replies is known now, or will never matter. */
  tried(): void {
    if (!this.#untried) return;
    this.#untried = false;
    this.of.clients.largeReplies.tried(this.#untriedReads);
  }

  // ── questions ───────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Asks the authority something in this client's name, once all earlier commands are answered. `then` gets the
   * server's error, or null; the reply is not passed on. The client is held until `then` is done.
   */
  inquire(frame: Buffer, then: Inquiry): void {
    const { client, clients, flow } = this.of;
    const { router, turn } = clients.sequencer;
    const lane = this.to(router.default.position.keylessRule.authority);
    if (lane === null) return;
    // A server that runs a script still answers HELLO on a new connection. On the lane, the question could wait for the
    // very script that this client wants to kill.
    if (this.inFlight === 0 && turn.now() - lane.longCommands.scriptSince > LONG_SCRIPT_MS)
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

  /** Calls `then`, and resumes the client when that is done. */
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

  /** Asks as `inquire` does, on a connection of its own. */
  #inquireBeside(frame: Buffer, lane: Lane, then: Inquiry): void {
    const { client, flow } = this.of;
    flow.hold();
    lane.server.askAs(client.credentials, ...argumentsOf(frame)).then(
      (reply) => this.#conclude(then, isError(reply) ? error(text(reply)) : null),
      (problem: Error) => this.failed(problem),
    );
  }
}

/** Whether the error says that the server refuses the client's user. */
const isAboutLogin = (problem: Error): boolean =>
  problem instanceof HandshakeRefused && /^(NOAUTH|WRONGPASS) /.test(problem.reply);
