/**
 * How fast keys are copied or verified: no faster than was asked for, so many at once that clients keep half of the
 * servers, and less where the authority's latency is above what was asked for.
 */
import { build, type Histogram } from 'hdr-histogram-js';
import type { Latencies } from '../lane/latency.js';

/** What the operator allows; what is absent is not limited. */
export interface PaceLimits {
  readonly keysPerSecond?: number;
  readonly bytesPerSecond?: number;
  /** Of the authority's replies to clients, in ms. */
  readonly maxP99Ms?: number;
}

/** Keys under way at once where no client is. */
const MOST = 512;
const LEAST = 2;
/** How often the latency is looked at, in ms. */
const LOOK_MS = 100;
/** Replies that tell something of a 99th percentile. */
const ENOUGH_REPLIES = 100;
/** What was not used up is made up for, as far as so long ago, in ms. */
const CREDIT_MS = 50;

export class Pace {
  /** Keys that may be under way for the latency's sake. */
  #window = MOST;
  /** From when on the next key may go. */
  #nextAt = 0;
  #lookedAt = 0;
  readonly #recent: Histogram = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000, numberOfSignificantValueDigits: 2 });

  /** @param latencies of the authority, where the latency is to be looked at */
  constructor(
    private readonly limits: PaceLimits,
    private readonly latencies: Latencies,
  ) {
    if (limits.maxP99Ms !== undefined) latencies.recent = this.#recent;
  }

  /**
   * How many more keys may go now.
   * @param underWay keys that are
   * @param clients commands of clients that the authority has not answered
   */
  room(now: number, underWay: number, clients: number): number {
    if (now < this.#nextAt) return 0;
    this.#look(now);
    // As many as the clients have, so that neither waits for the other longer than for itself.
    const fair = clients === 0 ? MOST : Math.max(LEAST, clients >> 1);
    return Math.min(this.#window - underWay, fair - underWay, this.#portion);
  }

  /** So many at a time, that their rate is even. */
  get #portion(): number {
    const { keysPerSecond = Infinity } = this.limits;
    return Math.max(1, (keysPerSecond * CREDIT_MS) / 1000);
  }

  /** Milliseconds until a key may go, where the rate forbids it now. */
  waitMs(now: number): number {
    return Math.max(0, this.#nextAt - now);
  }

  /** Keys that have gone, and bytes. */
  spent(now: number, keys: number, bytes: number): void {
    const { keysPerSecond = Infinity, bytesPerSecond = Infinity } = this.limits;
    const cost = Math.max(keys / keysPerSecond, bytes / bytesPerSecond) * 1000;
    if (cost > 0) this.#nextAt = Math.max(this.#nextAt, now - CREDIT_MS) + cost;
  }

  #look(now: number): void {
    const { maxP99Ms } = this.limits;
    if (maxP99Ms === undefined || now - this.#lookedAt < LOOK_MS) return;
    if (this.#recent.totalCount < ENOUGH_REPLIES && now - this.#lookedAt < 10 * LOOK_MS) return;
    const p99 = this.#recent.getValueAtPercentile(99) / 1000;
    this.#recent.reset();
    this.#lookedAt = now;
    if (p99 <= maxP99Ms) this.#window = Math.min(MOST, this.#window + Math.max(1, this.#window >> 3));
    else if (this.#window > LEAST) this.#window = Math.max(LEAST, this.#window >> 1);
    // At its least it is already slow; it pauses, too.
    else this.#nextAt = now + LOOK_MS;
  }

  close(): void {
    if (this.latencies.recent === this.#recent) this.latencies.recent = null;
  }
}
