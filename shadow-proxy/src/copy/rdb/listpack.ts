import { decimal, type PayloadReader } from './payload-reader.js';

/** A packed encoding, element by element. `more` throws when the encoding does not end as it says. */
export interface Elements {
  more(): boolean;
  next(): Buffer;
}

const HEADER = 6;
const END = 0xff;
const COUNT_UNKNOWN = 0xffff;

/**
 * A listpack: total bytes (32 bits), count (16 bits, 65535: not known), elements, 255. An element is an
 * encoding byte, its data, and its own length once more, to be read from the back.
 * Source of the format: https://github.com/antirez/listpack/blob/master/listpack.md
 */
export class Listpack implements Elements {
  readonly #in: PayloadReader;
  readonly #announced: number;
  #seen = 0;

  constructor(blob: PayloadReader) {
    this.#in = blob;
    if (blob.left < HEADER + 1) blob.fail('listpack shorter than its header');
    const total = blob.bytes.readUInt32LE(blob.skip(4));
    if (total !== blob.end) blob.fail(`listpack that claims ${total} of ${blob.end} bytes`);
    this.#announced = blob.bytes.readUInt16LE(blob.skip(2));
  }

  more(): boolean {
    const { at, end, bytes } = this.#in;
    if (at < end - 1 && bytes[at] !== END) return true;
    if (at !== end - 1 || bytes[at] !== END) this.#in.fail('listpack without its end');
    if (this.#announced !== COUNT_UNKNOWN && this.#announced !== this.#seen) {
      this.#in.fail(`listpack of ${this.#seen} elements that claims ${this.#announced}`);
    }
    return false;
  }

  next(): Buffer {
    const element = this.#element();
    return typeof element === 'object' ? element : decimal(element);
  }

  /** The next element, which must be a number. */
  integer(): bigint {
    const element = this.#element();
    if (typeof element !== 'object') return BigInt(element);
    const text = element.length <= 20 ? element.toString('latin1') : '';
    if (!/^-?\d+$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text)) {
      this.#in.fail('listpack element that should be a number of 64 bits');
    }
    return BigInt(text);
  }

  #element(): Buffer | number | bigint {
    const from = this.#in;
    if (!this.more()) from.fail('listpack that ends too early');
    const start = from.at;
    const element = this.#content();
    const size = from.at - start;
    // It is zero if the length takes one byte more than necessary.
    const full = from.bytes[from.at] !== 0;
    for (let left = backlengthSize(size, full) - 1, mark = 0; left >= 0; left--, mark = 128) {
      if (from.u8() !== (((size >>> (7 * left)) & 127) | mark))
        from.fail('listpack element with a wrong length at its back');
    }
    this.#seen++;
    return element;
  }

  #content(): Buffer | number | bigint {
    const from = this.#in;
    const first = from.u8();
    if (first < 0x80) return first;
    if (first < 0xc0) return from.take(first & 63);
    if (first < 0xe0) return ((((first & 31) << 8) | from.u8()) << 19) >> 19;
    if (first < 0xf0) return from.take(((first & 15) << 8) | from.u8());
    switch (first) {
      case 0xf0:
        return from.take(from.bytes.readUInt32LE(from.skip(4)));
      case 0xf1:
        return from.int(2);
      case 0xf2:
        return from.int(3);
      case 0xf3:
        return from.int(4);
      case 0xf4:
        return from.int64();
      default:
        return from.fail(`0x${first.toString(16)} where a listpack element should begin`);
    }
  }
}

/**
 * How many bytes the length at the back of an element takes: seven bits in each, the highest first, every byte but
 * the first marked with 128.
 * @param full whether all bits are used, as by Valkey 9.1; Redis takes one byte more where they would all be set
 */
function backlengthSize(size: number, full: boolean): number {
  if (size <= 127) return 1;
  const limit = full ? size : size + 1;
  if (limit <= 16383) return 2;
  if (limit <= 2097151) return 3;
  return limit <= 268435455 ? 4 : 5;
}

/** Builds a listpack. Strings stay strings even if they look like numbers: readers do not tell them apart. */
export class ListpackWriter {
  readonly #parts: Buffer[] = [];
  #bytes = HEADER;
  #count = 0;

  /** @param full of `backlengthSize`: a server refuses the other form */
  constructor(private readonly full = false) {}

  /** How long the listpack would be if it ended here. */
  get size(): number {
    return this.#bytes + 1;
  }

  string(bytes: Buffer): void {
    const { length } = bytes;
    const head =
      length < 64 ? [0x80 | length] : length < 4096 ? [0xe0 | (length >> 8), length & 255] : [0xf0, 0, 0, 0, 0];
    const header = Buffer.from(head);
    if (length >= 4096) header.writeUInt32LE(length, 1);
    this.#push(header, bytes);
  }

  /** A signed number of at most 64 bits. */
  integer(value: bigint): void {
    if (value >= 0n && value < 128n) return this.#push(Buffer.from([Number(value)]));
    if (value >= -32768n && value < 32768n) {
      const element = Buffer.from([0xf1, 0, 0]);
      element.writeInt16LE(Number(value), 1);
      return this.#push(element);
    }
    const element = Buffer.alloc(9, 0xf4);
    element.writeBigInt64LE(value, 1);
    this.#push(element);
  }

  finish(): Buffer {
    const header = Buffer.alloc(HEADER);
    header.writeUInt32LE(this.size, 0);
    header.writeUInt16LE(Math.min(this.#count, COUNT_UNKNOWN), 4);
    return Buffer.concat([header, ...this.#parts, Buffer.from([END])]);
  }

  #push(...element: Buffer[]): void {
    const size = element.reduce((sum, part) => sum + part.length, 0);
    const back = Buffer.alloc(backlengthSize(size, this.full));
    for (let i = 0; i < back.length; i++)
      back[i] = ((size >>> (7 * (back.length - 1 - i))) & 127) | (i === 0 ? 0 : 128);
    this.#parts.push(...element, back);
    this.#bytes += size + back.length;
    this.#count++;
  }
}
