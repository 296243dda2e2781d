/**
 * Clients with large replies take turns: what others ask for comes behind those replies, on the same lane. So one of
 * these clients has commands in flight at a time, however many there are.
 */

/** From this size on, in bytes, a reply is large. */
export const LARGE = 256 << 10;
/**
 * Reads that clients without any reply so far have in flight, all together. One of each client is sent all the same.
 * After a large reply to anybody no others are sent for some time, in ms.
 */
const TRIES = 8;
const RECENT_MS = 2_000;

/** A client. */
export interface Taker {
  /** Its commands. */
  readonly inFlight: number;
  /** The client may go on. */
  resume(): void;
}

export class LargeReplies {
  #seenAt = -Infinity;
  #tries = 0;
  /** The client that has commands in flight, or is about to. */
  #holder: Taker | null = null;
  /** The others, in the order in which they came. */
  readonly #waiting = new Set<Taker>();

  /** A client got a large reply, at this time of the monotonic clock in ms. */
  seen(now: number): void {
    this.#seenAt = now;
  }

  /** Counts a read of a client that has had no reply yet. Says whether that client may send another. */
  mayTry(now: number): boolean {
    return ++this.#tries < TRIES && now - this.#seenAt > RECENT_MS;
  }

  /** Such a client, with so many reads in flight, got its first reply, or has disconnected. */
  tried(reads: number): void {
    this.#tries -= reads;
  }

  /**
   * Whether a client with large replies may send a command now. If not, it is resumed when it may; with commands in
   * flight, it has to ask again once they are answered.
   */
  admits(taker: Taker): boolean {
    if (this.#holder === taker) return taker.inFlight === 0 || this.#waiting.size === 0;
    if (this.#holder === null) {
      this.#waiting.delete(taker);
      this.#holder = taker;
      return true;
    }
    if (taker.inFlight === 0) this.#waiting.add(taker);
    return false;
  }

  /** Nothing of the client is in flight any more, or its replies are not large any more: the next one's turn. */
  idle(taker: Taker): void {
    if (this.#holder !== taker) return;
    this.#holder = null;
    for (const next of this.#waiting) {
      if (this.#holder !== null) break;
      this.#waiting.delete(next);
      next.resume();
    }
  }

  /** The client has disconnected. What it has in flight keeps its turn until it is answered. */
  left(taker: Taker): void {
    this.#waiting.delete(taker);
    if (taker.inFlight === 0) this.idle(taker);
  }
}
