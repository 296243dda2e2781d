/** A server's clock, as measured by the proxy. */
import { unixMs } from '../io/clock.js';

/** The assumed error of a clock that the server does not show. */
const UNKNOWN_CLOCK_ERROR_MS = 1_000;
/** A clock that jumps by this much was set; a smaller change is drift. */
const SET_CLOCK_MS = 500;

export class ServerClock {
  #unixTimeAtZero = 0;
  #errorMs = Infinity;

  /** The server's Unix time in ms when the proxy's monotonic clock was 0. */
  get unixTimeAtZero(): number {
    return this.#unixTimeAtZero;
  }

  /** The possible error of `unixTimeAtZero`, in ms. */
  get errorMs(): number {
    return this.#errorMs;
  }

  /**
   * Notes the time that the server gave between two moments of the proxy's monotonic clock, in ms. Servers before Redis
   * 6.2 give no time in INFO (NaN): their clock is assumed to be about the proxy's.
   * @returns by how much the clock was set since the last measurement; 0 if that is not certain
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
