/**
 * A stream's bytes as runs of whole frames. A chunk is used in place. A frame that spans chunks is copied, without the
 * bytes behind it, into a buffer of the size that it is known to need.
 *
 *   feed(chunk) ──▶ buffer[at, limit) ──▶ consume(end), or expect(need) and then `more` or the next chunk
 *
 * A frame whose size is announced early (one big value) is copied once. A frame whose size becomes known bit by bit
 * (many values), or that announces more than is believed, is copied about twice, as the buffer doubles. Bytes that were
 * handed out are never changed.
 */
const MIN_GATHER = 256;

const NONE = Buffer.alloc(0);

export class Gather {
  buffer: Buffer = NONE;
  /** The unconsumed bytes are `buffer[at, limit)`; later bytes wait in the last chunk. */
  at = 0;
  limit = 0;
  /** Number of bytes, from `at`, that are needed before it is worth looking again. */
  need = 1;
  /** Number of bytes, from `at`, that were searched without finding the end of a line. */
  scanned = 0;
  /** Number of bytes, from `at`, that probably belong to the frame: at least `need`. */
  #likely = 1;
  /** Whether `buffer` was allocated here and has room behind `limit`. */
  #own = false;
  /** The rest of the last chunk: `rest[restAt, restEnd)`. */
  #rest: Buffer | null = null;
  #restAt = 0;
  #restEnd = 0;

  /**
   * @param believed maximum number of bytes that are allocated for a frame because of its announced size, before they
   * arrive
   */
  constructor(private readonly believed = Infinity) {}

  /** Bytes of memory that are kept for unconsumed data. */
  get held(): number {
    return this.#own ? this.buffer.length : this.limit - this.at;
  }

  /** Takes the next chunk, `chunk[start, end)`; call it only after `more` has returned false. */
  feed(chunk: Buffer, start: number, end: number): void {
    if (this.at === this.limit) {
      this.#use(chunk, start, end);
    } else if (chunk === this.buffer && start === this.limit) {
      // The frame continues at the end of this line.
      this.limit = end;
    } else {
      this.#rest = chunk;
      this.#restAt = start;
      this.#restEnd = end;
      this.#take();
    }
  }

  /** Releases the chunk before a wait that may be long: unconsumed bytes are copied. */
  release(): void {
    if (this.at === this.limit) {
      this.buffer = NONE;
      this.at = this.limit = 0;
      this.#own = false;
    } else if (!this.#own) {
      this.#gather(this.limit - this.at);
    }
  }

  /** Moves past the frame that ends at `end`. */
  consume(end: number): void {
    this.at = end;
    this.need = 1;
    this.scanned = 0;
    this.#likely = 1;
  }

  /**
   * Records that no frame is complete: looking again is useless before there are `need` bytes from `at`. `likely` bytes
   * belong to the frame unless the peer lies: they are copied at once, but not waited for.
   */
  expect(need: number, likely = need): void {
    this.need = need;
    this.#likely = likely;
  }

  /** Makes more of the last chunk visible; false if all of it was. */
  more(): boolean {
    const rest = this.#rest;
    if (rest === null) return false;
    if (this.at === this.limit) {
      this.#rest = null;
      this.#use(rest, this.#restAt, this.#restEnd);
    } else {
      this.#take();
    }
    return true;
  }

  #use(chunk: Buffer, at: number, end: number): void {
    this.buffer = chunk;
    this.at = at;
    this.limit = end;
    this.#own = false;
    this.need = 1;
    this.scanned = 0;
    this.#likely = 1;
  }

  /** Copies the bytes that the frame at `at` still needs from the last chunk. */
  #take(): void {
    const rest = this.#rest!;
    const left = this.limit - this.at;
    const wanted = Math.max(this.need, this.#likely, left + 1);
    if (!this.#own || this.limit === this.buffer.length) this.#gather(left);
    const end = Math.min(this.#restEnd, this.#restAt + Math.min(wanted - left, this.buffer.length - this.limit));
    rest.copy(this.buffer, this.limit, this.#restAt, end);
    this.limit += end - this.#restAt;
    this.#restAt = end;
    if (end === this.#restEnd) this.#rest = null;
  }

  /** Moves the unconsumed `left` bytes into a new buffer with room for the frame, as far as its size is believed. */
  #gather(left: number): void {
    const wanted = Math.max(this.need, this.#likely, left + 1, this.#own ? left * 2 : 0);
    const gathered = Buffer.allocUnsafeSlow(Math.max(Math.min(wanted, Math.max(this.believed, left * 2)), MIN_GATHER));
    this.buffer.copy(gathered, 0, this.at, this.limit);
    this.limit -= this.at;
    this.buffer = gathered;
    this.at = 0;
    this.#own = true;
  }
}
