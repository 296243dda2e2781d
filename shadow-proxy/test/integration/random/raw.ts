/**
 * A client that takes nothing on trust: raw sockets, RESP2 and RESP3, replies matched to commands by their order alone.
 */
import { connect, type Socket } from 'node:net';
import type { Argument, Plain } from './reply.js';

/** A reply with the type byte it came with; `null` has its own types (`$`, `*` or `_`). */
export interface RawReply {
  readonly type: string;
  readonly value: Plain;
}

export const encode = (args: readonly Argument[]): Buffer =>
  Buffer.concat([
    Buffer.from(`*${args.length}\r\n`),
    ...args.flatMap((arg) => {
      const bytes = Buffer.from(arg as string);
      return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')];
    }),
  ]);

export class RawConnection {
  #received: Buffer[] = [];
  #bytes = 0;
  /** Bytes below which another look at the buffer is in vain. */
  #wanted = 1;
  #waiting: ((reply: RawReply) => void)[] = [];
  #failed: ((error: Error) => void) | null = null;
  /** Why the connection cannot be used any more. */
  failure: Error | null = null;

  private constructor(readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the connection was closed')));
  }

  static open(host: string, port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port });
      socket.once('error', reject);
      socket.once('connect', () => resolve(new RawConnection(socket)));
    });
  }

  /**
   * Writes the chunks one by one and resolves with the replies to `count` commands. @throws when the connection fails
   */
  async exchange(chunks: readonly Buffer[], count: number): Promise<RawReply[]> {
    if (this.failure) throw this.failure;
    const replies: RawReply[] = [];
    const all = new Promise<void>((resolve, reject) => {
      this.#failed = reject;
      const one = (reply: RawReply): void => {
        if (replies.push(reply) === count) resolve();
      };
      for (let i = 0; i < count; i++) this.#waiting.push(one);
    });
    // It may fail before it is waited for.
    all.catch(() => undefined);
    for (const chunk of chunks) {
      this.socket.write(chunk);
      if (chunks.length > 1) await new Promise(setImmediate);
    }
    await all;
    this.#failed = null;
    return replies;
  }

  /** Looks at nothing that comes from now on. */
  abandon(): void {
    this.socket.removeAllListeners('data').resume();
  }

  /** Disconnects without reading what is under way. */
  destroy(): void {
    this.#failed = null;
    this.socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#wanted) return;
    const buffer = this.#received.length === 1 ? chunk : Buffer.concat(this.#received);
    let at = 0;
    this.#wanted = 0;
    try {
      while (at < buffer.length) {
        const parsed = parse(buffer, at);
        const deliver = this.#waiting.shift();
        if (deliver === undefined) throw new MalformedReply('a reply that nothing asked for', buffer, at);
        deliver(parsed.reply);
        at = parsed.end;
      }
    } catch (error) {
      if (!(error instanceof Incomplete)) {
        this.#fail(error as Error);
        this.socket.destroy();
        return;
      }
      this.#wanted = error.wanted - at;
    }
    this.#received = at === buffer.length ? [] : [buffer.subarray(at)];
    this.#bytes = buffer.length - at;
  }

  #fail(error: Error): void {
    this.failure ??= error;
    this.#failed?.(this.failure);
    this.#failed = null;
  }
}

/** More bytes are needed: at least up to the offset `wanted`. */
class Incomplete extends Error {
  constructor(readonly wanted: number) {
    super();
  }
}

class MalformedReply extends Error {
  constructor(what: string, buffer: Buffer, at: number) {
    super(`${what}: ${JSON.stringify(buffer.toString('latin1', at, at + 80))}`);
  }
}

interface Parsed {
  readonly reply: RawReply;
  readonly end: number;
}

const scalar = (type: string, value: Plain, end: number): Parsed => ({ reply: { type, value }, end });

/** Strict: every length, line end and number is checked. Source: the Redis serialization protocol specification. */
function parse(buffer: Buffer, at: number): Parsed {
  const lineEnd = buffer.indexOf('\r\n', at, 'latin1');
  if (lineEnd < 0) throw new Incomplete(buffer.length + 1);
  const type = String.fromCharCode(buffer[at]);
  const line = buffer.toString('latin1', at + 1, lineEnd);
  const end = lineEnd + 2;
  const malformed = (): never => {
    throw new MalformedReply('a malformed reply', buffer, at);
  };
  const length = (least: number): number =>
    /^(-1|0|[1-9]\d*)$/.test(line) && Number(line) >= least ? Number(line) : malformed();
  switch (type) {
    case '+':
      return scalar(type, line, end);
    case '-':
      return scalar(type, new Error(line), end);
    case ':':
      return /^-?\d{1,19}$/.test(line) ? scalar(type, Number(line), end) : malformed();
    case ',':
      return /^(-?(\d+(\.\d+)?([eE][+-]?\d+)?|inf)|nan)$/.test(line) ? scalar(type, line, end) : malformed();
    case '#':
      return /^[tf]$/.test(line) ? scalar(type, line === 't', end) : malformed();
    case '(':
      return scalar(type, BigInt(line), end);
    case '_':
      return line === '' ? scalar(type, null, end) : malformed();
    case '$':
    case '=':
    case '!': {
      const size = length(type === '$' ? -1 : 0);
      if (size < 0) return scalar(type, null, end);
      if (buffer.length < end + size + 2) throw new Incomplete(end + size + 2);
      if (buffer.toString('latin1', end + size, end + size + 2) !== '\r\n') malformed();
      const bytes = buffer.subarray(end, end + size);
      return scalar(type, type === '!' ? new Error(bytes.toString('latin1')) : Buffer.from(bytes), end + size + 2);
    }
    case '*':
    case '~':
    case '%': {
      const count = length(type === '*' ? -1 : 0) * (type === '%' ? 2 : 1);
      return count < 0 ? scalar(type, null, end) : elements(buffer, type, count, end);
    }
    default:
      return malformed();
  }
}

function elements(buffer: Buffer, type: string, count: number, start: number): Parsed {
  const values: Plain[] = [];
  let at = start;
  for (let i = 0; i < count; i++) {
    const { reply, end } = parse(buffer, at);
    values.push(reply.value);
    at = end;
  }
  return scalar(type, values, at);
}
