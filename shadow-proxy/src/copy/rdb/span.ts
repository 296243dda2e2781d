/**
 * A short string of a payload, found without an object of its own: where it lies, or, where it is compressed, in a
 * buffer that the next one takes.
 */
import { inflate } from './lzf.js';

/** Up to so many bytes, inflated. */
export const MAX_SPAN = 16 << 10;
const [LENGTH32, LZF] = [0x80, 0xc3];

export class Span {
  /** The string is `bytes[start, end)`, until the next one is opened. */
  bytes: Buffer;
  start = 0;
  end = 0;
  /** What follows it in the payload. */
  next = 0;
  readonly #inflated = Buffer.allocUnsafeSlow(MAX_SPAN);

  constructor() {
    this.bytes = this.#inflated;
  }

  /** Finds the string at `at`; false if it is a number, long, or does not end by `limit`. */
  open(payload: Buffer, at: number, limit: number): boolean {
    if (payload[at] === LZF) return this.#openPacked(payload, at + 1, limit);
    const length = this.#length(payload, at);
    if (length < 0 || this.next + length > limit) return false;
    this.bytes = payload;
    this.start = this.next;
    this.end = this.next += length;
    return true;
  }

  #openPacked(payload: Buffer, at: number, limit: number): boolean {
    const packed = this.#length(payload, at);
    if (packed < 0) return false;
    const length = this.#length(payload, this.next);
    const from = this.next;
    if (length < 0 || length > MAX_SPAN || from + packed > limit) return false;
    if (!inflate(payload, from, from + packed, this.#inflated, length)) return false;
    this.bytes = this.#inflated;
    this.start = 0;
    this.end = length;
    this.next = from + packed;
    return true;
  }

  /** A length of up to 32 bits, after which `next` is; -1 for anything else. */
  #length(payload: Buffer, at: number): number {
    const first = payload[at];
    if (first < 64) {
      this.next = at + 1;
      return first;
    }
    if (first < 128) {
      this.next = at + 2;
      return ((first & 63) << 8) | payload[at + 1];
    }
    if (first !== LENGTH32) return -1;
    this.next = at + 5;
    return payload[at + 4] + payload[at + 3] * 0x100 + payload[at + 2] * 0x10000 + payload[at + 1] * 0x1000000;
  }
}
