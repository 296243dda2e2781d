/** Random numbers of one run: the same seed gives the same numbers (sfc32). */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    [this.#a, this.#b, this.#c] = begun(seed);
    for (let i = 0; i < 15; i++) this.next();
  }

  /** What `run` draws is that of the seed; afterwards the numbers go on where they were. */
  withSeed<T>(seed: number, run: () => T): T {
    const [a, b, c, counter] = [this.#a, this.#b, this.#c, this.#counter];
    [this.#a, this.#b, this.#c] = begun(seed);
    this.#counter = 1;
    for (let i = 0; i < 15; i++) this.next();
    try {
      return run();
    } finally {
      [this.#a, this.#b, this.#c, this.#counter] = [a, b, c, counter];
    }
  }

  /** 32 bits. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** From 0 up to 1, without 1. */
  share(): number {
    return this.next() / 2 ** 32;
  }

  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor(this.share() * limit);
  }

  between(low: number, high: number): number {
    return low + this.share() * (high - low);
  }

  chance(probability: number): boolean {
    return probability > 0 && this.share() < probability;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)];
  }

  bytes(count: number): Buffer {
    const bytes = Buffer.allocUnsafe(count);
    for (let i = 0; i < count; i++) bytes[i] = this.next() & 0xff;
    return bytes;
  }

  /** Numbers of their own for one part of the run: what it draws does not shift the others'. */
  fork(): Random {
    return new Random(this.next());
  }
}

const begun = (seed: number): [number, number, number] => [seed | 0, Math.imul(seed, 0x9e3779b1) | 0, ~seed | 0];
