/**
 * Reads whole replies one after the other, without creating an object for each. An aggregate is read as the number of
 * its elements, followed by the elements.
 *
 *   $5\r\nhello\r\n :42\r\n -ERR …\r\n        bytes() 'hello', integer() 42, error() 'ERR …'
 */
const CR = 13;
const [MINUS, DOLLAR, COLON, ZERO, ONE] = ['-', '$', ':', '0', '1'].map((each) => each.charCodeAt(0));

export class Scalars {
  constructor(
    private readonly buffer: Buffer,
    /** The offset at which the next reply begins. */
    public at = 0,
  ) {}

  get isError(): boolean {
    return this.buffer[this.at] === MINUS;
  }

  /** Whether the reply is `:1`. */
  get isOne(): boolean {
    const { buffer, at } = this;
    return buffer[at] === COLON && buffer[at + 1] === ONE && buffer[at + 2] === CR;
  }

  /** The next reply's bytes, as a slice: the content of a bulk string, or a line without its type; null for a nil. */
  bytes(): Buffer | null {
    if (this.buffer[this.at] !== DOLLAR) {
      const start = this.at + 1;
      return this.buffer.subarray(start, this.#lineEnd());
    }
    const length = this.integer();
    if (length < 0) return null;
    const start = this.at;
    this.at += length + 2;
    return this.buffer.subarray(start, start + length);
  }

  /** The next reply as text. */
  text(): string {
    return this.bytes()?.toString('latin1') ?? '';
  }

  /** The number in the next line: an integer, or the number of elements that follow. */
  integer(): number {
    const { buffer } = this;
    let at = this.at + 1;
    const negative = buffer[at] === MINUS;
    if (negative) at++;
    let value = 0;
    for (; buffer[at] !== CR; at++) value = value * 10 + buffer[at] - ZERO;
    this.at = at + 2;
    return negative ? -value : value;
  }

  /** Moves past the next line. */
  skipLine(): void {
    this.#lineEnd();
  }

  #lineEnd(): number {
    let end = this.at + 1;
    while (this.buffer[end] !== CR) end++;
    this.at = end + 2;
    return end;
  }
}
