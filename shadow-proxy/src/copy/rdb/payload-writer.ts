import { FOOTER, seal } from './footer.js';
import type { StreamId } from './value.js';

/** Builds a DUMP payload: a type byte, the value, and the footer. */
export class PayloadWriter {
  #bytes: Buffer;
  #end = 0;

  constructor(capacity = 128) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  u8(value: number): void {
    const at = this.#grow(1);
    this.#bytes[at] = value;
  }

  length(value: number): void {
    if (value < 64) return this.u8(value);
    if (value < 16384) {
      const at = this.#grow(2);
      this.#bytes[at] = 0x40 | (value >> 8);
      this.#bytes[at + 1] = value & 255;
    } else if (value < 2 ** 32) {
      const at = this.#grow(5);
      this.#bytes[at] = 0x80;
      this.#bytes.writeUInt32BE(value, at + 1);
    } else {
      this.length64(BigInt(value));
    }
  }

  /** An unsigned number of at most 64 bits. */
  length64(value: bigint): void {
    if (value < 2n ** 32n) return this.length(Number(value));
    const at = this.#grow(9);
    this.#bytes[at] = 0x81;
    this.#bytes.writeBigUInt64BE(value, at + 1);
  }

  string(bytes: Buffer): void {
    this.length(bytes.length);
    this.raw(bytes);
  }

  raw(bytes: Buffer): void {
    const at = this.#grow(bytes.length);
    bytes.copy(this.#bytes, at);
  }

  int64(value: bigint): void {
    const at = this.#grow(8);
    this.#bytes.writeBigInt64LE(value, at);
  }

  double(value: number): void {
    const at = this.#grow(8);
    this.#bytes.writeDoubleLE(value, at);
  }

  rawId(id: StreamId): void {
    this.raw(idBytes(id));
  }

  /** A stream ID as two lengths. */
  id(id: StreamId): void {
    this.length64(id.ms);
    this.length64(id.seq);
  }

  /** Adds the footer. */
  finish(version: number): Buffer {
    const at = this.#grow(FOOTER);
    return seal(this.#bytes, at, version);
  }

  /** Makes room for `size` bytes and returns where they go. */
  #grow(size: number): number {
    const at = this.#end;
    this.#end += size;
    if (this.#end > this.#bytes.length) {
      const bigger = Buffer.allocUnsafe(Math.max(this.#end, this.#bytes.length * 2));
      this.#bytes.copy(bigger, 0, 0, at);
      this.#bytes = bigger;
    }
    return at;
  }
}

/** An ID as 16 bytes, big-endian, so that the order of the bytes is the order of the IDs. */
export function idBytes(id: StreamId): Buffer {
  const bytes = Buffer.allocUnsafe(16);
  bytes.writeBigUInt64BE(id.ms, 0);
  bytes.writeBigUInt64BE(id.seq, 8);
  return bytes;
}
