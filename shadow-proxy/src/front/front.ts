/** A front accepts clients for the sequencing thread, and reads and writes their sockets. */
import type { TcpServer } from '../io/sockets.js';
import type { RefuseHeader } from './proxy-door.js';
import type { ServerOptions } from './tcp-server.js';
import type { ConnectionEvents } from './front-connections.js';

/** Bytes of each of the two rings of a front. */
export const RING_BYTES = 1 << 20;

export interface FrontEvents extends ConnectionEvents {
  /** A client was closed because its TLS handshake took too long. */
  late(): void;
  /** A client of a listener with TLS was closed because of its PROXY header. */
  readonly refused: RefuseHeader;
}

/** The address at which a front is to listen. */
export interface ListenAt {
  readonly host: string;
  readonly port: number;
  /**
   * A server that listens at the address already, if this front is the only one. The front takes its place, and closes
   * it.
   */
  readonly first: TcpServer | null;
}

export interface Front {
  /** @throws {Error} with the system's `code`, such as `EADDRINUSE` */
  listen(at: ListenAt): Promise<void>;
  renew(options: Pick<ServerOptions, 'tls' | 'maxConnections'>): void;
  /** Takes no new clients; resolves when the last one has left. */
  close(): Promise<void>;
}
