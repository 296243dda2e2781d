/**
 * How long the process has read its sockets: the monotonic clock, without the time in which the event loop was busy or
 * the process was stopped.
 */
const TICK_MS = 100;
/** Longest step that counts as listening: a loop that is a little late still reads everything. */
const LONGEST_STEP_MS = 250;

export class ProcessListening {
  #listened = 0;
  #tickedAt = 0;
  #started = false;

  /** Milliseconds since the first call. */
  ms(): number {
    if (!this.#started) {
      this.#started = true;
      this.#tickedAt = performance.now();
      setInterval(() => this.#tick(), TICK_MS).unref();
    }
    return this.#listened + Math.min(performance.now() - this.#tickedAt, LONGEST_STEP_MS);
  }

  #tick(): void {
    const now = performance.now();
    this.#listened += Math.min(now - this.#tickedAt, LONGEST_STEP_MS);
    this.#tickedAt = now;
  }
}
