/**
 * Reads commands of a client: arrays of bulk strings, and inline commands.
 *
 *   chunk ──▶ feed ──▶ next() ──▶ frame, start, end, argc, argStart[], argEnd[]
 *
 * A command that is whole in one chunk is never copied: `frame` is the chunk. A command that spans chunks is gathered
 * (see gather.ts), and parsing continues where its bytes ended.
 *
 * Limits and error texts are those of Redis 7.0 (networking.c, `processMultibulkBuffer` and `processInlineBuffer`). A
 * command that a server would refuse must not pass, because the server would close the connection that many clients
 * share. There is one difference: in a line, Redis sees nothing after a zero byte until the line is too long; here it
 * is a byte like any other.
 */
import { encodeCommand } from './encode.js';
import { Gather } from './gather.js';
import { ProtocolError } from './frame-scanner.js';

const [CR, LF, STAR, DOLLAR, MINUS, ZERO, SPACE] = [13, 10, 42, 36, 45, 48, 32];
/** Maximum length of a line: an inline command, a count, a length. */
const MAX_LINE = 64 * 1024;
/** How much is gathered at a time for an inline command, whose length is unknown. */
const MIN_LINE = 512;
/** Maximum number of digits of a number, including a sign. */
const MAX_DIGITS = 20;
/** Maximum number of bytes that are allocated for an argument because of its announced size. */
const BELIEVED = 256 * 1024;
/** Redis's default `proto-max-bulk-len`. */
const MAX_BULK = 512 * 1024 * 1024;
const MAX_ARGUMENTS = 2 ** 31 - 1;
/** A negative count, which is skipped, may have 64 bits, too. A double cannot hold the limits exactly. */
const MOST_NEGATIVE = 2n ** 63n;
/** With more arguments than this, memory for their offsets is counted, and released after the command. */
const MANY_ARGUMENTS = 4096;
/** Two numbers for each argument. */
const OFFSETS_BYTES = 16;
/** `$0\r\n\r\n`: the smallest argument. */
const MIN_ARGUMENT = 6;
/** Maximum number of arguments from an unauthenticated client if a password is required. */
const MAX_ARGUMENTS_UNAUTHENTICATED = 10;
const MAX_BULK_UNAUTHENTICATED = 16384;

const COMMAND = 1;
/** An empty command, which Redis skips. */
const EMPTY = 0;
const INCOMPLETE = -1;
type ParseResult = typeof COMMAND | typeof EMPTY | typeof INCOMPLETE;

const NONE = Buffer.alloc(0);

export class RequestParser {
  /** The bytes that hold the command, in RESP form, even if the command came inline. */
  frame: Buffer = NONE;
  start = 0;
  end = 0;
  argc = 0;
  /** Offsets of the arguments in `frame`. The first `argc` are valid until the next call of `next`. */
  readonly argStart: number[] = [];
  readonly argEnd: number[] = [];
  /** Whether the client must still authenticate: then Redis's smaller limits hold. */
  unauthenticated = false;
  /** The limit of Redis 7. `session/argument-limit.ts` refuses a command that a server does not accept whole. */
  maxArguments = MAX_ARGUMENTS;
  maxBulk = MAX_BULK;

  readonly #in = new Gather(BELIEVED);
  /** The count of the array whose bytes ended in the middle; 0 if there is none. */
  #count = 0;
  /** How many of its arguments are parsed, where to continue, and where the command started by these offsets. */
  #parsed = 0;
  #cursor = 0;
  #base = 0;

  /** Takes the next chunk of the stream; call `next` until it returns false before feeding another. */
  feed(chunk: Buffer, start = 0, end = chunk.length): void {
    this.#in.feed(chunk, start, end);
  }

