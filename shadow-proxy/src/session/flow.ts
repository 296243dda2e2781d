/**
 * Decides when a client is read further, and what its next command waits for. While the client is held, its socket is
 * paused and none of its commands is dispatched; `resume` continues there. The socket is read again only when all that
 * arrived is dispatched: else a client that sends more than its share of each turn would fill the memory.
 */
import { nextTurn } from '../io/timers.js';
import type { ClientState } from './client-state.js';
import type { TurnBudget } from './turn-budget.js';

/** What a command costs in addition to its bytes, in bytes of the turn's budget. */
const COMMAND_COST = 256;
/** Bytes of replies that may be unread, or wait behind one reply, before the client is not read any further. */
export const MAX_UNREAD = 1 << 20;
/** A client that reads nothing for this long, in ms, may be one that writes its whole pipeline before it reads. */
const STUCK_MS = 100;

/** What a flow needs to know of its client. */
export interface Flowing {
  readonly client: ClientState;
  /** Commands that are not answered yet. */
  readonly inFlight: number;
  /** Bytes of replies that the client has not read. */
  readonly unread: number;
  readonly turnBudget: TurnBudget;
  /** The most that `unread` may be, in bytes. */
  readonly maxUnreadBytes: number;
  /** Whether there is room to keep more of the client's commands. */
  readonly hasRoom: boolean;
  /** Calls `retry` when a stage change or an exclusive command has ended. */
  onceOpen(retry: () => void, place?: number): void;
  /** Dispatches the commands that have arrived, then lets the socket be read. */
  run(): void;
  /** Closes the client, which leaves too much unread. */
  closeForOutput(): void;
  /** The promise that the client waited for was rejected: the client is closed. */
  failed(problem: unknown): void;
}

export class Flow {
  #held = false;
  /** The socket is not read. */
  #paused = false;
  /** The held command is to be dispatched again. */
  #isRetry = false;
  #running = false;
  /** The command at hand is carried out in steps of its own, and resumes the client when it has ended. */
  #working = false;
  /** Called when that has ended: the client is to be closed. */
  #onEnd: (() => void) | null = null;
  /** Reading goes on when no more commands than this are in flight; -1 if it does not wait for that. */
  #resumeAt = -1;
  #onIdle: (() => void) | null = null;
  /** The turn in which the client was last served, and what is left of its share of that turn. */
  #turnAt = 0;
  #turnLeft = 0;
  /** Bytes of replies that the client may leave unread before it is not read any further. */
  #mayLeave = MAX_UNREAD;

  constructor(private readonly of: Flowing) {}

  get held(): boolean {
    return this.#held;
  }

  /** Whether the command at hand may still send something, though none of the client's commands is in flight. */
  get isWorking(): boolean {
    return this.#working;
  }

  /** Whether the client leaves more unread than it may. */
  get leavesTooMuch(): boolean {
    return this.of.unread > this.#mayLeave;
  }

  /** Dispatching begins. @param now when the turn began @param bytes how many were read for it */
  begin(now: number, bytes: number): void {
    if (this.#turnAt !== now) {
      this.#turnAt = now;
      this.#turnLeft = this.of.turnBudget.share(now);
    }
    this.#turnLeft -= bytes;
    this.#running = true;
  }

  end(): void {
    this.#running = false;
  }

