/** Timers and turns of the event loop. */
import { world, type Timer } from './world.js';

export type { Timer };

/** Calls `run` once, after `ms`. */
export const after = (ms: number, run: () => void): Timer => world.after(ms, run);

/** Calls `run` every `ms`. */
export const every = (ms: number, run: () => void): Timer => world.every(ms, run);

/** Stops a timer of `after` or `every`. */
export function clearTimer(timer: Timer | undefined): void {
  if (timer !== undefined) world.clearTimer(timer);
}

/** Calls `run` after everything that has arrived by now was read. */
export const nextTurn = (run: () => void): void => world.nextTurn(run);

/**
 * Resolves after everything that has arrived by now was read. Await it before a server is judged to be silent: if the
 * loop is late, a timer fires before the sockets are read.
 */
export const afterReading = (): Promise<void> => new Promise(nextTurn);

export interface SleepOptions {
  /** False: the process may end before the time is over. */
  readonly ref?: boolean;
  /** Ends the sleep early: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Resolves with `value` after `ms`. */
export function sleep(ms: number): Promise<void>;
export function sleep<T>(ms: number, value: T, options?: SleepOptions): Promise<T>;
export function sleep<T>(ms: number, value?: T, { ref = true, signal }: SleepOptions = {}): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const abort = (): void => {
      clearTimer(timer);
      reject(signal!.reason as Error);
    };
    const timer = after(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    });
    if (!ref) timer.unref();
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** A signal that aborts after `ms`. It does not keep the process alive. */
export function timeoutSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  after(ms, () =>
    controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
  ).unref();
  return controller.signal;
}
