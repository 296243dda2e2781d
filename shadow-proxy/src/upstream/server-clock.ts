/** A server's clock, as seen from here. */
import { unixMs } from '../io/clock.js';

/** What the time of a server that does not tell it may be wrong by. */
const UNKNOWN_CLOCK_ERROR_MS = 1_000;
/** By so much a clock is set, and does not only run fast or slow. */
const SET_CLOCK_MS = 500;

export class ServerClock {
  #unixTimeAtZero = 0;
  #errorMs = Infinity;

  /** Its Unix time in ms when our monotonic clock was 0. */
  get unixTimeAtZero(): number {
    return this.#unixTimeAtZero;
  }

  /** By how much that may be wrong. */
  get errorMs(): number {
    return this.#errorMs;
  }

  /**
   * Takes in what the server said between two moments of our monotonic clock, in ms. Servers before Redis 6.2 do not
   * tell the time in INFO (NaN): theirs is taken to be ours, more or less.
   * @returns by how much the clock was set since the last look; 0 where that is not certain
   */
  read(serverMs: number, asked: number, answered: number): number {
    const isKnown = Number.isFinite(serverMs);
    const [before, errorBefore] = [this.#unixTimeAtZero, this.#errorMs];
    this.#unixTimeAtZero = (isKnown ? serverMs : unixMs()) - (asked + answered) / 2;
    this.#errorMs = isKnown ? (answered - asked) / 2 : UNKNOWN_CLOCK_ERROR_MS;
    const byMs = this.#unixTimeAtZero - before;
    return Math.abs(byMs) > errorBefore + this.#errorMs + SET_CLOCK_MS ? byMs : 0;
  }
}
