/** Decides when a process writes its keys again automatically. */
import type { Which } from './repair.js';
import type { Time } from './time.js';

export interface UpkeepOptions {
  /** Milliseconds between checks; 0: never automatically. */
  readonly repairMs: number;
  /** Milliseconds after which everything is written again in any case. */
  readonly rewriteMs: number;
  readonly time: Time;
}

/**
 * After a gap everything is written at once, and again at the next check, because the first write may still be behind a
 * resync.
 */
const WRITES_AFTER_GAP = 2;

export class Upkeep {
  #stopLooking: (() => void) | undefined;
  #due = 0;
  #looks = 0;
  #running: Promise<unknown> | null = null;

  constructor(
    private readonly rewrite: (which: Which) => Promise<unknown>,
    private readonly options: UpkeepOptions,
  ) {}

  start(): void {
    const { repairMs, time } = this.options;
    if (repairMs > 0) this.#stopLooking = time.every(repairMs, () => this.#look());
  }

  stop(): void {
    this.#stopLooking?.();
    this.#stopLooking = undefined;
  }

  sawGap(): void {
    this.#due = WRITES_AFTER_GAP;
    this.#look();
  }

  #look(): void {
    if (this.#stopLooking === undefined || this.#running !== null) return;
    this.#looks++;
    const all = this.#due > 0 || this.#looks * this.options.repairMs >= this.options.rewriteMs;
    // A repair that fails is due again: the server is disconnected, as the application's own commands show.
    this.#running = this.rewrite(all ? 'all' : 'differing')
      .then(() => {
        if (all) this.#looks = 0;
        this.#due = Math.max(0, this.#due - 1);
      })
      .catch(() => undefined)
      .finally(() => (this.#running = null));
  }
}
