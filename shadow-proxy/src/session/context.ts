/** What a handler may use to answer the command at hand of one client. */
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
 * A handler answers with `reply` or `refuse`, sends with `lanes`, or has the command looked at again with
 * `flow.retryWhen`. As a sink, the context passes a server's reply on to the client.
 */
export interface CommandContext extends Sink {
  /** Who the client is, and what it has begun. */
  readonly client: ClientState;
  /** What all clients of the shard share. */
  readonly clients: Clients;
  /** The place of the command at hand in the read buffer, and of its arguments. */
  readonly parser: RequestParser;
  /** When the client is read on. */
  readonly flow: Flow;
  /** The lanes that carry its commands. */
  readonly lanes: ClientLanes;
  /** The command at hand, as a slice. */
  readonly command: Buffer;
  /** Whether its next command is refused, as far as is known, unless it logs in. */
  readonly mustLogIn: boolean;
  /** An argument of the command at hand; it is a slice, valid as long as its buffer. */
  argument(index: number): Buffer;
  /** A reply of the proxy's own, or of the server `from`: behind the replies that are in flight. */
  reply(bytes: Buffer, from?: Side): void;
  /** An error of the proxy's own: EXEC of an open transaction will refuse. */
  refuse(message: string): void;
  /** A server does not let the client in: its own error. */
  replyRefused(refused: HandshakeRefused): void;
  /** The reply of an operation that was carried in this client's name by other means. */
  deliver(operation: Operation, reply: Buffer): void;
  /** Passes a message on between the replies; a client that leaves too much unread is closed. */
  pass(buffer: Buffer, start: number, end: number): void;
  /** The server is asked whether it lets the client in, as when it connected. */
  admit(): void;
  /** Whether it has to log in may have changed. */
  checkLimits(): void;
  /** Answers what is in flight, then closes. */
  end(): void;
  /** The proxy has failed at a command of this client, which is closed. */
  failed(problem: unknown): void;
  /** Closes at once. What is already answered is still sent. */
  destroy(): void;
}

/** Answers the command at hand. */
export type Handler = (context: CommandContext, spec: CommandSpec) => void;
