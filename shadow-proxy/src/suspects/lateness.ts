/**
 * How late the last copies of one key came to the mirror. A mirror that is always late is accepted: a time to live is
 * off by its lateness. A copy that came far later than one of the last copies is not, for another one will be better.
 */

/** How much later than the best of the last copies one may come. */
const SPREAD = 2;

export class Lateness {
  /** How many copies came late. */
  copies = 0;
  /** Of the last copies, the oldest first. */
  readonly #errorsMs: number[] = [];

  /**
   * @param tries how many copies may come late before one is accepted. As many must be late in a row until a mirror
   *   that became slower counts as slower for good.
   */
  constructor(private readonly tries: number) {}

  /**
   * Whether one more late copy is accepted.
   *
   * @param errorMs by how many milliseconds its time to live may be off
   */
  accepts(errorMs: number): boolean {
    this.copies++;
    this.#errorsMs.push(errorMs);
    if (this.#errorsMs.length <= this.tries) return false;
    const accepted = errorMs <= Math.min(...this.#errorsMs) * SPREAD;
    this.#errorsMs.shift();
    return accepted;
  }
}
