/** Rate limiters: at most `limit` in a window, over all regions. */
import { demand } from './errors.js';
import { decodeWindow, encodeWindow, type WindowPart } from './layout.js';
import { addSafely, type Look, type OwnedKey, type Seen, type Shape } from './owned-key.js';

export interface LimiterOptions {
  /** How many are admitted in a window, over all regions. */
  readonly limit: number;
  /** Length of the window in ms. */
  readonly windowMs: number;
  /**
   * What to do while a region is out of sight. `admit` (default): continue with the known counts. `deny`: admit
   * nothing.
   */
  readonly whenBlind?: 'admit' | 'deny';
}

export interface SlidingOptions extends LimiterOptions {
  /**
   * Number of buckets of the window, 1 to 100. Default 10. The oldest bucket counts in full until it has left the
   * window.
   */
  readonly buckets?: number;
}

export interface Taken {
  readonly admitted: boolean;
  /** How many more would be admitted now. */
  readonly remaining: number;
  /** When `remaining` may be larger, in ms: the window ends, or its oldest bucket leaves it. */
  readonly retryInMs: number;
  /** Regions that are out of sight: what they admit is not counted. */
  readonly blind: readonly string[];
}

/** Determines which buckets count at a time. Pure; times in Unix ms. */
export interface Window {
  /** Start of the bucket in which an admission is counted. */
  bucket(now: number): number;
  counts(start: number, now: number): boolean;
  /** When a bucket is no longer needed. */
  endsAt(start: number): number;
  /** When a bucket stops counting. */
  leavesAt(start: number): number;
}

/** Windows side by side, aligned to 1970. A part is kept for one more window, for servers whose clocks are behind. */
export const fixed = (windowMs: number): Window => ({
  bucket: (now) => now - (now % windowMs),
  counts: (start, now) => start === now - (now % windowMs),
  endsAt: (start) => start + 2 * windowMs,
  leavesAt: (start) => start + windowMs,
});

/**
 * The last `windowMs`: every bucket that overlaps with it counts. So any interval of that length has at most `limit`.
 */
export const sliding = (windowMs: number, buckets: number): Window => {
  const bucketMs = windowMs / buckets;
  return {
    bucket: (now) => Math.floor(now / bucketMs) * bucketMs,
    counts: (start, now) => start + bucketMs > now - windowMs,
    endsAt: (start) => start + 2 * bucketMs + windowMs,
    leavesAt: (start) => start + bucketMs + windowMs,
  };
};

export const windowShape = (window: Window): Shape<WindowPart> => ({
  empty: new Map(),
  encode: encodeWindow,
  expiresAt: (part) => Math.max(0, ...Array.from(part.keys(), window.endsAt)),
});

/** `part` with `cost` more in `bucket`, and without buckets that are no longer needed. */
export function charge(part: WindowPart, window: Window, cost: number, bucket: number, now: number): WindowPart {
  const next = new Map([...part].filter(([start]) => window.endsAt(start) > now || start === bucket));
  return next.set(bucket, addSafely(next.get(bucket) ?? 0, cost));
}

/** `part` without a `cost` that was charged and not admitted; unchanged if that bucket has expired already. */
export function giveBack(part: WindowPart, cost: number, bucket: number): WindowPart {
  const charged = part.get(bucket);
  return charged === undefined ? part : new Map(part).set(bucket, Math.max(0, charged - cost));
}

export const admittedIn = (part: WindowPart, window: Window, now: number): number =>
  [...part].reduce((sum, [start, admitted]) => (window.counts(start, now) ? sum + admitted : sum), 0);

/** What a limiter needs from the `Counters` object that made it; `subject` is the client or user that is limited. */
export interface LimiterPlace {
  readonly name: string;
  readonly now: () => number;
  keyOf(subject: string, id: string): string;
  owned(subject: string): OwnedKey<WindowPart>;
  look(subject: string): Promise<Look>;
  /** Whether the view still names every writer. */
  fresh(seen: Seen): boolean;
  read(subject: string): Promise<Seen>;
  blind(): string[];
}

