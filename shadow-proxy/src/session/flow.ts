/**
 * Whether a client is read on, and what its next command waits for. While it is held, its socket is paused and nothing
 * of it is dispatched; `resume` goes on where it was. Its socket is read on once all that had come is dispatched: else
 * a client that sends more than its share of each turn would fill the memory.
 */
import { nextTurn } from '../io/timers.js';
import type { ClientState } from './client-state.js';
import type { TurnBudget } from './turn-budget.js';

/** What a command costs beside its bytes, in bytes of the budget of a turn. */
const COMMAND_COST = 256;
/** Bytes of replies that a client may owe reading, or that wait behind one reply, before it is read no further. */
export const MAX_UNREAD = 1 << 20;
/** A client that takes nothing for so long, in ms, may be one that sends all of a pipeline before it reads. */
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
  /** Whether more of what it sends may be kept for later. */
  readonly hasRoom: boolean;
  /** Calls back when a stage change has ended or an exclusive command is over. */
  onceOpen(retry: () => void, place?: number): void;
  /** Dispatches what there is, and then has the socket read on. */
  run(): void;
  /** Closes the client, which leaves too much unread. */
  closeForOutput(): void;
  /** What it waited for has thrown: it is closed. */
  failed(problem: unknown): void;
}

export class Flow {
  #held = false;
  /** Its socket is not read. */
  #paused = false;
  /** The held command is to be looked at again, as it was. */
  #isRetry = false;
  #running = false;
  /** While too much is in flight: how much may be left when reading goes on; otherwise -1. */
  #resumeAt = -1;
  #onIdle: (() => void) | null = null;
  /** The turn that it has begun to spend, and how much of that is left. */
  #turnAt = 0;
  #turnLeft = 0;
  /** Bytes of replies that it may owe reading before it is read no further. */
  #mayLeave = MAX_UNREAD;

  constructor(private readonly of: Flowing) {}

  get held(): boolean {
    return this.#held;
  }

  /** Whether it leaves more unread than it may. */
  get leavesTooMuch(): boolean {
    return this.of.unread > this.#mayLeave;
  }

  /** Dispatching begins, in the turn that began at `now`, with so many bytes that were read for it. */
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

  /** Whether its share of the turn is used up: it goes on in the next. */
  waitsForTurn(): boolean {
    if (this.#turnLeft > 0) return false;
    this.of.turnBudget.usedUp();
    this.awaitTurn();
    return true;
  }

  /** A command is about to be dispatched. @returns whether it was looked at before, and had to wait */
  next(): boolean {
    this.#turnLeft -= COMMAND_COST;
    const again = this.#isRetry;
    this.#isRetry = false;
    return again;
  }

  // ── holding ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Holds the client until `resume` is called; the command at hand is done with. */
  hold(): void {
    this.#hold(false);
  }

  /** Holds the client until `resume` is called. A command at hand that is to be tried again stays so. */
  pause(): void {
    this.#hold(this.#isRetry);
  }

  /** Holds the client until at most `inFlight` of its commands are in flight. */
  pauseUntil(inFlight: number): void {
    this.pause();
    this.#resumeAt = inFlight;
  }

  /** Holds the client until no more than so many of its commands are in flight. */
  holdUntil(inFlight: number): void {
    this.#hold(false);
    this.#resumeAt = inFlight;
  }

  /** Holds the client until all that it has in flight is answered. */
  holdUntilIdle(): void {
    this.holdUntil(0);
  }

  /** Holds the client for as long as may be: that it closes its end is still seen. */
  holdOpen(again: boolean): void {
    this.#hold(again);
    if (this.of.hasRoom) this.readOn();
  }

  /** All that had come is dispatched, or more of it may be kept. */
  readOn(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.of.client.socket.resume();
  }

  /** No more of what it sends may be kept. */
  readNoFurther(): void {
    this.#paused = true;
    this.of.client.socket.pause();
  }

  resume(): void {
    if (!this.#held || this.of.client.closed) return;
    this.#held = false;
    this.#resumeAt = -1;
    // If the command at hand was done at once, the loop that dispatched it goes on.
    if (!this.#running) this.of.run();
  }

  /** Goes on behind the command at hand, which has failed. */
  skip(): void {
    this.#isRetry = false;
    this.resume();
  }

  /** Runs `then` once nothing of this client is in flight; the client is held from now on. */
  whenIdle(then: () => void): void {
    this.#whenIdle(then, false);
  }

  /** Resumes the client once nothing of it is in flight. The command at hand stays as it was. */
  resumeWhenIdle(): void {
    this.#whenIdle(() => this.resume(), this.#isRetry);
  }

  /**
   * The command at hand is looked at again
   * - `idle`: when nothing of this client is in flight;
   * - `open`: when a stage change has ended, or an exclusive command is over;
   * - when a promise is settled, however that ends.
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

  /** So many commands are left in flight: the one that waited for that goes on. */
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

  /** Calls `then` when nothing is in flight; the one that waited for that does no longer. */
  atEnd(then: () => void): void {
    if (this.of.inFlight === 0) then();
    else this.#onIdle = then;
  }

  /** The command at hand waits for something that resumes it by itself. */
  holdForRetry(): void {
    this.#hold(true);
  }

  /** A client waits for one thing at a time: an earlier wait does not resume it. */
  #hold(again: boolean): void {
    this.#held = true;
    this.#resumeAt = -1;
    this.#isRetry = again;
    this.readNoFurther();
  }

  #whenIdle(then: () => void, again: boolean): void {
    this.#hold(again);
    if (this.of.inFlight === 0) then();
    else this.#onIdle = then;
  }

  // ── turns ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Goes on in the next turn; where the client leaves too much unread, when it has read. */
  awaitTurn(): void {
    this.pause();
    nextTurn(() => {
      if (this.leavesTooMuch && this.of.client.socket.writableNeedDrain) this.#awaitReader();
      else this.resume();
    });
  }

  /** Goes on when the client has read all. One that reads nothing meanwhile is given twice as much each time. */
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
    // A socket that passes on part of what it has to write has not timed out.
    socket.setTimeout(STUCK_MS).on('drain', drained).on('timeout', stuck);
  }
}
