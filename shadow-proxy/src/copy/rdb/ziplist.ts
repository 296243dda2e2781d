import type { Elements } from './listpack.js';
import { decimal, type PayloadReader } from './payload-reader.js';

const HEADER = 10;
const END = 0xff;
const BIG = 254;
const COUNT_UNKNOWN = 0xffff;

/**
 * A ziplist, the packed encoding before listpacks: total bytes and the place of the last element (32 bits each),
 * count (16 bits, 65535: not known), elements, 255. An element is the length of the one before it (one byte, or
 * 254 and 32 bits), an encoding byte, and its data. Source of the format: the comment at the head of Redis' ziplist.c.
 */
export class Ziplist implements Elements {
  readonly #in: PayloadReader;
  readonly #tail: number;
  readonly #announced: number;
  #last = HEADER;
  #seen = 0;

  constructor(blob: PayloadReader) {
    this.#in = blob;
    if (blob.left < HEADER + 1) blob.fail('ziplist shorter than its header');
    const total = blob.bytes.readUInt32LE(blob.skip(4));
    if (total !== blob.end) blob.fail(`ziplist that claims ${total} of ${blob.end} bytes`);
    this.#tail = blob.bytes.readUInt32LE(blob.skip(4));
    this.#announced = blob.bytes.readUInt16LE(blob.skip(2));
  }

  more(): boolean {
    const { at, end, bytes } = this.#in;
    if (at < end - 1 && bytes[at] !== END) return true;
    if (at !== end - 1 || bytes[at] !== END) this.#in.fail('ziplist without its end');
    if (this.#tail !== this.#last)
      this.#in.fail(`ziplist whose last element is at ${this.#last}, not at ${this.#tail}`);
    if (this.#announced !== COUNT_UNKNOWN && this.#announced !== this.#seen) {
      this.#in.fail(`ziplist of ${this.#seen} elements that claims ${this.#announced}`);
    }
    return false;
  }

  next(): Buffer {
    const from = this.#in;
    if (!this.more()) from.fail('ziplist that ends too early');
    const start = from.at;
    const before = from.u8();
    const size = before < BIG ? before : from.bytes.readUInt32LE(from.skip(4));
    if (size !== (this.#seen === 0 ? 0 : start - this.#last))
      from.fail('ziplist element with a wrong length of the one before it');
    const element = this.#content();
    this.#last = start;
    this.#seen++;
    return element;
  }

  #content(): Buffer {
    const from = this.#in;
    const first = from.u8();
    if (first < 0x40) return from.take(first);
    if (first < 0x80) return from.take(((first & 63) << 8) | from.u8());
    if (first > 0xf0 && first < 0xfe) return decimal(first - 0xf1);
    switch (first) {
      case 0x80:
        return from.take(from.bytes.readUInt32BE(from.skip(4)));
      case 0xc0:
        return decimal(from.int(2));
      case 0xd0:
        return decimal(from.int(4));
      case 0xe0:
        return decimal(from.int64());
      case 0xf0:
        return decimal(from.int(3));
      case 0xfe:
        return decimal(from.int(1));
      default:
        return from.fail(`0x${first.toString(16)} where a ziplist element should begin`);
    }
  }
}

/**
 * A zipmap, the small hash of Redis before 2.6: count (one byte, 254: not known), then for each field a length
 * and its bytes, and for each value a length, the number of unused bytes after it, its bytes, and those; 255.
 * A length is one byte, or 254 and 32 bits. Source of the format: the comment at the head of Redis' zipmap.c.
 */
export class Zipmap implements Elements {
  readonly #in: PayloadReader;
  readonly #announced: number;
  #seen = 0;

  constructor(blob: PayloadReader) {
    this.#in = blob;
    this.#announced = blob.u8();
  }

  more(): boolean {
    const { at, end, bytes } = this.#in;
    if (at < end - 1 && bytes[at] !== END) return true;
    if (at !== end - 1 || bytes[at] !== END) this.#in.fail('zipmap without its end');
    if (this.#seen % 2 !== 0) this.#in.fail('zipmap whose last field has no value');
    if (this.#announced < BIG && this.#announced !== this.#seen / 2) {
      this.#in.fail(`zipmap of ${this.#seen / 2} fields that claims ${this.#announced}`);
    }
    return false;
  }

  next(): Buffer {
    const from = this.#in;
    const first = from.u8();
    if (first === END) from.fail('zipmap that ends too early');
    const size = first < BIG ? first : from.bytes.readUInt32LE(from.skip(4));
    // Servers before the fix of CVE-2026-25243 check such a length, and then read another one.
    if (first === BIG && size < BIG) from.fail(`zipmap that writes the length ${size} in 5 bytes`);
    const isValue = this.#seen++ % 2 === 1;
    const unused = isValue ? from.u8() : 0;
    const element = from.take(size);
    from.skip(unused);
    return element;
  }
}
