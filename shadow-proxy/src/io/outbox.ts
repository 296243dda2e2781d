/**
 * The data that one socket sends at the end of the turn: ranges of buffers of other connections. Neighbouring ranges
 * are joined. A single range is written in place, small ranges are copied together, and large ranges are written in
 * place.
 */
import type { ClientSocket } from './client-socket.js';
import { copyBytes } from './copy-bytes.js';
import type { Flushable, Turn } from './turn.js';

/** From this size on, a range is cheaper to write in place than to copy. */
const IN_PLACE = 16 * 1024;

/** The socket that the outbox writes to. */
type OutputSocket = Pick<
  ClientSocket,
  'write' | 'writeRange' | 'cork' | 'uncork' | 'destroyed' | 'writable' | 'writableLength'
>;

export class Outbox implements Flushable {
  marked = false;
  readonly #turn: Turn;
  readonly #socket: OutputSocket;
  #buffers: Buffer[] = [];
  #starts: number[] = [];
  #ends: number[] = [];
  #count = 0;
  #bytes = 0;
  /** Bytes that the kernel had not taken at the last look. */
  #unsent = 0;

  constructor(turn: Turn, socket: OutputSocket) {
    this.#turn = turn;
    this.#socket = socket;
  }

  /** Bytes that wait for the end of the turn, or that the kernel has not taken yet. */
  get bytes(): number {
    if (this.#unsent > 0) this.#unsent = this.#socket.writableLength;
    return this.#bytes + this.#unsent;
  }

  /** The same number, read from the socket now: a front thread reports later that a client does not read. */
  weigh(): number {
    this.#unsent = this.#socket.writableLength;
    return this.bytes;
  }

  add(buffer: Buffer, start: number, end: number): void {
    const last = this.#count - 1;
    if (last >= 0 && this.#buffers[last] === buffer && this.#ends[last] === start) {
      this.#ends[last] = end;
    } else {
      this.#buffers[this.#count] = buffer;
      this.#starts[this.#count] = start;
      this.#ends[this.#count] = end;
      this.#count++;
    }
    this.#bytes += end - start;
    if (!this.marked) this.#turn.mark(this);
  }

  addWhole(buffer: Buffer): void {
    this.add(buffer, 0, buffer.length);
  }

  flush(): void {
    const count = this.#count;
    if (count === 0) return;
    const socket = this.#socket;
    if (!socket.destroyed && socket.writable) {
      if (socket.writeRange !== undefined) {
        for (let i = 0; i < count; i++) socket.writeRange(this.#buffers[i], this.#starts[i], this.#ends[i]);
      } else if (count === 1) {
        this.#write(this.#buffers[0], this.#starts[0], this.#ends[0]);
      } else {
        this.#writeAll(count);
      }
      this.#unsent = socket.writableLength;
    }
    this.#bytes = 0;
    this.#count = 0;
    if (count > 1024) {
      this.#buffers = [];
      this.#starts = [];
      this.#ends = [];
    } else {
      this.#buffers.fill(EMPTY, 0, count);
    }
  }

  /**
   * If the kernel takes no more, bytes that lie in a much larger buffer are copied, because they would keep the whole
   * buffer alive.
   */
  #write(buffer: Buffer, start: number, end: number): void {
    const bytes = buffer.subarray(start, end);
    this.#socket.write(this.#unsent > 0 && buffer.buffer.byteLength > 2 * bytes.length ? Buffer.from(bytes) : bytes);
  }

  #writeAll(count: number): void {
    const socket = this.#socket;
    let small = 0;
    for (let i = 0; i < count; i++) {
      const size = this.#ends[i] - this.#starts[i];
      if (size < IN_PLACE) small += size;
    }
    const together = small === this.#bytes;
    const block = Buffer.allocUnsafe(small);
    let from = 0;
    let at = 0;
    if (!together) socket.cork();
    for (let i = 0; i < count; i++) {
      const start = this.#starts[i];
      const end = this.#ends[i];
      if (end - start < IN_PLACE) {
        copyBytes(this.#buffers[i], start, end, block, at);
        at += end - start;
      } else {
        if (at > from) socket.write(block.subarray(from, at));
        from = at;
        this.#write(this.#buffers[i], start, end);
      }
    }
    if (at > from) socket.write(from === 0 && at === block.length ? block : block.subarray(from, at));
    if (!together) socket.uncork();
  }
}

const EMPTY = Buffer.alloc(0);
