/**
 * What a turn of the event loop may cost: the reply to every client waits until a turn is over. Clients that want more
 * than a turn can give share it evenly; those that want little always get what they want.
 */

/** What one client may cost in a turn where no other wants more than its share, in bytes of commands. */
export const ALONE = 64 << 10;
/** What all clients that want more may cost in one turn, together. */
export const TOGETHER = 24 << 10;
/** What one client may cost at least, so that a short pipeline is never cut. */
export const LEAST_SHARE = 8 << 10;

export class TurnBudget {
  #at = 0;
  #wantMore = 0;
  #share = ALONE;

  /**
   * What one client may cost in the turn that began at `now`, in bytes. As many as used up their shares in the last
   * turn are expected.
   */
  share(now: number): number {
    if (this.#at !== now) {
      this.#at = now;
      this.#share = this.#wantMore < 2 ? ALONE : Math.max(LEAST_SHARE, TOGETHER / this.#wantMore);
      this.#wantMore = 0;
    }
    return this.#share;
  }

  /** A client has used up its share, and wants more. */
  usedUp(): void {
    this.#wantMore++;
  }
}
