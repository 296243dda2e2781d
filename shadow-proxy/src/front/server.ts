/** The server to which clients connect: TCP, or TLS. */
import type { AddressInfo } from 'node:net';
import {
  createTcpServer,
  createTlsServer,
  type ListenOptions,
  type TcpServer,
  type TcpSocket,
  type TlsServer,
} from '../io/sockets.js';
import type { ListenTls } from '../plan/endpoint.js';

/**
 * Maximum number of clients that wait to be accepted, because many connect at once after a restart. It is Linux's
 * default limit.
 */
const BACKLOG = 4096;

export interface ServerOptions {
  readonly tls: ListenTls | null;
  readonly maxConnections: number;
  /** Maximum time for a TLS handshake, in ms. */
  readonly handshakeMs: number;
}

export interface ServerEvents {
  connected(socket: TcpSocket): void;
  /** A connection beyond `maxConnections` was closed. */
  dropped(): void;
  /** A client was closed because its TLS handshake took too long. */
  late(): void;
}

export function newServer({ tls, maxConnections, handshakeMs }: ServerOptions, events: ServerEvents): TcpServer {
  const onClient = (socket: TcpSocket): void => events.connected(socket);
  const server =
    tls === null
      ? createTcpServer(onClient)
      : createTlsServer(
          {
            ...contextOf(tls),
            handshakeTimeout: handshakeMs,
            requestCert: tls.requireClientCert,
            rejectUnauthorized: tls.requireClientCert,
          },
          onClient,
        );
  server.maxConnections = maxConnections;
  server.on('drop', () => events.dropped());
  // Node reports a handshake that takes too long, but leaves the socket open.
  server.on('tlsClientError', (problem: NodeJS.ErrnoException, socket: TcpSocket) => {
    if (problem.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') events.late();
    socket.destroy();
  });
  return server;
}

/** Takes over a new limit, and a new certificate for later handshakes. */
export function renew(server: TcpServer, { tls, maxConnections }: Pick<ServerOptions, 'tls' | 'maxConnections'>): void {
  server.maxConnections = maxConnections;
  if (tls !== null && 'setSecureContext' in server) (server as TlsServer).setSecureContext(contextOf(tls));
}

/** @returns the port. @throws {Error} code `EADDRINUSE` if the address is in use */
export function listenAt(server: TcpServer, address: ListenOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ backlog: BACKLOG, ...address }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** A `Buffer` that came from another thread is only a `Uint8Array`. */
const contextOf = ({ cert, key, ca }: ListenTls): Pick<ListenTls, 'cert' | 'key' | 'ca'> => ({
  cert: Buffer.from(cert),
  key: Buffer.from(key),
  ca: ca && Buffer.from(ca),
});