  /** Releases the chunks before a wait that may be long; the last command becomes invalid. */
  release(): void {
    this.frame = NONE;
    if (this.#count === 0 && this.argStart.length > MANY_ARGUMENTS) this.argStart.length = this.argEnd.length = 0;
    this.#in.release();
  }

  /** Number of bytes that are not yet part of a whole command (after `next` has returned false). */
  get pending(): number {
    return this.#in.limit - this.#in.at;
  }

  /** Bytes of memory that are kept for them. */
  get held(): number {
    const { length } = this.argStart;
    return this.#in.held + (length > MANY_ARGUMENTS ? length * OFFSETS_BYTES : 0);
  }

  /**
   * Moves to the next whole command, and returns whether there is one.
   * @throws {ProtocolError} with Redis's own text; the client must get it (`toReply`) and be closed
   */
  next(): boolean {
    const input = this.#in;
    do {
      while (input.limit - input.at >= input.need) {
        const found = input.buffer[input.at] === STAR ? this.#array() : this.#inline();
        if (found === COMMAND) return true;
        if (found === INCOMPLETE) break;
      }
    } while (input.more());
    return false;
  }

  #array(): ParseResult {
    const { buffer, at: start, limit } = this.#in;
    const { maxBulk } = this;
    let count = this.#count;
    let i = 0;
    let at = start + 1;
    if (count > 0) {
      this.#count = 0;
      i = this.#parsed;
      at = this.#resume(start);
    } else {
      const negative = at < limit && buffer[at] === MINUS;
      if (negative) at++;
      const digits = at;
      for (const most = Math.min(limit, at + MAX_DIGITS); at < most; at++) {
        const digit = buffer[at] - ZERO;
        if (digit < 0 || digit > 9) break;
        count = count * 10 + digit;
      }
      if (at + 1 >= limit || buffer[at] !== CR) {
        if (this.#line(start, at, 'too big mbulk count string')) throw new ProtocolError('invalid multibulk length');
        return INCOMPLETE;
      }
      if (
        !decimal(buffer, digits, at) ||
        (negative ? BigInt(buffer.toString('latin1', digits, at)) > MOST_NEGATIVE : count > this.maxArguments) ||
        (negative && count === 0)
      ) {
        throw new ProtocolError(at - start > MAX_LINE ? 'too big mbulk count string' : 'invalid multibulk length');
      }
      at += 2;
      if (negative || count === 0) {
        this.#in.consume(at);
        return EMPTY;
      }
      if (this.unauthenticated && count > MAX_ARGUMENTS_UNAUTHENTICATED) {
        throw new ProtocolError('unauthenticated multibulk length');
      }
    }
    for (; i < count; i++) {
      if (at >= limit) return this.#suspend(start, count, i, at, at + 1);
      let p = at;
      let length = 0;
      if (buffer[at] === DOLLAR) {
        for (const most = Math.min(limit, ++p + MAX_DIGITS); p < most; p++) {
          const digit = buffer[p] - ZERO;
          if (digit < 0 || digit > 9) break;
          length = length * 10 + digit;
        }
      }
      if (p + 1 >= limit || buffer[p] !== CR || buffer[at] !== DOLLAR) {
        this.#suspend(start, count, i, at, p + 2);
        if (!this.#line(at, p, 'too big bulk count string')) return INCOMPLETE;
        if (buffer[at] !== DOLLAR) throw new ProtocolError(`expected '$', got '${String.fromCharCode(buffer[at])}'`);
        throw new ProtocolError('invalid bulk length');
      }
      if (!decimal(buffer, at + 1, p) || length > maxBulk) {
        throw new ProtocolError(p - at > MAX_LINE ? 'too big bulk count string' : 'invalid bulk length');
      }
      if (this.unauthenticated && length > MAX_BULK_UNAUTHENTICATED)
        throw new ProtocolError('unauthenticated bulk length');
      const from = p + 2;
      const to = from + length;
      if (to + 2 > limit) return this.#suspend(start, count, i, at, to + 2);
      this.argStart[i] = from;
      this.argEnd[i] = to;
      at = to + 2;
    }
    // Most commands have the same buffer: storing it again would cost a write barrier of the garbage collector.
    if (this.frame !== buffer) this.frame = buffer;
    this.start = start;
    this.end = at;
    this.argc = count;
    this.#in.consume(at);
    return COMMAND;
  }

  /**
   * Records where to continue: with argument `i`, whose header starts at `at`. The command ends at `sure` or later. The
   * size of the missing arguments is believed up to double that.
   */
  #suspend(start: number, count: number, i: number, at: number, sure: number): typeof INCOMPLETE {
    this.#count = count;
    this.#parsed = i;
    this.#cursor = at;
    this.#base = start;
    const need = sure - start;
    this.#in.expect(need, need + Math.min((count - i - 1) * MIN_ARGUMENT, need));
    return INCOMPLETE;
  }

  /** Where to continue if the command now starts at `start`: the known offsets move, too. */
  #resume(start: number): number {
    const moved = start - this.#base;
    if (moved !== 0) {
      for (let i = 0; i < this.#parsed; i++) {
        this.argStart[i] += moved;
        this.argEnd[i] += moved;
      }
    }
    return this.#cursor + moved;
  }

