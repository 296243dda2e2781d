/**
 * Limits what a turn of the event loop may cost: every client's reply waits until the turn is over. Clients that want
 * more than a turn allows share it evenly; a client that wants little always gets it.
 */

/** What one client may cost in a turn in which no other wants more than its share, in bytes of commands. */
export const ALONE = 64 << 10;
/** What all clients that want more than their share may cost in one turn, together. */
export const TOGETHER = 24 << 10;
/** What one client may always cost, so that a short pipeline is never interrupted. */
export const LEAST_SHARE = 8 << 10;

export class TurnBudget {
  #at = 0;
  #wantMore = 0;
  #share = ALONE;

  /**
   * What one client may cost in the turn that began at `now`, in bytes. It assumes that as many clients use up their
   * shares as in the last turn.
   */
  share(now: number): number {
    if (this.#at !== now) {
      this.#at = now;
      this.#share = this.#wantMore < 2 ? ALONE : Math.max(LEAST_SHARE, TOGETHER / this.#wantMore);
      this.#wantMore = 0;
    }
    return this.#share;
  }

  /** A client has used up its share and wants more. */
  usedUp(): void {
    this.#wantMore++;
  }
}
