/**
 * A stream's bytes as runs that each hold whole frames: a chunk is used as it came; a frame that spans chunks is
 * gathered, and nothing behind it, into a buffer of the size that it is known to take.
 *
 *   feed(chunk) ──▶ buffer[at, limit) ──▶ consume(end), or expect(need) and then `more` or the next chunk
 *
 * A frame whose size is announced early (one big value) is copied once; one whose size shows bit by bit (many
 * values), or of which more is announced than is believed, about twice, as the buffer doubles. Bytes that were handed
 * out are never written to again.
 */
const MIN_GATHER = 256;

const NONE = Buffer.alloc(0);

export class Gather {
  buffer: Buffer = NONE;
  /** The unconsumed bytes: `buffer[at, limit)`; what came behind them waits in the last chunk. */
  at = 0;
  limit = 0;
  /** How many bytes, from `at`, have to be there before another look at them is worth it. */
  need = 1;
  /** How many bytes, from `at`, were searched: no awaited line ends in them. */
  scanned = 0;
  /** How many bytes, from `at`, belong to the frame for all that is known: at least `need`. */
  #likely = 1;
  /** True while `buffer` is our own, with room behind `limit`. */
  #own = false;
  /** What is left of the last chunk: `rest[restAt, restEnd)`. */
  #rest: Buffer | null = null;
  #restAt = 0;
  #restEnd = 0;

  /** @param believed bytes that are set aside for a frame because it was announced, before they have come */
  constructor(private readonly believed = Infinity) {}

  /** Bytes of memory that are kept for what is not consumed. */
  get held(): number {
    return this.#own ? this.buffer.length : this.limit - this.at;
  }

  /** Takes the next chunk, `chunk[start, end)`; only once `more` has said that nothing is left of the one before. */
  feed(chunk: Buffer, start: number, end: number): void {
    if (this.at === this.limit) {
      this.#use(chunk, start, end);
    } else if (chunk === this.buffer && start === this.limit) {
      // The line is where the frame goes on.
      this.limit = end;
    } else {
      this.#rest = chunk;
      this.#restAt = start;
      this.#restEnd = end;
      this.#take();
    }
  }

  /** Lets go of the chunk, for a wait that may be long: what is not consumed is gathered. */
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
   * Notes that no frame is whole yet: looking again is in vain before there are `need` bytes from `at`. `likely`
   * bytes are the frame's own unless the peer lies: they are gathered at once, but not waited for.
   */
  expect(need: number, likely = need): void {
    this.need = need;
    this.#likely = likely;
  }

  /** Offers more of the last chunk to look at; false when all of it was. */
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

  /** Gathers what the frame at `at` still needs out of the last chunk. */
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

  /**
   * Moves what is not consumed, `left` bytes, into a buffer of our own with room for the frame, as far as that is
   * believed.
   */
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
