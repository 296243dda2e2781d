/** Random numbers that a seed repeats (sfc32, Chris Doty-Humphrey's small fast counter). */
export class Random {
  #a = 0;
  #b = 0;
  #c = 0;
  #count = 1;

  /** @param stream gives each connection its own sequence from one seed */
  constructor(seed: number, stream = 0) {
    this.#a = seed | 0;
    this.#b = stream | 0;
    this.#c = 0x9e3779b9 | 0;
    for (let i = 0; i < 16; i++) this.next();
  }

  /** From 0 to 1, without 1. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#count++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  }

  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.next() * values.length)];
  }

  /** `count` values made by `make`. */
  times<T>(count: number, make: () => T): T[] {
    return Array.from({ length: count }, make);
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let i = 0; i < length; i++) bytes[i] = this.next() * 256;
    return bytes;
  }
}