  /**
   * Whether the line that starts at `at`, and is no number up to `p`, is complete: CR and one more byte, as in Redis.
   * Otherwise waits for more, unless the line is too long.
   */
  #line(at: number, p: number, tooBig: string): boolean {
    const { buffer, at: start, limit } = this.#in;
    const found = buffer.subarray(0, limit).indexOf(CR, Math.max(p, start + this.#in.scanned));
    const end = found === -1 ? limit : found;
    if (end - at > MAX_LINE) throw new ProtocolError(tooBig);
    if (end + 1 < limit) return true;
    this.#in.scanned = end - start;
    this.#in.expect(end - start + 2, end - start + 2 + ((end - at) >> 1));
    return false;
  }

  #inline(): ParseResult {
    const { buffer, at: start, limit } = this.#in;
    const newline = buffer.subarray(0, limit).indexOf(LF, start + this.#in.scanned);
    const length = (newline === -1 ? limit : newline) - start;
    if (length > MAX_LINE) throw new ProtocolError('too big inline request');
    if (newline === -1) {
      this.#in.scanned = length;
      this.#in.expect(length + 1, length + 1 + Math.max(length, MIN_LINE));
      return INCOMPLETE;
    }
    const end = length > 0 && buffer[newline - 1] === CR ? newline - 1 : newline;
    const args = splitInline(buffer.subarray(start, end));
    this.#in.consume(newline + 1);
    if (args.length === 0) return EMPTY;
    this.frame = encodeCommand(args);
    this.start = 0;
    this.end = this.frame.length;
    this.argc = args.length;
    let at = 1 + String(args.length).length + 2;
    args.forEach((arg, i) => {
      at += 1 + String(arg.length).length + 2;
      this.argStart[i] = at;
      this.argEnd[i] = at + arg.length;
      at += arg.length + 2;
    });
    return COMMAND;
  }
}

/**
 * Whether `buffer[from, to)`, all digits, is a number for Redis's `string2ll`: not empty, and without leading zeros.
 */
function decimal(buffer: Buffer, from: number, to: number): boolean {
  return buffer[from] === ZERO ? to === from + 1 : to > from;
}

/** `isspace` of the C locale: bytes that may separate arguments. */
const isSpace = (byte: number): boolean => byte === SPACE || (byte >= 9 && byte <= 13);
/** Bytes that end an unquoted argument: vertical tab and form feed do not. */
const endsArgument = (byte: number): boolean => byte === SPACE || byte === 9 || byte === LF || byte === CR;
const [DOUBLE, SINGLE, BACKSLASH] = [34, 39, 92];

/** Splits a line as Redis does (`sdssplitargs`): double quotes with escapes, single quotes with `\'`. */
function splitInline(line: Buffer): Buffer[] {
  const args: Buffer[] = [];
  let at = 0;
  for (;;) {
    while (at < line.length && isSpace(line[at])) at++;
    if (at >= line.length) return args;
    const bytes: number[] = [];
    let quote = 0;
    for (; ; at++) {
      if (at >= line.length) {
        if (quote !== 0) throw new ProtocolError('unbalanced quotes in request');
        break;
      }
      const byte = line[at];
      if (quote === DOUBLE && byte === BACKSLASH && at + 1 < line.length) {
        at = unescape(line, at, bytes);
      } else if (quote === SINGLE && byte === BACKSLASH && line[at + 1] === SINGLE) {
        bytes.push(SINGLE);
        at++;
      } else if (quote !== 0 && byte === quote) {
        if (at + 1 < line.length && !isSpace(line[at + 1])) throw new ProtocolError('unbalanced quotes in request');
        at++;
        break;
      } else if (quote === 0 && (byte === DOUBLE || byte === SINGLE)) {
        quote = byte;
      } else if (quote === 0 && endsArgument(byte)) {
        break;
      } else {
        bytes.push(byte);
      }
    }
    args.push(Buffer.from(bytes));
  }
}

const ESCAPES: Record<string, number> = { n: 10, r: 13, t: 9, b: 8, a: 7 };

/** Appends the byte for the escape at `at`; returns the offset of the escape's last character. */
function unescape(line: Buffer, at: number, bytes: number[]): number {
  const hex = line.subarray(at + 2, at + 4).toString('latin1');
  if (line[at + 1] === 120 && /^[0-9a-fA-F]{2}$/.test(hex)) {
    bytes.push(parseInt(hex, 16));
    return at + 3;
  }
  bytes.push(ESCAPES[String.fromCharCode(line[at + 1])] ?? line[at + 1]);
  return at + 1;
}
