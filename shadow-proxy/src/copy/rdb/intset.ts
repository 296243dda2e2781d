import type { Elements } from './listpack.js';
import { decimal, type PayloadReader } from './payload-reader.js';

/** An intset: bytes per number (32 bits: 2, 4 or 8), count (32 bits), the numbers, ascending; all little-endian. */
export class Intset implements Elements {
  readonly #in: PayloadReader;
  readonly #width: number;
  #previous: number | bigint | null = null;

  constructor(blob: PayloadReader) {
    this.#in = blob;
    if (blob.left < 8) blob.fail('intset shorter than its header');
    this.#width = blob.bytes.readUInt32LE(blob.skip(4));
    if (this.#width !== 2 && this.#width !== 4 && this.#width !== 8)
      blob.fail(`intset with numbers of ${this.#width} bytes`);
    const count = blob.bytes.readUInt32LE(blob.skip(4));
    if (count * this.#width !== blob.left) blob.fail(`intset of ${blob.left} bytes that claims ${count} numbers`);
  }

  more(): boolean {
    return this.#in.left > 0;
  }

  next(): Buffer {
    const value = this.#width === 8 ? this.#in.int64() : this.#in.int(this.#width);
    if (this.#previous !== null && value <= this.#previous) this.#in.fail('intset that is not ascending');
    this.#previous = value;
    return decimal(value);
  }
}
