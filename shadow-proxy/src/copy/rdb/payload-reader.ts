import { TranscodeError, type TranscodeErrorCode } from './error.js';
import { inflate, inflatedLength } from './lzf.js';
import type { StreamId } from './value.js';

/** The codes of RDB's special strings: an integer of 8, 16 or 32 bits, or LZF. */
const [INT8, INT16, INT32, LZF] = [0xc0, 0xc1, 0xc2, 0xc3];
const [LENGTH32, LENGTH64] = [0x80, 0x81];
const NONE = Buffer.alloc(0);

/** The number as Redis prints it. */
export const decimal = (value: number | bigint): Buffer => Buffer.from(String(value), 'latin1');

/**
 * Reads the bytes of a payload, or of a part of it, never past its end. Lengths are compared with the
 * bytes that are left before anything is done with them.
 */
export class PayloadReader {
  constructor(
    readonly bytes: Buffer,
    public at: number,
    readonly end: number,
    /** Named in errors. */
    readonly type?: string,
    /** The index in the payload at which this part begins. */
    readonly origin = 0,
    /** The part was compressed: no finer place than its beginning is known. */
    readonly remade = false,
  ) {}

  /** The place in the whole payload. */
  get offset(): number {
    return this.origin + (this.remade ? 0 : this.at);
  }

  get left(): number {
    return this.end - this.at;
  }

  fail(message: string, code: TranscodeErrorCode = 'CORRUPT'): never {
    throw new TranscodeError(code, message, this.offset, this.type);
  }

  /** Moves on by `size` bytes and returns where they begin. */
  skip(size: number): number {
    const start = this.at;
    if (size > this.end - start) this.fail(`${size} bytes wanted where ${this.left} are left`, 'TRUNCATED');
    this.at = start + size;
    return start;
  }

  u8(): number {
    return this.bytes[this.skip(1)];
  }

  /** A view, not a copy. */
  take(size: number): Buffer {
    const start = this.skip(size);
    return size === 0 ? NONE : this.bytes.subarray(start, start + size);
  }

  /** Signed and little-endian, of `size` 1 to 6 bytes. */
  int(size: number): number {
    return this.bytes.readIntLE(this.skip(size), size);
  }

  int64(): bigint {
    return this.bytes.readBigInt64LE(this.skip(8));
  }

  double(): number {
    return this.bytes.readDoubleLE(this.skip(8));
  }

  /** An ID as 16 bytes, big-endian. */
  rawId(): StreamId {
    const start = this.skip(16);
    return { ms: this.bytes.readBigUInt64BE(start), seq: this.bytes.readBigUInt64BE(start + 8) };
  }

  /** A length that is a number rather than a size: any of 64 bits. */
  length64(): bigint {
    return this.bytes[this.at] === LENGTH64 ? this.bytes.readBigUInt64BE(this.skip(9) + 1) : BigInt(this.length());
  }

  /** A length as RDB writes it: 6 or 14 bits within the first bytes, else 32 or 64 bits after it. */
  length(): number {
    const first = this.u8();
    if (first < 64) return first;
    if (first < 128) return ((first & 63) << 8) | this.u8();
    if (first === LENGTH32) return this.bytes.readUInt32BE(this.skip(4));
    if (first === LENGTH64) return Number(this.bytes.readBigUInt64BE(this.skip(8)));
    return this.fail(`0x${first.toString(16)} where a length should be`);
  }

  /** How many elements follow, of at least `size` bytes each. */
  count(size: number): number {
    const count = this.length();
    if (count * size > this.left) this.fail(`${count} elements announced where ${this.left} bytes are left`);
    return count;
  }

  string(): Buffer {
    switch (this.bytes[this.at]) {
      case INT8:
      case INT16:
      case INT32:
        return decimal(this.int(1 << (this.u8() & 3)));
      case LZF:
        return this.#compressed();
      default:
        return this.take(this.length());
    }
  }

  /** A string that is an encoding of its own. */
  part(): PayloadReader {
    const start = this.offset;
    const remade = this.remade || this.bytes[this.at] >= INT8;
    const bytes = this.string();
    return new PayloadReader(bytes, 0, bytes.length, this.type, remade ? start : this.offset - bytes.length, remade);
  }

  #compressed(): Buffer {
    this.u8();
    const packedSize = this.length();
    const size = this.length();
    const packed = this.take(packedSize);
    const real = inflatedLength(packed);
    if (real !== size)
      this.fail(`compressed string of ${size} bytes that ${real < 0 ? 'is not LZF' : `inflates to ${real}`}`);
    const bytes = Buffer.allocUnsafe(size);
    inflate(packed, 0, packedSize, bytes, size);
    return bytes;
  }
}
