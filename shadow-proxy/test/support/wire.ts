/** A client made of bytes: what is sent is the test's choice, and replies are shown as the frames that came. */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { encodeCommand, type Argument } from '../../src/resp/encode.js';
import { FrameReader } from '../../src/resp/frame-reader.js';
import { patienceMs } from './patience.js';

const REPLY_MS = 20_000;

export interface WireOptions {
  readonly host?: string;
  readonly port: number;
  readonly tls?: ConnectionOptions;
}

export class Wire {
  /** Resolves when the other side has closed, or the connection failed. */
  readonly closed: Promise<void>;
  readonly #reader = new FrameReader();
  readonly #frames: string[] = [];
  readonly #waiting: { readonly count: number; resolve(frames: string[]): void; reject(error: Error): void }[] = [];
  #ended = false;

  private constructor(readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      this.#reader.feed(chunk);
      while (this.#reader.next())
        this.#frames.push(this.#reader.buffer.toString('latin1', this.#reader.start, this.#reader.end - 2));
      this.#serve();
    });
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      const end = (): void => {
        this.#ended = true;
        this.#serve();
        resolve();
      };
      socket.on('end', end);
      socket.on('close', end);
    });
  }

  /** @throws when there is no connection to be had */
  static open({ host = '127.0.0.1', port, tls }: WireOptions): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = tls ? connectTls({ host, port, ...tls }) : connectTcp({ host, port });
      socket.once('error', reject);
      socket.once(tls ? 'secureConnect' : 'connect', () => resolve(new Wire(socket)));
    });
  }

  /** On a connection that is open. */
  static over(socket: Socket): Wire {
    return new Wire(socket);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Whole frames that came and were not asked for yet. */
  get unread(): readonly string[] {
    return this.#frames;
  }

  send(...args: readonly Argument[]): void {
    this.socket.write(encodeCommand(args));
  }

  sendBytes(bytes: Buffer | string): void {
    this.socket.write(bytes);
  }

  /**
   * The next `count` frames, as latin1 text without the last line break.
   * @param ms as long as it may take on a quiet machine
   * @throws when the connection ends first, or after that time
   */
  frames(count: number, ms = REPLY_MS): Promise<string[]> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(
          new Error(
            `${this.#frames.length} of ${count} replies within ${ms} ms: ${this.#frames.slice(0, 3).join(' | ').slice(0, 300)}`,
          ),
        );
      }, patienceMs(ms));
      const settled =
        <T>(then: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer);
          then(value);
        };
      const waiter = { count, resolve: settled(resolve), reject: settled(reject) };
      this.#waiting.push(waiter);
      this.#serve();
    });
  }

  async frame(ms?: number): Promise<string> {
    return (await this.frames(1, ms))[0];
  }

  /** Sends one command and waits for one frame. */
  ask(...args: readonly Argument[]): Promise<string> {
    this.send(...args);
    return this.frame();
  }

  /** Sends all commands in one write, and waits for a frame each. */
  pipeline(commands: readonly (readonly Argument[])[], ms?: number): Promise<string[]> {
    this.socket.write(Buffer.concat(commands.map(encodeCommand)));
    return this.frames(commands.length, ms);
  }

  /** Disconnects at once. */
  destroy(): void {
    this.socket.destroy();
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      const [{ count, resolve, reject }] = this.#waiting;
      if (this.#frames.length < count && !this.#ended) return;
      this.#waiting.shift();
      if (this.#frames.length >= count) resolve(this.#frames.splice(0, count));
      else
        reject(
          new Error(
            `the connection was closed; ${this.#frames.length} of ${count} replies had come: ${this.#frames.join(' | ').slice(0, 300)}`,
          ),
        );
    }
  }
}

/** Runs `body` with a connection to the port, and closes it. */
export async function withWire<T>(port: number, body: (wire: Wire) => Promise<T>): Promise<T> {
  const wire = await Wire.open({ port });
  try {
    return await body(wire);
  } finally {
    wire.destroy();
  }
}
