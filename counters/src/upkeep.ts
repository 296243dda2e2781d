/** When a process writes its keys again by itself. */
import type { Which } from './repair.js';

export interface UpkeepOptions {
  /** Ms between looks; 0: never by itself. */
  readonly repairMs: number;
  /** Ms after which everything is written again in any case. */
  readonly rewriteMs: number;
}

/** After a gap everything is written at once, and again at the next look: the first may still be behind a resync. */
const WRITES_AFTER_GAP = 2;

export class Upkeep {
  #timer: NodeJS.Timeout | undefined;
  #due = 0;
  #looks = 0;
  #running: Promise<unknown> | null = null;

  constructor(
    private readonly rewrite: (which: Which) => Promise<unknown>,
    private readonly options: UpkeepOptions,
  ) {}

  start(): void {
    if (this.options.repairMs > 0) this.#timer = setInterval(() => this.#look(), this.options.repairMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  sawGap(): void {
    this.#due = WRITES_AFTER_GAP;
    this.#look();
  }

  #look(): void {
    if (this.#timer === undefined || this.#running !== null) return;
    this.#looks++;
    const all = this.#due > 0 || this.#looks * this.options.repairMs >= this.options.rewriteMs;
    // What fails is due again: the server is disconnected, as the application's own commands show.
    this.#running = this.rewrite(all ? 'all' : 'differing')
      .then(() => {
        if (all) this.#looks = 0;
        this.#due = Math.max(0, this.#due - 1);
      })
      .catch(() => undefined)
      .finally(() => (this.#running = null));
  }
}
