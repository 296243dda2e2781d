/**
 * A stream's bytes as runs that each hold whole frames: a chunk is used as it came; a frame that spans chunks is
 * gathered, and nothing behind it, into a buffer of the size that it is known to take.
 *
 *   feed(chunk) ──▶ buffer[at, limit) ──▶ consume(end), or expect(need) and then `more` or the next chunk
 *
 * A frame whose size is announced early (one big value) is copied once; one whose size shows bit by bit (many
 * values) about twice, as the buffer doubles. Bytes that were handed out are never written to again.
 */
const MIN_GATHER = 256;

export class Gather {
  buffer: Buffer = Buffer.alloc(0);
  /** The unconsumed bytes: `buffer[at, limit)`; what came behind them waits in the last chunk. */
  at = 0;
  limit = 0;
  /** How many bytes, from `at`, have to be there before another look at them is worth it. */
  need = 1;
  /** How many bytes, from `at`, belong to the frame for all that is known: at least `need`. */
  #likely = 1;
  /** True while `buffer` is our own, with room behind `limit`. */
  #own = false;
  /** What is left of the last chunk: `rest[restAt, …)`. */
  #rest: Buffer | null = null;
  #restAt = 0;

  /** Takes the next chunk; only once `more` has said that nothing is left of the one before. */
  feed(chunk: Buffer): void {
    if (this.at === this.limit) {
      this.#use(chunk, 0);
      return;
    }
    this.#rest = chunk;
    this.#restAt = 0;
    this.#take();
  }

  /** Moves past the frame that ends at `end`. */
  consume(end: number): void {
    this.at = end;
    this.need = 1;
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
      this.#use(rest, this.#restAt);
    } else {
      this.#take();
    }
    return true;
  }

  #use(chunk: Buffer, at: number): void {
    this.buffer = chunk;
    this.at = at;
    this.limit = chunk.length;
    this.#own = false;
    this.need = 1;
    this.#likely = 1;
  }

  /** Gathers what the frame at `at` still needs out of the last chunk. */
  #take(): void {
    const rest = this.#rest!;
    const left = this.limit - this.at;
    const wanted = Math.max(this.need, this.#likely, left + 1);
    if (!this.#own || this.buffer.length - this.at < wanted) {
      const gathered = Buffer.allocUnsafeSlow(Math.max(wanted, this.#own ? left * 2 : 0, MIN_GATHER));
      this.buffer.copy(gathered, 0, this.at, this.limit);
      this.buffer = gathered;
      this.at = 0;
      this.limit = left;
      this.#own = true;
    }
    const end = Math.min(rest.length, this.#restAt + wanted - left);
    rest.copy(this.buffer, this.limit, this.#restAt, end);
    this.limit += end - this.#restAt;
    this.#restAt = end;
    if (end === rest.length) this.#rest = null;
  }
}
