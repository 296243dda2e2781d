/**
 * A client's own connection to a server, where it is subscribed: commands in, replies and messages out.
 *
 *   ask(frame) ──▶ server ──┬─ reply ────▶ who asked
 *                           └─ message ──▶ the client, as it is
 */
import type { Connection, ConnectionOwner } from '../upstream/connection.js';
import { ConnectionLost } from '../upstream/connection.js';
import { Intake } from '../io/intake.js';
import type { LaneIdentity } from '../pipeline/operation.js';
import type { Server } from '../upstream/server.js';
import { encodeCommand } from '../resp/encode.js';
import type { FrameReader } from '../resp/frame-reader.js';
import type { Side } from '../route/stage.js';

/** Takes `buffer[start, end)`, a whole frame. */
export type TakeFrame = (buffer: Buffer, start: number, end: number) => void;

export interface LinkEvents {
  readonly message: TakeFrame;
  lost(link: Link): void;
}

interface PendingRequest {
  /** How many replies are still to come; an error is the last one. */
  left: number;
  readonly each: TakeFrame;
  resolve(refusal: string | null): void;
  reject(reason: Error): void;
}

/** Bytes of the read buffer. Most subscribers are idle most of the time, and there may be many. */
const INTAKE_BYTES = 4096;

export class Link implements ConnectionOwner {
  /** While set, messages are dropped: the client gets them from the other server. */
  muted = false;
  readonly #pending: PendingRequest[] = [];

  private constructor(
    readonly side: Side,
    /** The protocol and the user of the connection. */
    public identity: LaneIdentity,
    private readonly connection: Connection,
    private readonly events: LinkEvents,
  ) {
    connection.attach(this);
  }

  /**
   * @throws {HandshakeRefused} with the server's own error; {Error} if the server cannot be reached
   */
  static async open(server: Server, identity: LaneIdentity, events: LinkEvents): Promise<Link> {
    const { protocol, credentials } = identity;
    return new Link(
      server.side,
      identity,
      await server.open({ db: 0, protocol, credentials, intake: new Intake(INTAKE_BYTES) }),
      events,
    );
  }

  get waits(): boolean {
    return this.#pending.length > 0;
  }

  get closed(): boolean {
    return this.connection.ended;
  }

  /**
   * Sends a command that is answered by `replies` replies, or by one error.
   * @returns the error, or null
   * @throws {ConnectionLost} if the connection ends first
   */
  ask(frame: Buffer, replies: number, each: TakeFrame): Promise<string | null> {
    if (this.closed) return Promise.reject(new ConnectionLost('not connected'));
    return new Promise((resolve, reject) => {
      this.#pending.push({ left: replies, each, resolve, reject });
      this.connection.outbox.addWhole(frame);
    });
  }

  /** Checks that the connection is alive. On a silent connection the subscriber would miss messages, and never know. */
  askForLife(): void {
    this.ask(PING, 1, () => undefined).catch(() => undefined);
  }

  close(): void {
    this.connection.destroy();
  }

  readable(reader: FrameReader): void {
    while (reader.next()) {
      const { buffer, start, end } = reader;
      if (isMessage(buffer, start)) {
        if (!this.muted) this.events.message(buffer, start, end);
        continue;
      }
      const [asked] = this.#pending;
      if (asked === undefined) throw new Error('the server sent a reply without a request');
      const refused = buffer[start] === MINUS;
      if (refused || --asked.left === 0) this.#pending.shift();
      asked.each(buffer, start, end);
      if (refused) asked.resolve(buffer.toString('latin1', start + 1, end - 2));
      else if (asked.left === 0) asked.resolve(null);
    }
  }

  lost(reason: Error): void {
    for (const { reject } of this.#pending.splice(0)) reject(reason);
    this.events.lost(this);
  }
}

/**
 * Whether a frame is a `message`, `pmessage` or `smessage`. No reply to a subscriber begins with a word of 7 or 8
 * letters.
 */
function isMessage(buffer: Buffer, start: number): boolean {
  const type = buffer[start];
  const length = buffer[start + 5];
  return (
    (type === STAR || type === PUSH) &&
    buffer[start + 4] === DOLLAR &&
    (length === SEVEN || length === EIGHT) &&
    buffer[start + 6] === CR
  );
}

const PING = encodeCommand(['PING']);
const [CR, DOLLAR, STAR, MINUS, SEVEN, EIGHT, PUSH] = [13, 36, 42, 45, 55, 56, 62];
