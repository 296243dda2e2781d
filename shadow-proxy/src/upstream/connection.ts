/**
 * One connection to a server: bytes out once a turn, whole frames in.
 *
 * It is opened by `Server.open`, which asks the questions of the handshake through `ask`; then its owner
 * (a lane) takes the frames over with `attach`.
 */
import { FrameReader } from '../resp/reader.js';
import { decodeReply, type Reply } from '../resp/decode.js';
import { encodeCommand, type Argument } from '../resp/encode.js';
import { Intake, readInto } from '../io/intake.js';
import { Outbox } from '../io/outbox.js';
import type { TcpSocket } from '../io/sockets.js';
import type { Turn } from '../io/turn.js';

/** The connection ended, or could not be made, before what was asked of it was answered. */
export class ConnectionLost extends Error {
  readonly code = 'CONNECTION_LOST';
}

export interface ConnectionOwner {
  /** Whether replies are still to come. */
  readonly waits: boolean;
  /** Bytes came: consume the reader's whole frames. */
  readable(reader: FrameReader): void;
  /** The connection is closed; called once. */
  lost(reason: Error): void;
  /** Asks the server for any reply; where it is there, the connection carries little, and may be silent for long. */
  askForLife?(): void;
}

export class Connection {
  readonly outbox: Outbox;
  /** The server's number for this connection, 0 where the server would not tell. */
  clientId = 0;
  /** The run ID of the server at the other end; empty if it is unknown. */
  runId = '';
  /** Whether its user was let in; false for one without a login where a password is needed. */
  admitted = true;
  /** How often bytes have come. */
  chunks = 0;
  readonly #socket: TcpSocket;
  readonly #reader = new FrameReader();
  #owner: ConnectionOwner;
  #asked: Asked[] = [];
  #ended = false;

  constructor(connected: TcpSocket, turn: Turn, intake = new Intake()) {
    const socket = readInto(intake, connected, (chunk, start, end) => {
      this.chunks++;
      this.#reader.feed(chunk, start, end);
      try {
        this.#owner.readable(this.#reader);
      } catch (error) {
        this.destroy(error as Error);
      }
    });
    this.#socket = socket;
    this.outbox = new Outbox(turn, socket);
    this.#owner = { waits: false, readable: (reader) => this.#answer(reader), lost: () => undefined };
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 15_000);
    let failure: Error | undefined;
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('close', () => this.#end(failure ?? new Error('the server closed the connection')));
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Whether replies are still to come. */
  get waits(): boolean {
    return !this.#ended && (this.#asked.length > 0 || this.#owner.waits);
  }

  /** As its owner does it. */
  askForLife(): void {
    if (!this.#ended) this.#owner.askForLife?.();
  }

  /** Hands the frames from now on to `owner`. */
  attach(owner: ConnectionOwner): void {
    this.#owner = owner;
  }

  /** Calls `lost` when the connection ends; its answers stay with `ask`. */
  attachLost(lost: (reason: Error) => void): void {
    this.#owner = { waits: false, readable: (reader) => this.#answer(reader), lost };
  }

  /** Sends one command and waits for its reply; only while nobody is attached. */
  ask(...args: Argument[]): Promise<Reply> {
    return this.askFrame(encodeCommand(args));
  }

  /** Sends several commands in one write and waits for their replies; only while nobody is attached. */
  askAll(commands: readonly (readonly Argument[])[]): Promise<Reply[]> {
    if (commands.length === 0) return Promise.resolve([]);
    if (this.#ended) return Promise.reject(new ConnectionLost('not connected'));
    return new Promise((resolve, reject) => {
      const replies: Reply[] = [];
      const asked: Asked = {
        replies: 1,
        take: (buffer, start) =>
          void (replies.push(decodeReply(buffer, start).reply) === commands.length && resolve(replies)),
        reject,
      };
      for (const command of commands) {
        this.#asked.push(asked);
        this.outbox.addWhole(encodeCommand(command));
      }
    });
  }

  async askFrame(frame: Buffer): Promise<Reply> {
    return decodeReply(await this.askBytes(frame)).reply;
  }

  /** The reply to the command frame, or those to several commands, as they came. */
  askBytes(frame: Buffer, replies = 1): Promise<Buffer> {
    if (this.#ended) return Promise.reject(new ConnectionLost('not connected'));
    return new Promise((resolve, reject) => {
      this.#asked.push({ replies, take: (buffer, start, end) => resolve(buffer.subarray(start, end)), reject });
      this.outbox.addWhole(frame);
    });
  }

  destroy(reason?: Error): void {
    this.#socket.destroy(reason);
  }

  /** Calls `then` once the kernel has taken what was written. */
  onceDrained(then: () => void): void {
    this.#socket.once('drain', then);
  }

  get congested(): boolean {
    return this.#socket.writableNeedDrain;
  }

  #answer(reader: FrameReader): void {
    while (reader.next(this.#asked[0]?.replies)) {
      // The buffer stays valid after the next chunk: decoded replies keep slices of it.
      if (reader.buffer[reader.start] === PUSH) continue;
      this.#asked.shift()?.take(reader.buffer, reader.start, reader.end);
    }
  }

  #end(reason: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    const lost = new ConnectionLost(reason.message, { cause: reason });
    for (const asked of this.#asked.splice(0)) asked.reject(lost);
    this.#owner.lost(lost);
  }
}

/** Who waits for so many replies: `buffer[start, end)`. */
interface Asked {
  readonly replies: number;
  take(buffer: Buffer, start: number, end: number): void;
  reject(reason: Error): void;
}

const PUSH = '>'.charCodeAt(0);
