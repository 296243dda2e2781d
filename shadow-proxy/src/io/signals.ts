/** Signals of the operator. */
import { monotonicMs } from './clock.js';

/** A terminal's Ctrl-C reaches us twice where npm is in between: what follows this soon is the same one. */
const SAME_MS = 1_000;

/**
 * Calls `first` at the first SIGINT or SIGTERM and `later` at each later one.
 * @returns takes the handlers away
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
