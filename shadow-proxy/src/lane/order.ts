/**
 * The order of keys where several lanes lead to one database: replies of different connections do not tell in which
 * order their commands ran. So a command waits for those of other lanes on the same key that are in flight, if
 * either of the two writes. While there is one lane, there is nothing to do.
 */
import type { Lane } from './lane.js';

interface Holding {
  /** The lane that holds the key; null where several do, all reading. */
  lane: Lane | null;
  readers: number;
  writers: number;
}

export class KeyOrder {
  /** True from the moment that a second lane is being opened. */
  tracking = false;
  readonly #held = new Map<string, Holding>();
  readonly #waiting = new Set<() => void>();

  /** Whether a command of `lane` on these keys may go now. */
  admits(lane: Lane, keys: readonly string[], writes: boolean): boolean {
    for (const key of keys) {
      const holding = this.#held.get(key);
      if (holding !== undefined && holding.lane !== lane && (writes || holding.writers > 0)) return false;
    }
    return true;
  }

  hold(lane: Lane, keys: readonly string[], writes: boolean): void {
    for (const key of keys) {
      let holding = this.#held.get(key);
      if (holding === undefined) this.#held.set(key, (holding = { lane, readers: 0, writers: 0 }));
      else if (holding.lane !== lane) holding.lane = null;
      if (writes) holding.writers++;
      else holding.readers++;
    }
  }

  release(keys: readonly string[], writes: boolean): void {
    for (const key of keys) {
      const holding = this.#held.get(key);
      if (holding === undefined) continue;
      if (writes) holding.writers--;
      else holding.readers--;
      if (holding.readers + holding.writers === 0) this.#held.delete(key);
    }
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const retry of waiting) retry();
  }

  /** Calls `retry` after the next release. */
  wait(retry: () => void): void {
    this.#waiting.add(retry);
  }
}
