/** Time and chance as the package takes them: Node's, unless the options bring others. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface Time {
  /** Unix ms. */
  unixMs(): number;
  /** Ms that never go back. */
  monotonicMs(): number;
  /** Resolves after `ms`. */
  sleep(ms: number): Promise<void>;
  /** Calls `run` each `ms`; the process may end meanwhile. @returns ends it */
  every(ms: number, run: () => void): () => void;
  /** From 0 up to 1, without 1. */
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
