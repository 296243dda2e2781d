/**
 * Reads replies of a server, one whole frame after another. Frames that came in one chunk are not copied.
 *
 *   chunk ──▶ feed ──▶ next() ──▶ buffer, start, end
 */
import { Gather } from './gather.js';
import { FrameScanner } from './frame-scanner.js';

export class FrameReader {
  /** The last frame found by `next`: `buffer[start, end)`. */
  start = 0;
  end = 0;
  /** Size of the last chunk. */
  fedBytes = 0;
  readonly #in = new Gather();
  readonly #scanner = new FrameScanner();

  /**
   * The bytes that hold the frames; they never change, so callers may keep them. Those from `at` to `limit` are not
   * consumed yet. `next` and `skip` may add more of the last chunk.
   */
  get buffer(): Buffer {
    return this.#in.buffer;
  }
  get at(): number {
    return this.#in.at;
  }
  get limit(): number {
    return this.#in.limit;
  }

  /** Takes the next chunk; consume all whole frames before feeding another. */
  feed(chunk: Buffer, start = 0, end = chunk.length): void {
    this.fedBytes = end - start;
    this.#in.feed(chunk, start, end);
  }

  /** Consumes `bytes`, which the caller knows to be whole frames; afterwards `buffer` may be another one. */
  skip(bytes: number): void {
    const input = this.#in;
    this.#scanner.reset();
    input.consume(input.at + bytes);
    if (input.at === input.limit) input.more();
  }

  /**
   * Finds the next frame, or the next `frames` together, and consumes them.
   * @throws {ProtocolError} if the server sent bytes that are not RESP
   */
  next(frames = 1): boolean {
    const input = this.#in;
    do {
      if (input.limit - input.at < input.need) continue;
      const end = this.#scanner.resume(input.buffer, input.at, input.limit, frames);
      if (end !== -1) {
        this.start = input.at;
        this.end = end;
        input.consume(end);
        return true;
      }
      input.expect(this.#scanner.need, this.#scanner.likely);
    } while (input.more());
    return false;
  }
}
