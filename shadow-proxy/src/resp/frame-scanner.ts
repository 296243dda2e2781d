/**
 * Finds where a reply ends. The scanner reads one frame of RESP2 or RESP3 without decoding it, so that a reply can be
 * passed on as the same bytes.
 *
 * Room: resp: the wire format: where a frame ends, requests, values, encoding.
 * Called by: every room after it.
 * Calls: text, io.
 */

/** Input that is not RESP. Its connection cannot be used any more. */
export class ProtocolError extends Error {
  readonly code = 'PROTOCOL';

  /** Redis's answer to a client that sent such input, byte by byte (a quoted byte need not be ASCII). */
  toReply(): Buffer {
    return Buffer.from(`-ERR Protocol error: ${this.message.replace(/[\r\n]/g, ' ')}\r\n`, 'latin1');
  }
}

const CR = 13;
const [PLUS, MINUS, COLON, DOLLAR, STAR] = [43, 45, 58, 36, 42];
const [UNDERSCORE, HASH, COMMA, PAREN, BANG, EQUALS, PERCENT, TILDE, GREATER, PIPE] = [
  95, 35, 44, 40, 33, 61, 37, 126, 62, 124,
];

/**
 * An element takes at least three bytes (`+\r\n`): so an aggregate still needs at least three for each missing element.
 */
const MIN_ELEMENT = 3;

/** A line (simple string, error, number) that is longer is invalid. */
const MAX_LINE = 1 << 20;
/** A line that is this long without an end may be much longer. */
const SHORT_LINE = 64;
const MAX_LENGTH = 2 ** 31;
const MAX_DIGITS = 32;

export class FrameScanner {
  /** After an incomplete scan: minimum number of bytes from the frame's start. */
  need = 0;
  /** The number of bytes that will probably be needed: more than `need` if a long line has not ended. */
  likely = 0;
  /** Where an incomplete scan stopped: the offset of the incomplete element from the frame's start. */
  #done = 0;
  /** Number of elements still to come, including the incomplete one; 0 if no scan is under way. */
  #remaining = 0;

  /** Discards an incomplete scan. */
  reset(): void {
    this.#done = 0;
    this.#remaining = 0;
  }

  /**
   * The offset just after the frame that starts at `start`; -1 if it does not end before `limit`. A RESP3 attribute
   * belongs to the frame that follows it.
   * @throws {ProtocolError} if the bytes are not RESP
   */
  scan(buffer: Buffer, start: number, limit: number): number {
    this.reset();
    return this.resume(buffer, start, limit);
  }

  /**
   * Scans as `scan` does, but continues an incomplete scan of the same frame, which may have moved meanwhile. So a
   * frame that comes in many pieces is read once. Several frames that are wanted together are treated as one.
   */
  resume(buffer: Buffer, start: number, limit: number, frames = 1): number {
    let at = start + this.#done;
    let remaining = this.#remaining === 0 ? frames : this.#remaining;
    while (remaining > 0) {
      if (at >= limit) return this.#incomplete(start, at, remaining, at + MIN_ELEMENT, remaining - 1);
      const type = buffer[at];
      let p = at + 1;
      switch (type) {
        case PLUS:
        case MINUS:
        case COLON:
        case COMMA:
        case PAREN:
        case HASH:
        case UNDERSCORE:
          while (p < limit && buffer[p] !== CR) p++;
          if (p - at > MAX_LINE) throw new ProtocolError('a reply line longer than 1 MiB');
          if (p + 1 >= limit) {
            this.#incomplete(start, at, remaining, p + 2, remaining - 1);
            if (p - at > SHORT_LINE) this.likely += (p - at) >> 1;
            return -1;
          }
          at = p + 2;
          remaining--;
          continue;
        case DOLLAR:
        case EQUALS:
        case BANG:
        case STAR:
        case TILDE:
        case GREATER:
        case PERCENT:
        case PIPE:
          break;
        default:
          throw new ProtocolError(`a reply that starts with byte 0x${type.toString(16).padStart(2, '0')}`);
      }
      // A length follows in the line.
      let length = 0;
      const negative = buffer[p] === MINUS;
      if (negative) p++;
      const digits = p;
      for (; p < limit; p++) {
        const digit = buffer[p] - 48;
        if (digit < 0 || digit > 9) break;
        length = length * 10 + digit;
      }
      if (p - digits > MAX_DIGITS) throw new ProtocolError('a length with too many digits');
      if (p + 1 >= limit && (p >= limit || buffer[p] === CR))
        return this.#incomplete(start, at, remaining, p + 2, remaining - 1);
      if (buffer[p] !== CR || p === digits || length > MAX_LENGTH)
        throw new ProtocolError('a reply with an invalid length');
      p += 2;
      if (negative) {
        // The nulls of RESP2, `$-1` and `*-1`.
        if (length !== 1 || (type !== DOLLAR && type !== STAR))
          throw new ProtocolError('a reply with an invalid length');
        at = p;
        remaining--;
      } else if (type === DOLLAR || type === EQUALS || type === BANG) {
        p += length + 2;
        if (p > limit) return this.#incomplete(start, at, remaining, p, remaining - 1);
        at = p;
        remaining--;
      } else {
        at = p;
        remaining += type === PERCENT ? length * 2 - 1 : type === PIPE ? length * 2 : length - 1;
      }
    }
    this.#done = 0;
    this.#remaining = 0;
    return at;
  }

  /**
   * Records where to continue: at the element that starts at `at`. It ends at `sure` or later, by the announced
   * lengths. The size of the missing `elements` is believed up to double that.
   */
  #incomplete(start: number, at: number, remaining: number, sure: number, elements: number): -1 {
    this.#done = at - start;
    this.#remaining = remaining;
    this.need = sure - start + Math.min(elements * MIN_ELEMENT, sure - start);
    this.likely = this.need;
    return -1;
  }
}
