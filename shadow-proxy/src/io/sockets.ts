/** Connections to servers, and listeners for clients. */
import type { ConnectionOptions, TlsOptions } from 'node:tls';
import { world, type SocketAddress, type TcpServer, type TcpSocket, type TlsServer, type TlsSocket } from './world.js';

export type { ListenOptions, TcpServer, TcpSocket, TlsServer, TlsSocket } from './world.js';

/** Emits `connect`, or `error`. */
export const connectTcp = (to: SocketAddress): TcpSocket => world.connectTcp(to);

/** Emits `secureConnect` when the peer's certificate was verified, or `error`. */
export const connectTls = (to: SocketAddress & ConnectionOptions): TlsSocket => world.connectTls(to);

export const createTcpServer = (connected: (socket: TcpSocket) => void): TcpServer => world.createTcpServer(connected);

/** `connected` is called after the handshake. */
export const createTlsServer = (options: TlsOptions, connected: (socket: TcpSocket) => void): TlsServer =>
  world.createTlsServer(options, connected);
