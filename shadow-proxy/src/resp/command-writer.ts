/**
 * Writes commands side by side into one buffer, so that they are sent in one write. Argument bytes are copied from
 * their place without slices.
 */
import { copyBytes } from '../io/copy-bytes.js';

const [ASTERISK, DOLLAR, CR, LF, ZERO, MINUS] = [42, 36, 13, 10, 48, 45];
/** Maximum size of `*` or `$`, a number and a line end. */
const HEAD = 16;

export class CommandWriter {
  #bytes: Buffer;
  #end = 0;

  /** @param capacity expected size in bytes; the buffer grows */
  constructor(capacity = 256) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  /** Number of bytes so far. */
  get length(): number {
    return this.#end;
  }

  /** Appends bytes that are encoded already: the beginning of a command, or one of its arguments. */
  raw(encoded: Uint8Array): this {
    const at = this.#grow(encoded.length);
    copyBytes(encoded, 0, encoded.length, this.#bytes, at);
    return this;
  }

  /** Begins a command with this number of arguments. */
  command(count: number): this {
    this.#grow(HEAD);
    this.#end = this.#head(ASTERISK, count, this.#end - HEAD);
    return this;
  }

  /** Appends the argument `bytes[start, end)`. */
  argument(bytes: Uint8Array, start = 0, end = bytes.length): this {
    const length = end - start;
    const room = this.#grow(HEAD + length + 2);
    const at = this.#head(DOLLAR, length, room);
    copyBytes(bytes, start, end, this.#bytes, at);
    this.#end = this.#line(at + length);
    return this;
  }

  /** Appends a whole number as an argument. */
  integer(value: number): this {
    const digits = digitsOf(Math.abs(value)) + (value < 0 ? 1 : 0);
    const room = this.#grow(HEAD + digits + 2);
    const at = this.#head(DOLLAR, digits, room);
    if (value < 0) this.#bytes[at] = MINUS;
    this.#digits(Math.abs(value), at + digits);
    this.#end = this.#line(at + digits);
    return this;
  }

  /** All bytes; they belong to the caller, and nothing may be written afterwards. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }

  /** Writes `*12\r\n` or `$12\r\n` at `at`; returns the offset of its end. */
  #head(mark: number, count: number, at: number): number {
    this.#bytes[at] = mark;
    const end = at + 1 + digitsOf(count);
    this.#digits(count, end);
    return this.#line(end);
  }

  /** Writes the number's digits, the last one before `end`. */
  #digits(value: number, end: number): void {
    let at = end;
    do {
      const tens = Math.floor(value / 10);
      this.#bytes[--at] = ZERO + (value - tens * 10);
      value = tens;
    } while (value > 0);
  }

  #line(at: number): number {
    this.#bytes[at] = CR;
    this.#bytes[at + 1] = LF;
    return at + 2;
  }

  /** Makes room for `size` bytes and returns their offset. */
  #grow(size: number): number {
    const at = this.#end;
    this.#end += size;
    if (this.#end > this.#bytes.length) {
      const bigger = Buffer.allocUnsafe(Math.max(this.#end, this.#bytes.length * 2));
      copyBytes(this.#bytes, 0, at, bigger, 0);
      this.#bytes = bigger;
    }
    return at;
  }
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let left = value; left >= 10; left = Math.floor(left / 10)) digits++;
  return digits;
}
