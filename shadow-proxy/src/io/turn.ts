/**
 * The end of an event-loop turn: everything that was marked during the turn's reads is flushed once, after them. Each
 * socket gets one write a turn, however many commands it carries.
 *
 * Room: io: what comes from outside: time, random, sockets, files; one write a turn, packed input.
 * Called by: every room after it.
 * Calls: no room.
 */
import { monotonicMs } from './clock.js';
import { nextTurn } from './timers.js';

export interface Flushable {
  /** Set by `Turn.mark`, cleared by the flush. */
  marked: boolean;
  flush(): void;
}

export class Turn {
  #marked: Flushable[] = [];
  #scheduled = false;
  #now = 0;

  constructor(
    /** Called at the end of each turn, before anything is sent. */
    private readonly beforeFlush: () => void = () => undefined,
  ) {}

  /** The monotonic clock in ms, read once a turn. */
  now(): number {
    if (this.#now === 0) {
      this.#now = monotonicMs();
      this.#schedule();
    }
    return this.#now;
  }

  mark(flushable: Flushable): void {
    if (flushable.marked) return;
    flushable.marked = true;
    this.#marked.push(flushable);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    nextTurn(this.#end);
  }

  readonly #end = (): void => {
    this.#scheduled = false;
    this.#now = 0;
    this.beforeFlush();
    const marked = this.#marked;
    this.#marked = [];
    for (const flushable of marked) {
      flushable.marked = false;
      flushable.flush();
    }
  };
}
