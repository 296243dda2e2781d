/** Signals from the operator. */
import { monotonicMs } from './clock.js';

/**
 * With npm in between, a terminal's Ctrl-C reaches the process twice: a signal this soon after another one is the same.
 */
const SAME_MS = 1_000;

/**
 * Calls `first` at the first SIGINT or SIGTERM, and `later` at each further one.
 * @returns a function that removes the handlers
 */
export function onStop(first: (signal: NodeJS.Signals) => void, later: (signal: NodeJS.Signals) => void): () => void {
  let at: number | null = null;
  const handler = (signal: NodeJS.Signals): void => {
    const now = monotonicMs();
    if (at === null) {
      at = now;
      first(signal);
    } else if (now - at > SAME_MS) {
      later(signal);
    }
  };
  process.on('SIGINT', handler).on('SIGTERM', handler);
  return () => void process.off('SIGINT', handler).off('SIGTERM', handler);
}
