/**
 * Clients with large replies take turns: other clients' commands wait behind those replies on the same lane. So only
 * one such client has commands in flight at a time, however many there are.
 */

/** From this size on, in bytes, a reply is large. */
export const LARGE = 256 << 10;
/**
 * How many reads may be in flight for clients that have not had a reply yet, all together. Each client may send one all
 * the same. After a large reply to any client, no more are sent for `RECENT_MS`.
 */
const TRIES = 8;
const RECENT_MS = 2_000;

/** A client that may have large replies. */
export interface Taker {
  /** How many of its commands are in flight. */
  readonly inFlight: number;
  /** Called when the client may continue. */
  resume(): void;
}

export class LargeReplies {
  #seenAt = -Infinity;
  #tries = 0;
  /** The client whose turn it is: it has commands in flight, or is about to. */
  #holder: Taker | null = null;
  /** The other clients, in order of arrival. */
  readonly #waiting = new Set<Taker>();

  /** A client got a large reply. @param now the time, in ms of the monotonic clock */
  seen(now: number): void {
    this.#seenAt = now;
  }

  /** Counts a read of a client that has not had a reply yet. @returns whether that client may send another */
  mayTry(now: number): boolean {
    return ++this.#tries < TRIES && now - this.#seenAt > RECENT_MS;
  }

  /** A client with `reads` such reads in flight got its first reply, or has disconnected. */
  tried(reads: number): void {
    this.#tries -= reads;
  }

  /**
   * Whether a client with large replies may send a command now. If not, it is resumed when it may. A client with
   * commands in flight has to ask again once they are answered.
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

  /**
   * None of the client's commands is in flight any more, or its replies are small now: the next client's turn begins.
   */
  idle(taker: Taker): void {
    if (this.#holder !== taker) return;
    this.#holder = null;
    for (const next of this.#waiting) {
      if (this.#holder !== null) break;
      this.#waiting.delete(next);
      next.resume();
    }
  }

  /** The client has disconnected. If it has commands in flight, its turn ends when they are answered. */
  left(taker: Taker): void {
    this.#waiting.delete(taker);
    if (taker.inFlight === 0) this.idle(taker);
  }
}
