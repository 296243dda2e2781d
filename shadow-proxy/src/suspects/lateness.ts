/**
 * How late copies of one key came to the mirror. A mirror that is always late is accepted: a time to live is off by its
 * lateness. A copy that came far later than others is not, for another one will be better.
 */

/** How much later than the best of the copies one may come. */
const SPREAD = 2;
/** By so much more with each further one: a mirror may have become slower for good. */
const GROWTH = 1.25;

export class Lateness {
  /** How many copies came late. */
  copies = 0;
  #acceptedMs = Infinity;

  /** @param tries how many copies may come late before one is accepted */
  constructor(private readonly tries: number) {}

  /**
   * Whether one more late copy is accepted.
   *
   * @param errorMs by how many milliseconds its time to live may be off
   */
  accepts(errorMs: number): boolean {
    this.#acceptedMs = Math.min(this.#acceptedMs * GROWTH, errorMs * SPREAD);
    return ++this.copies > this.tries && errorMs <= this.#acceptedMs;
  }
}
