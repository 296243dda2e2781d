/**
 * One connection to a server: it writes once a turn, and reads whole frames.
 *
 * `Server.open` opens it, and does the handshake with `ask`. Then its owner (a lane) gets all frames, by `attach`.
 */
import { FrameReader } from '../resp/frame-reader.js';
import { decodeReply, type Reply } from '../resp/decode.js';
import { encodeCommand, type Argument } from '../resp/encode.js';
import { Intake, readInto } from '../io/intake.js';
import { Outbox } from '../io/outbox.js';
import type { TcpSocket } from '../io/sockets.js';
import type { Turn } from '../io/turn.js';

/** The connection was closed, or could not be opened, before all questions on it were answered. */
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
  /** Sends any command that has a reply. Implemented where a connection carries little, and may be silent for long. */
  askForLife?(): void;
}

export class Connection {
  readonly outbox: Outbox;
  /** The connection's client ID at the server; 0 if the server did not give it. */
  clientId = 0;
  /** The run ID of the server at the other end; empty if it is unknown. */
  runId = '';
  /** Whether the server admitted the connection's user. False without a login where a password is demanded. */
  admitted = true;
  /** Whether it was lost with questions unanswered: the server may still run these. */
  leftUnanswered = false;
  /** How many times bytes have arrived. */
  chunks = 0;
  readonly #socket: TcpSocket;
  readonly #reader = new FrameReader();
  #owner: ConnectionOwner;
  #asked: PendingQuestion[] = [];
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

  /** Calls the owner's function. */
  askForLife(): void {
    if (!this.#ended) this.#owner.askForLife?.();
  }

  /** Gives all further frames to `owner`. */
  attach(owner: ConnectionOwner): void {
    this.#owner = owner;
  }

  /** Calls `lost` when the connection is closed; replies still go to `ask`. */
  attachLost(lost: (reason: Error) => void): void {
    this.#owner = { waits: false, readable: (reader) => this.#answer(reader), lost };
  }

  /** Sends one command and waits for its reply. Only while no owner is attached. */
  ask(...args: Argument[]): Promise<Reply> {
    return this.askFrame(encodeCommand(args));
  }

  /** Sends several commands in one write and waits for their replies. Only while no owner is attached. */
  askAll(commands: readonly (readonly Argument[])[]): Promise<Reply[]> {
    if (commands.length === 0) return Promise.resolve([]);
    if (this.#ended) return Promise.reject(new ConnectionLost('not connected'));
    return new Promise((resolve, reject) => {
      const replies: Reply[] = [];
      const asked: PendingQuestion = {
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

  /** The bytes of the reply to the frame, or of the replies to its several commands. */
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
    this.leftUnanswered = this.#asked.length > 0;
    const lost = new ConnectionLost(reason.message, { cause: reason });
    for (const asked of this.#asked.splice(0)) asked.reject(lost);
    this.#owner.lost(lost);
  }
}

/** A caller that waits for `replies` replies; it gets `buffer[start, end)`. */
interface PendingQuestion {
  readonly replies: number;
  take(buffer: Buffer, start: number, end: number): void;
  reject(reason: Error): void;
}

const PUSH = '>'.charCodeAt(0);
