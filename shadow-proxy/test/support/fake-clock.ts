/**
 * A clock that is stopped until a test moves it: `performance.now`, `setTimeout`, `setInterval` and the promise of
 * `node:timers/promises`, for the whole process, which runs one test file. `setImmediate` stays as it is.
 */
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';

interface Timer {
  at: number;
  readonly everyMs: number | null;
  readonly run: () => void;
}

/** Turns of the event loop in which all that follows from a timer has happened, conversations in memory too. */
const TURNS = 40;

export class FakeClock {
  #now = 0;
  readonly #timers = new Set<Timer>();

  /** Takes the place of the real clock. Import nothing that reads the time while it is loaded before this. */
  static install(): FakeClock {
    const clock = new FakeClock();
    const timer = (run: (...args: unknown[]) => void, ms = 0, everyMs: number | null = null, args: unknown[] = []) =>
      clock.#add(() => run(...args), ms, everyMs);
    const end = (handle: unknown): void => {
      const ended = (handle as { readonly timer?: Timer } | null | undefined)?.timer;
      if (ended !== undefined) clock.#timers.delete(ended);
    };
    Object.assign(globalThis, {
      setTimeout: (run: () => void, ms?: number, ...args: unknown[]) => timer(run, ms, null, args),
      setInterval: (run: () => void, ms = 1, ...args: unknown[]) => timer(run, ms, ms, args),
      clearTimeout: end,
      clearInterval: end,
    });
    Object.assign(timers, {
      setTimeout: (ms?: number, value?: unknown) => new Promise((resolve) => timer(resolve, ms, null, [value])),
    });
    syncBuiltinESMExports();
    performance.now = () => clock.#now;
    return clock;
  }

  /** In ms since it was installed. */
  get now(): number {
    return this.#now;
  }

  /** Moves on by so many ms: what is due on the way runs in its order, and all that follows from it has happened. */
  async advance(ms: number): Promise<void> {
    const to = this.#now + ms;
    await this.settle();
    for (;;) {
      let next: Timer | undefined;
      for (const each of this.#timers) if (each.at <= to && (next === undefined || each.at < next.at)) next = each;
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.at);
      if (next.everyMs === null) this.#timers.delete(next);
      else next.at += Math.max(1, next.everyMs);
      next.run();
      await this.settle();
    }
    this.#now = to;
    await this.settle();
  }

  /** Moves on at once, as if the event loop had been busy: no timer has run. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** All that needs no time has happened. */
  async settle(): Promise<void> {
    for (let i = 0; i < TURNS; i++) await new Promise<void>((resolve) => void setImmediate(resolve));
  }

  #add(run: () => void, ms: number, everyMs: number | null): unknown {
    const timer = { at: this.#now + Math.max(0, ms), everyMs, run };
    this.#timers.add(timer);
    const handle = { timer, unref: () => handle, ref: () => handle, hasRef: () => true };
    return handle;
  }
}

/** What has become of a promise by now. */
export interface Watched<T> {
  readonly state: 'pending' | 'fulfilled' | 'rejected';
  /** Undefined until it is fulfilled. */
  readonly value: T | undefined;
  readonly reason: unknown;
}

export function watched<T>(promise: Promise<T>): Watched<T> {
  const seen: { -readonly [name in keyof Watched<T>]: Watched<T>[name] } = {
    state: 'pending',
    value: undefined,
    reason: null,
  };
  promise.then(
    (value) => Object.assign(seen, { state: 'fulfilled', value }),
    (reason: unknown) => Object.assign(seen, { state: 'rejected', reason }),
  );
  return seen;
}
