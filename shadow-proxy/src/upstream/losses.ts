/** Keys that a server removed by itself: evicted because memory was full, or expired. */
import { unixMs } from '../io/clock.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import { parseInfo } from './info.js';

export class KeyLosses {
  /** Evictions since this process began to watch; earlier ones are not counted. */
  evicted = 0;
  expired = 0;
  /** When an eviction was last seen, in ms since 1970; null if none was. */
  evictedAt: number | null = null;
  #last: { readonly evicted: number; readonly expired: number } | null = null;
  /** How many of `evicted` have explained a loss already, or came before this process. */
  #spent = 0;

  /** @param ask asks the server as the kit's own user */
  constructor(private readonly ask: (...args: Argument[]) => Promise<Reply>) {}

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

  /** Asks the server. @returns the keys evicted since its start; null if it does not show that */
  async read(): Promise<number | null> {
    const reply = await this.ask('INFO', 'stats');
    if (isError(reply)) return null;
    const stats = parseInfo(text(reply));
    this.see(stats, unixMs());
    const evicted = stats.get('evicted_keys');
    return evicted === undefined ? null : Number(evicted);
  }

  /** Evictions up to now explain nothing: they came before this process. */
  async begin(): Promise<void> {
    await this.read();
    this.#spent = this.evicted;
  }

  /** Whether the server has evicted more keys than the losses that evictions have explained. */
  async hasEvicted(): Promise<boolean> {
    await this.read();
    return this.evicted > this.#spent;
  }

  /** An eviction has explained a loss: it explains no other. */
  spendEviction(): void {
    this.#spent++;
  }
}

/** After a restart or CONFIG RESETSTAT the count begins at 0 again. */
const rise = (before: number, now: number): number => (now < before ? now : now - before);