  /** Whether the client's share of the turn is used up: it continues in the next turn. */
  waitsForTurn(): boolean {
    if (this.#turnLeft > 0) return false;
    this.of.turnBudget.usedUp();
    this.awaitTurn();
    return true;
  }

  /** A command is about to be dispatched. @returns whether it was dispatched before, and had to wait */
  next(): boolean {
    this.#turnLeft -= COMMAND_COST;
    const isRetry = this.#isRetry;
    this.#isRetry = false;
    return isRetry;
  }

  // ── holding ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Holds the client until `resume` is called, at the end of the command at hand. */
  hold(): void {
    this.#hold(false);
    this.#working = true;
  }

  /** Holds the client until `resume` is called. A command at hand that is to be dispatched again stays so. */
  pause(): void {
    this.#hold(this.#isRetry);
  }

  /** Holds the client until at most `inFlight` of its commands are in flight. */
  pauseUntil(inFlight: number): void {
    this.pause();
    this.#resumeAt = inFlight;
  }

  /** Holds the client until no more than `inFlight` of its commands are in flight. */
  holdUntil(inFlight: number): void {
    this.#hold(false);
    this.#resumeAt = inFlight;
  }

  /** Holds the client until none of its commands is in flight. */
  holdUntilIdle(): void {
    this.holdUntil(0);
  }

  /** Holds the client, and keeps its socket readable, so that a disconnect is seen. */
  holdOpen(isRetry: boolean): void {
    this.#hold(isRetry);
    if (this.of.hasRoom) this.readOn();
  }

  /** Reads the socket again: all that arrived is dispatched, or there is room to keep more. */
  readOn(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.of.client.socket.resume();
  }

  /** Pauses the socket: there is no room to keep more. */
  readNoFurther(): void {
    this.#paused = true;
    this.of.client.socket.pause();
  }

  resume(): void {
    if (!this.#held || this.of.client.closed) return;
    this.#held = false;
    this.#working = false;
    this.#resumeAt = -1;
    if (this.#onEnd !== null) return this.atEnd(this.#onEnd);
    // If the command at hand was finished at once, the loop that dispatched it continues.
    if (!this.#running) this.of.run();
  }

  /** Continues after the command at hand, which has failed. */
  skip(): void {
    this.#isRetry = false;
    this.resume();
  }

  /** Holds the client, and runs `then` once none of its commands is in flight. */
  whenIdle(then: () => void): void {
    this.#whenIdle(then, false);
  }

  /**
   * Resumes the client once none of its commands is in flight. The command at hand is dispatched again if it was to be.
   */
  resumeWhenIdle(): void {
    this.#whenIdle(() => this.resume(), this.#isRetry);
  }

  /**
   * Dispatches the command at hand again
   * - `idle`: when none of the client's commands is in flight;
   * - `open`: when a stage change or an exclusive command has ended;
   * - when a promise is settled, whether resolved or rejected.
   */
  retryWhen(event: 'idle' | 'open' | Promise<unknown>): void {
    const retry = (): void => this.resume();
    if (event === 'idle') this.#whenIdle(retry, true);
    else {
      this.#hold(true);
      if (event === 'open') this.of.onceOpen(retry, this.of.client.blocked?.place);
      else event.then(retry, retry);
    }
  }

  /** `left` commands are still in flight: the command that waited for that number continues. */
  settled(left: number): void {
    if (this.#onIdle !== null && left === 0) {
      const onIdle = this.#onIdle;
      this.#onIdle = null;
      try {
        onIdle();
      } catch (problem) {
        this.of.failed(problem);
      }
    } else if (left <= this.#resumeAt) {
      this.#resumeAt = -1;
      this.resume();
    }
  }

  /**
   * Calls `then` when no command is in flight, and the one at hand has ended. A command that only waits for either is
   * dropped.
   */
  atEnd(then: () => void): void {
    this.#onEnd = null;
    if (this.of.inFlight > 0) {
      if (this.#onIdle !== null) this.#working = false;
      this.#onIdle = () => this.atEnd(then);
    } else if (this.#working) this.#onEnd = then;
    else then();
  }

  /** Holds the client. What the command at hand waits for will resume it. */
  holdForRetry(): void {
    this.#hold(true);
  }

  /** A client waits for one thing at a time: an earlier wait cannot resume it any more. */
  #hold(isRetry: boolean): void {
    this.#held = true;
    this.#working = false;
    this.#resumeAt = -1;
    this.#isRetry = isRetry;
    this.readNoFurther();
  }

  #whenIdle(then: () => void, isRetry: boolean): void {
    this.#hold(isRetry);
    this.#working = !isRetry;
    if (this.of.inFlight === 0) then();
    else this.#onIdle = then;
  }

  // ── turns ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Continues in the next turn; a client that leaves too much unread continues when it has read. */
  awaitTurn(): void {
    this.pause();
    nextTurn(() => {
      if (this.leavesTooMuch && this.of.client.socket.writableNeedDrain) this.#awaitReader();
      else this.resume();
    });
  }

  /** Continues when the client has read everything. If it reads nothing for `STUCK_MS`, the bound is doubled. */
  #awaitReader(): void {
    const { socket } = this.of.client;
    const goOn = (mayLeave: number): void => {
      socket.setTimeout(0).off('drain', drained).off('timeout', stuck);
      this.#mayLeave = mayLeave;
      this.resume();
    };
    const drained = (): void => goOn(MAX_UNREAD);
    const stuck = (): void => {
      if (this.of.unread > this.of.maxUnreadBytes) this.of.closeForOutput();
      else goOn(Math.min(2 * this.#mayLeave, this.of.maxUnreadBytes));
    };
    // A socket that still writes a part of its buffer does not time out.
    socket.setTimeout(STUCK_MS).on('drain', drained).on('timeout', stuck);
  }
}