export class Limiter {
  constructor(
    private readonly place: LimiterPlace,
    private readonly options: Required<LimiterOptions>,
    private readonly window: Window,
  ) {}

  /**
   * Requests admission of `cost` for `subject`. Only admitted requests count.
   * @param cost a positive whole number, at most `limit`
   * @throws {CounterError} OPTION, REFUSED, UNCONFIRMED (then it counts), FOREIGN_VALUE, CLOSED; errors of the client
   * library
   */
  async take(subject: string, cost = 1): Promise<Taken> {
    const { limit, whenBlind } = this.options;
    demand(
      Number.isSafeInteger(cost) && cost > 0 && cost <= limit,
      `take(…, ${cost}) of ${JSON.stringify(this.place.name)}: a whole number from 1 to ${limit} is allowed`,
    );
    if (whenBlind === 'deny' && this.place.blind().length > 0) return this.#answer(false, await this.#look(subject));
    const own = this.place.owned(subject);
    if ((this.#others.get(own) ?? 0) + admittedIn(own.state, this.window, this.place.now()) + cost > limit) {
      // The window was full at the last look: a request that will be refused only reads.
      const now = await this.#look(subject);
      if (now.used + cost > limit) return this.#answer(false, now);
    }
    return this.#charge(subject, cost);
  }

  /**
   * The present state, without a request. @throws {CounterError} FOREIGN_VALUE, CLOSED; errors of the client library
   */
  async peek(subject: string): Promise<Taken> {
    const now = await this.#look(subject);
    const sighted = this.options.whenBlind === 'admit' || this.place.blind().length === 0;
    return this.#answer(now.used < this.options.limit && sighted, now);
  }

  /** The other writers' sum at the last look: an estimate until the next read. */
  readonly #others = new WeakMap<OwnedKey<WindowPart>, number>();

  /** Counts first, and looks then: of requests at the same time, as many as fit see no more than the limit. */
  async #charge(subject: string, cost: number): Promise<Taken> {
    let bucket = 0;
    const look = await this.place.look(subject);
    const { state, seen } = await this.place.owned(subject).write((part) => {
      const now = this.place.now();
      bucket = this.window.bucket(now);
      return charge(part, this.window, cost, bucket, now);
    }, look);
    const fresh = seen !== null && this.place.fresh(seen);
    const stands = this.#stand(subject, state, fresh ? seen : await this.place.read(subject));
    if (stands.used <= this.options.limit) return this.#answer(true, stands);
    await this.place.owned(subject).write((part) => giveBack(part, cost, bucket));
    return this.#answer(false, { ...stands, used: stands.used - cost });
  }

  async #look(subject: string): Promise<Stand> {
    const seen = await this.place.read(subject);
    return this.#stand(subject, this.place.owned(subject).state, seen);
  }

  #stand(subject: string, own: WindowPart, { view, values }: Seen): Stand {
    const now = this.place.now();
    let [others, oldest] = [0, Infinity];
    const count = (part: WindowPart): number => {
      let sum = 0;
      for (const [start, admitted] of part) {
        if (!this.window.counts(start, now)) continue;
        sum += admitted;
        oldest = Math.min(oldest, start);
      }
      return sum;
    };
    values.forEach((value, i) => {
      if (value !== null) others += count(decodeWindow(value, () => this.place.keyOf(subject, view.ids[i])));
    });
    this.#others.set(this.place.owned(subject), others);
    return { used: others + count(own), retryInMs: oldest === Infinity ? 0 : this.window.leavesAt(oldest) - now };
  }

  #answer(admitted: boolean, { used, retryInMs }: Stand): Taken {
    return { admitted, remaining: Math.max(0, this.options.limit - used), retryInMs, blind: this.place.blind() };
  }
}

/** The state of a subject at a time. */
interface Stand {
  readonly used: number;
  readonly retryInMs: number;
}
