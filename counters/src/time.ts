/** Clocks, timers and random numbers of the package: Node's, unless the options contain others. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface Time {
  /** Unix ms. */
  unixMs(): number;
  /** Milliseconds of a clock that never goes back. */
  monotonicMs(): number;
  /** Resolves after `ms`. */
  sleep(ms: number): Promise<void>;
  /** Calls `run` every `ms`; it does not keep the process alive. @returns a function that stops it */
  every(ms: number, run: () => void): () => void;
  /** A number from 0 up to, but not including, 1. */
  randomShare(): number;
}

export const NODE_TIME: Time = {
  unixMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms) => sleep(ms),
  every(ms, run) {
    const timer = setInterval(run, ms).unref();
    return () => clearInterval(timer);
  },
  randomShare: () => Math.random(),
};
