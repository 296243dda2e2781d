/**
 * How fast keys are copied or verified: no faster than was asked for, half as fast as clients get their commands
 * answered while they keep the servers busy, and slower where a server's latency is above what was asked for. What was
 * asked for may change at any time.
 */
import { latencyHistogram, type Latencies } from '../../io/latency.js';
import type { JobLimits } from '../../telemetry/snapshot.js';

/** What is allowed. Null and absent: not limited. */
export type RateLimits = Pick<JobLimits, 'keysPerSecond' | 'bytesPerSecond' | 'maxP99Ms' | 'maxMirrorP99Ms'>;

/** Keys under way at once. */
const MOST = 2048;
/** Keys under way at once while clients keep the servers busy. */
const MOST_BESIDE = 256;
const LEAST = 2;
/** How often clients and latency are looked at, in ms. */
const MEASURE_MS = 100;
/** How many replies a 99th percentile needs. */
const ENOUGH_REPLIES = 100;
/** Unused rate may be used later, for this long, in ms. */
const CREDIT_MS = 50;
/** With so many commands of clients under way, on average, the servers count as busy. */
const BUSY = 4;
/**
 * Keys a second that are copied for each command that busy clients get answered: one costs about as much as the other.
 */
const SHARE = 0.5;
/** The lowest rate, in keys a second. */
const LEAST_RATE = 5_000;

export class RateLimiter {
  /** How many keys may be under way, as limited by the latency. */
  #window = MOST;
  /** When the next key may go, in ms of the monotonic clock. */
  #nextAt = 0;
  #measuredAt = 0;
  /** Commands of clients under way, on average. */
  #clients = 0;
  /** The rate that busy clients leave for copies, in keys a second. */
  #left = Infinity;
  #replies: number;
  /** Replies of the authority to what was asked for its keys. */
  #own = 0;
  #closed = false;
  readonly #watches: readonly LatencyWatch[];

  /**
   * @param latencies of the authority's replies, to clients and to what is asked for the keys
   * @param mirror latencies of the mirror's replies, to what it is sent
   */
  constructor(
    private readonly limits: () => RateLimits,
    private readonly latencies: Latencies,
    mirror: Latencies,
  ) {
    this.#replies = latencies.histogram.totalCount;
    this.#watches = [
      new LatencyWatch(latencies, () => limits().maxP99Ms),
      new LatencyWatch(mirror, () => limits().maxMirrorP99Ms),
    ];
    for (const each of this.#watches) each.follow();
  }

  /**
   * How many more keys may go now.
   * @param underWay keys that are
   * @param clients commands of clients that the authority has not answered
   */
  room(now: number, underWay: number, clients: number): number {
    this.#clients += (clients - this.#clients) / 16;
    if (now - this.#measuredAt >= MEASURE_MS) this.#measure(now);
    if (now < this.#nextAt) return 0;
    const window = this.#clients < BUSY ? this.#window : Math.min(this.#window, MOST_BESIDE);
    return Math.min(window - underWay, Math.max(1, (this.#rate * CREDIT_MS) / 1000));
  }

  /** Milliseconds until a key may go, where the rate forbids it now. */
  waitMs(now: number): number {
    return Math.max(0, this.#nextAt - now);
  }

  /** Keys in flight, all asked for as one operation, and bytes. */
  spent(now: number, keys: number, bytes: number): void {
    if (keys > 0) this.#own++;
    const cost = Math.max(keys / this.#rate, bytes / (this.limits().bytesPerSecond ?? Infinity)) * 1000;
    if (cost > 0) this.#nextAt = Math.max(this.#nextAt, now - CREDIT_MS) + cost;
  }

  get #rate(): number {
    return Math.min(this.limits().keysPerSecond ?? Infinity, this.#left);
  }

  #measure(now: number): void {
    const replies = this.latencies.histogram.totalCount;
    const perSecond = ((replies - this.#replies - this.#own) / (now - this.#measuredAt)) * 1000;
    this.#left = this.#clients < BUSY ? Infinity : Math.max(LEAST_RATE, SHARE * perSecond);
    this.#replies = replies;
    this.#own = 0;
    this.#measureLatency(now);
    this.#measuredAt = now;
  }

  #measureLatency(now: number): void {
    if (this.#closed) return;
    const answers = this.#watches.map((each) => each.exceeds());
    if (this.#watches.every((each) => !each.on)) this.#window = MOST;
    else if (answers.includes(true)) this.#slowDown(now);
    else if (answers.includes(false)) this.#window = Math.min(MOST, this.#window + Math.max(1, this.#window >> 3));
  }

  #slowDown(now: number): void {
    if (this.#window > LEAST) this.#window = Math.max(LEAST, this.#window >> 1);
    // At its lowest rate the job is already slow; it also pauses.
    else this.#nextAt = now + MEASURE_MS;
  }

  /** What was owed to the old limits is forgiven. */
  changed(): void {
    this.#nextAt = 0;
    for (const each of this.#watches) each.follow();
  }

  close(): void {
    this.#closed = true;
    for (const each of this.#watches) each.close();
  }
}

/** The 99th percentile of a server's latest replies, compared with what is allowed. */
class LatencyWatch {
  #unwatch: (() => void) | null = null;
  readonly #recent = latencyHistogram(2);

  /** @param most in ms */
  constructor(
    private readonly latencies: Latencies,
    private readonly most: () => number | null | undefined,
  ) {}

  /** Whether replies are measured. */
  get on(): boolean {
    return this.#unwatch !== null;
  }

  /** Measures replies from now on, if there is a limit; else measures none. */
  follow(): void {
    if (typeof this.most() !== 'number') this.close();
    else this.#unwatch ??= this.latencies.watch(this.#recent);
  }

  /** Null where too few replies came since it was asked last. */
  exceeds(): boolean | null {
    this.follow();
    const most = this.most();
    if (typeof most !== 'number' || this.#recent.totalCount < ENOUGH_REPLIES) return null;
    const p99 = this.#recent.getValueAtPercentile(99) / 1000;
    this.#recent.reset();
    return p99 > most;
  }

  close(): void {
    this.#unwatch?.();
    this.#unwatch = null;
    this.#recent.reset();
  }
}
