/**
 * Virtual time. An event belongs to a process and runs in a real `setImmediate` callback of its own: Node runs the
 * promises and ticks that follow from it before the next one. Events of one moment run in the order in which they were
 * made. Time does not pass while an event runs.
 */

/** Events of a process that is not alive do not run. */
export interface Owner {
  readonly name: string;
  readonly alive: boolean;
  /** Its events wait until then. */
  readonly stoppedUntil: number;
}

export interface Event {
  at: number;
  readonly order: number;
  readonly owner: Owner;
  /** Null where it was cancelled, or has run. */
  run: (() => void) | null;
}

/** How many callbacks are queued at a time. */
const BATCH = 256;

export class Events {
  /** Milliseconds since the run began. */
  now = 0;
  /** Events that have run. */
  count = 0;
  /** The process whose event runs. */
  current: Owner = WORLD;
  /** Called after each event, with what followed from it. */
  afterEach: () => void = () => undefined;
  #trace = 0x811c9dc5;
  #order = 0;
  #heap: Event[] = [];
  /** How many of the heap were cancelled. */
  #cancelled = 0;

  /** A number that is the same for two runs with the same events. */
  get trace(): number {
    return this.#trace >>> 0;
  }

  /** Adds to the trace. */
  note(what: number): void {
    this.#trace = Math.imul(this.#trace ^ what, 0x01000193);
  }

  after(ms: number, owner: Owner, run: () => void): Event {
    const event = { at: this.now + Math.max(0, ms), order: this.#order++, owner, run };
    this.#push(event);
    return event;
  }

  cancel(event: Event): void {
    if (event.run === null) return;
    event.run = null;
    if (++this.#cancelled > 1_000 && this.#cancelled > this.#heap.length / 2) this.#sweep();
  }

  /** A process has ended: drops its events, and all that they hold. */
  forget(owner: Owner): void {
    for (const event of this.#heap) if (event.owner === owner) event.run = null;
    this.#sweep();
  }

  /** Runs `run` as the process's own, within the event at hand. */
  as<T>(owner: Owner, run: () => T): T {
    const { current } = this;
    this.current = owner;
    try {
      return run();
    } finally {
      this.current = current;
    }
  }

  /**
   * Runs events until `done`, at most `limitMs` of virtual time.
   * @returns false where the time is over, or nothing is left to happen
   */
  run(done: () => boolean, limitMs: number): Promise<boolean> {
    const end = this.now + limitMs;
    return new Promise((resolve, reject) => {
      let over = false;
      const finish = (reached: boolean): void => {
        over = true;
        this.current = WORLD;
        resolve(reached);
      };
      let first = true;
      const step = (): void => {
        if (over) return;
        try {
          if (!first) this.afterEach();
          first = false;
          if (done()) return finish(true);
          const event = this.#next(end);
          if (event === null) {
            if (end !== Infinity) this.now = end;
            return finish(false);
          }
          this.now = event.at;
          this.count++;
          this.note(Math.trunc(event.at * 1000) ^ (event.order << 8));
          this.current = event.owner;
          const { run } = event;
          event.run = null;
          run!();
        } catch (problem) {
          over = true;
          this.current = WORLD;
          reject(problem as Error);
        }
      };
      const queue = (): void => {
        if (over) return;
        for (let i = 0; i < BATCH; i++) setImmediate(step);
        setImmediate(queue);
      };
      queue();
    });
  }

  #next(end: number): Event | null {
    for (;;) {
      const event = this.#heap[0];
      if (event === undefined || event.at > end) return null;
      this.#pop();
      if (event.run === null) this.#cancelled = Math.max(0, this.#cancelled - 1);
      if (event.run === null || !event.owner.alive) continue;
      if (event.owner.stoppedUntil <= event.at) return event;
      event.at = event.owner.stoppedUntil;
      this.#push(event);
    }
  }

  #sweep(): void {
    // Sorted, it is a heap.
    this.#heap = this.#heap.filter(({ run }) => run !== null).sort((a, b) => (isBefore(a, b) ? -1 : 1));
    this.#cancelled = 0;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(event, heap[above])) break;
      heap[at] = heap[above];
      at = above;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1], heap[below])) below++;
      if (!isBefore(heap[below], last)) break;
      heap[at] = heap[below];
      at = below;
    }
    heap[at] = last;
  }
}

/** Whose events the network, the faults and the clients are. */
export const WORLD: Owner = { name: 'world', alive: true, stoppedUntil: 0 };

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
