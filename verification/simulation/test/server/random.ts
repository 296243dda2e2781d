/** Random choices from a seed: the same seed, the same program. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)];
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** So many picks. */
  some<T>(from: readonly T[], most: number): T[] {
    return Array.from({ length: 1 + this.below(most) }, () => this.pick(from));
  }
}

/** The seed of this run: `SEED` where it is set. */
export const seedOf = (fixed: number): number => Number(process.env.SEED ?? fixed);
