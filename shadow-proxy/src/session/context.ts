/** What a handler may use to answer the command at hand. */
import type { Sequencer } from '../pipeline/sequencer.js';
import type { CommandSpec } from '../command/table.js';
import type { Operation, Sink } from '../pipeline/operation.js';
import type { RequestParser } from '../resp/request.js';
import type { Side } from '../route/stage.js';
import type { HandshakeRefused } from '../upstream/server.js';
import type { ClientLanes } from './client-lanes.js';
import type { ClientState } from './client-state.js';
import type { Clients } from './clients.js';
import type { Flow } from './flow.js';

/**
 * A handler answers with `reply` or `refuse`, sends with `lanes`, or has the command dispatched again with
 * `flow.retryWhen`. The context is also the sink of the server's replies to this client.
 */
export interface CommandContext extends Sink {
  /** The state of the client's connection. */
  readonly client: ClientState;
  /** The clients of the shard, and what they share. */
  readonly clients: Clients;
  /** The order of all operations of the shard. */
  readonly sequencer: Sequencer;
  /** The arguments of the command at hand, and where they are in the read buffer. */
  readonly parser: RequestParser;
  /** Decides when the client is read further. */
  readonly flow: Flow;
  /** The lanes that carry its commands. */
  readonly lanes: ClientLanes;
  /** The command at hand, as a slice. */
  readonly command: Buffer;
  /** Whether the client's next command is refused unless it logs in, as far as the proxy knows. */
  readonly mustLogIn: boolean;
  /** An argument of the command at hand: a slice, valid as long as its buffer. */
  argument(index: number): Buffer;
  /**
   * Answers the command at hand, after the replies in flight.
   * @param from the server that gave the reply; none if it is the proxy's own
   */
  reply(bytes: Buffer, from?: Side): void;
  /** Answers the command at hand with an error of the proxy. Inside a transaction EXEC will answer EXECABORT. */
  refuse(message: string): void;
  /** Answers with the server's own error, which refuses to log the client in. */
  replyRefused(refused: HandshakeRefused): void;
  /** Delivers the reply of an operation that was sent for this client by other means than its lanes. */
  deliver(operation: Operation, reply: Buffer): void;
  /** Passes on a message of a subscription, between the replies. A client that leaves too much unread is closed. */
  pass(buffer: Buffer, start: number, end: number): void;
  /** Asks the server whether it admits the client, as when the client connected. */
  admit(): void;
  /** Applies the limits again: whether the client must log in may have changed. */
  checkLimits(): void;
  /** Closes the client once all its commands in flight are answered. */
  end(): void;
  /** The proxy has thrown at a command of this client: the client is closed. */
  failed(problem: unknown): void;
  /** Closes the client at once. Replies that are ready are still sent. */
  destroy(): void;
}

/** Answers the command at hand. */
export type Handler = (context: CommandContext, spec: CommandSpec) => void;
