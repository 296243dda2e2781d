/** Keys that a server removed by itself: evicted for want of memory, or expired. */

export class KeyLosses {
  /** Since this process began to look; what a server removed before is not counted. */
  evicted = 0;
  expired = 0;
  /** When an eviction was seen last, in ms since 1970; null where none was. */
  evictedAt: number | null = null;
  #last: { readonly evicted: number; readonly expired: number } | null = null;

  /** @param stats `INFO stats` @param now in ms since 1970 */
  see(stats: ReadonlyMap<string, string>, now: number): void {
    const seen = { evicted: Number(stats.get('evicted_keys') ?? 0), expired: Number(stats.get('expired_keys') ?? 0) };
    const last = this.#last;
    this.#last = seen;
    if (last === null) return;
    const evicted = rise(last.evicted, seen.evicted);
    this.evicted += evicted;
    this.expired += rise(last.expired, seen.expired);
    if (evicted > 0) this.evictedAt = now;
  }
}

/** A restart and CONFIG RESETSTAT begin at 0 again. */
const rise = (before: number, now: number): number => (now < before ? now : now - before);
