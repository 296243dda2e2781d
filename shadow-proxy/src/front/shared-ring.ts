/**
 * Records from one thread to another through shared memory: one thread writes, the other reads.
 *
 *   header WRITTEN, READ: bytes since the beginning, modulo 2^32 · ASLEEP, FULL: flags, each in a cache line of its own
 *   record   u32 id · u32 kind << 24 | length · the bytes, padded to 4
 *
 * A record is contiguous: if the end of the memory is too near, a record of kind SKIP fills it.
 *
 * Each flag says that its thread waits for the other thread's bell. It is set before the last look, and read after each
 * change, so that no bell is missed.
 */
import { copyBytes } from '../io/copy-bytes.js';

const WRITTEN = 0;
const READ = 16;
/** The reader has seen everything, and waits. */
const ASLEEP = 32;
/** The writer needs more room than there is, and waits. */
const FULL = 48;
const HEADER_BYTES = 256;
const RECORD_BYTES = 8;
const SKIP = 255;
/** Maximum size of one record; longer data takes several. */
export const MOST = 64 * 1024;

/** The memory of a ring. @param bytes size for records; a power of two, at least 4 × `MOST` */
export function ringMemory(bytes: number): SharedArrayBuffer {
  if (bytes < 4 * MOST || (bytes & (bytes - 1)) !== 0) throw new RangeError(`${bytes} bytes are no ring`);
  return new SharedArrayBuffer(HEADER_BYTES + bytes);
}

const padded = (length: number): number => (length + 3) & ~3;

abstract class End {
  protected readonly header: Int32Array;
  protected readonly words: Int32Array;
  protected readonly bytes: Uint8Array;
  protected readonly size: number;
  /** The position of this end. */
  protected at: number;

  constructor(memory: ArrayBufferLike, at: number) {
    this.header = new Int32Array(memory, 0, HEADER_BYTES / 4);
    this.words = new Int32Array(memory, HEADER_BYTES);
    this.bytes = new Uint8Array(memory, HEADER_BYTES);
    this.size = this.bytes.length;
    this.at = Atomics.load(this.header, at);
  }

  /** Clears the flag; returns whether it was set. */
  protected lower(flag: number): boolean {
    return Atomics.load(this.header, flag) === 1 && Atomics.exchange(this.header, flag, 0) === 1;
  }
}

export class RingWriter extends End {
  /** The reader's position at the last look. */
  #read: number;

  constructor(memory: ArrayBufferLike) {
    super(memory, WRITTEN);
    this.#read = Atomics.load(this.header, READ);
  }

  /** Writes a record of `from[start, end)`, at most `MOST` bytes; false if there is no room now. */
  put(kind: number, id: number, from: Uint8Array, start: number, end: number): boolean {
    const length = end - start;
    const needed = RECORD_BYTES + padded(length);
    let place = this.at & (this.size - 1);
    const left = this.size - place;
    const skipped = left < needed ? left : 0;
    if (!this.#hasRoom(skipped + needed)) return false;
    if (skipped > 0) {
      // Only one word may be left: it holds the kind and the length.
      this.words[(place + (left > 4 ? 4 : 0)) >> 2] = SKIP << 24;
      place = 0;
    }
    const word = place >> 2;
    this.words[word] = id;
    this.words[word + 1] = (kind << 24) | length;
    if (length > 0) copyBytes(from, start, end, this.bytes, place + RECORD_BYTES);
    this.at = (this.at + skipped + needed) | 0;
    Atomics.store(this.header, WRITTEN, this.at);
    return true;
  }

  /** Clears the reader's flag; returns whether the reader waits for the bell. */
  wakes(): boolean {
    return this.lower(ASLEEP);
  }

  /** From now on the reader rings when it has made room. False if there is room already. */
  waits(): boolean {
    Atomics.store(this.header, FULL, 1);
    if (!this.#hasRoom(2 * (RECORD_BYTES + MOST))) return true;
    Atomics.store(this.header, FULL, 0);
    return false;
  }

  #hasRoom(bytes: number): boolean {
    if (this.#fits(bytes)) return true;
    this.#read = Atomics.load(this.header, READ);
    return this.#fits(bytes);
  }

  #fits(bytes: number): boolean {
    return ((this.at - this.#read) >>> 0) + bytes <= this.size;
  }
}

/** Receives a record; the bytes are valid only during the call. */
export type ReceiveRecord = (kind: number, id: number, bytes: Uint8Array, start: number, end: number) => void;

export class RingReader extends End {
  constructor(memory: ArrayBufferLike) {
    super(memory, READ);
  }

  /** Passes on all present records. Returns whether there were any. */
  take(received: ReceiveRecord): boolean {
    const { header, words, bytes, size } = this;
    const written = Atomics.load(header, WRITTEN);
    if (written === this.at) return false;
    while (this.at !== written) {
      const place = this.at & (size - 1);
      const left = size - place;
      const tag = words[(place >> 2) + (left > 4 ? 1 : 0)];
      const kind = tag >>> 24;
      if (kind === SKIP) {
        this.at = (this.at + left) | 0;
        continue;
      }
      const length = tag & 0xffffff;
      const start = place + RECORD_BYTES;
      received(kind, words[place >> 2] >>> 0, bytes, start, start + length);
      this.at = (this.at + RECORD_BYTES + padded(length)) | 0;
    }
    Atomics.store(header, READ, this.at);
    return true;
  }

  /** Clears the writer's flag; returns whether the writer waits for room. */
  frees(): boolean {
    return this.lower(FULL);
  }

  /** From now on the writer rings when there are records. False if there are some already. */
  sleeps(): boolean {
    Atomics.store(this.header, ASLEEP, 1);
    if (Atomics.load(this.header, WRITTEN) === this.at) return true;
    Atomics.store(this.header, ASLEEP, 0);
    return false;
  }
}
