/** The server to which clients connect: TCP, or TLS. With TLS it reads PROXY headers, which precede the handshake. */
import type { AddressInfo } from 'node:net';
import {
  createTcpServer,
  createTlsServer,
  type ListenOptions,
  type TcpServer,
  type TcpSocket,
  type TlsServer,
} from '../io/sockets.js';
import { after, clearTimer, nextTurn } from '../io/timers.js';
import type { ListenTls, ProxyProtocol } from '../plan/endpoint.js';
import { Networks } from '../plan/networks.js';
import { judge, readdress, type RefuseHeader } from './proxy-door.js';
import type { HeaderProblem, Peer } from './proxy-header.js';

/**
 * Maximum number of clients that wait to be accepted, because many connect at once after a restart. It is Linux's
 * default limit.
 */
const BACKLOG = 4096;

export interface ServerOptions {
  readonly tls: ListenTls | null;
  /** Null: connections begin without a PROXY header. Without TLS, a `ProxyDoor` reads the header. */
  readonly proxyProtocol: ProxyProtocol | null;
  readonly maxConnections: number;
  /** Maximum time for a TLS handshake, and for a PROXY header before it, in ms. */
  readonly handshakeMs: number;
}

export interface ServerEvents {
  connected(socket: TcpSocket): void;
  /** A connection beyond `maxConnections` was closed. */
  dropped(): void;
  /** A client was closed because its TLS handshake took too long. */
  late(): void;
  /** A connection was closed because of its PROXY header. */
  readonly refused: RefuseHeader;
}

export function newServer(options: ServerOptions, events: ServerEvents): TcpServer {
  const { tls, proxyProtocol } = options;
  const connected = (socket: TcpSocket): void => events.connected(socket);
  const server =
    tls === null
      ? createTcpServer(connected)
      : proxyProtocol === null
        ? newTlsServer(tls, options, events, connected)
        : newHeaderServer(tls, proxyProtocol, options, events);
  server.maxConnections = options.maxConnections;
  server.on('drop', () => events.dropped());
  return server;
}

function newTlsServer(
  tls: ListenTls,
  { handshakeMs }: Pick<ServerOptions, 'handshakeMs'>,
  events: ServerEvents,
  connected: (socket: TcpSocket) => void,
): TlsServer {
  const server = createTlsServer(
    {
      ...contextOf(tls),
      handshakeTimeout: handshakeMs,
      requestCert: tls.requireClientCert,
      rejectUnauthorized: tls.requireClientCert,
    },
    connected,
  );
  // Node reports a handshake that takes too long, but leaves the socket open.
  server.on('tlsClientError', (problem: NodeJS.ErrnoException, socket: TcpSocket) => {
    if (problem.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') events.late();
    socket.destroy();
  });
  return server;
}

/** A TCP server that reads the PROXY header of each connection, and gives what follows to a TLS server. */
function newHeaderServer(
  tls: ListenTls,
  protocol: ProxyProtocol,
  options: ServerOptions,
  events: ServerEvents,
): TcpServer {
  /** The clients behind load balancers, by the addresses of their sockets. */
  const peers = new Map<string, Peer>();
  const waiting = new Set<TcpSocket>();
  let isClosing = false;
  const behind = newTlsServer(tls, options, events, (socket) => {
    const peer = peers.get(endsOf(socket));
    if (peer !== undefined) readdress(socket, peer);
    // The address is unknown once the connection is lost.
    if (socket.remoteAddress === undefined) socket.destroy();
    else events.connected(socket);
  });
  const from = new Networks(protocol.from);
  const server = createTcpServer((socket) => {
    // The connection is lost already.
    if (socket.remoteAddress === undefined) return void socket.destroy();
    const ends = endsOf(socket);
    waiting.add(socket);
    socket.once('close', () => {
      waiting.delete(socket);
      peers.delete(ends);
    });
    readRaw(socket, protocol.mode === 'required', from, options.handshakeMs, {
      late: () => {
        socket.destroy();
        events.late();
      },
      read: (peer) => {
        waiting.delete(socket);
        if (peer !== null) peers.set(ends, peer);
        behind.emit('connection', socket);
      },
      refused: (...refusal) => {
        socket.destroy();
        if (!isClosing) events.refused(...refusal);
      },
    });
  });
  const close = server.close.bind(server);
  return Object.assign(server, {
    setSecureContext: behind.setSecureContext.bind(behind),
    // Nothing else would close a connection that has sent no header.
    close: (closed?: (problem?: Error) => void) => {
      isClosing = true;
      for (const socket of waiting) socket.destroy();
      return close(closed);
    },
  });
}

const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: TcpSocket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;

interface AfterHeader {
  /** @param peer null if the header names no client, or there is none */
  read(peer: Peer | null): void;
  readonly refused: RefuseHeader;
  /** The client has sent nothing, and no header is required. */
  late(): void;
}

/** Reads the header of a connection, and leaves in the socket what follows. */
function readRaw(
  socket: TcpSocket,
  isRequired: boolean,
  networks: Networks,
  deadlineMs: number,
  then: AfterHeader,
): void {
  const from = socket.remoteAddress!;
  const isTrusted = networks.has(from);
  let held: Buffer = Buffer.alloc(0);
  let isOver = false;
  const end = (): void => {
    isOver = true;
    clearTimer(timer);
    socket.off('readable', readable).off('end', ended).off('close', ended);
  };
  const refuse = (problem: HeaderProblem): void => {
    end();
    then.refused(problem, from);
  };
  const timer = after(deadlineMs, () =>
    // What had arrived by the deadline is read first.
    nextTurn(() => {
      if (isOver) return;
      if (isRequired || held.length > 0) return refuse('late');
      end();
      then.late();
    }),
  ).unref();
  const pass = (bytes: Buffer, at: number, peer: Peer | null): void => {
    end();
    if (at < bytes.length) socket.unshift(bytes.subarray(at));
    then.read(peer);
  };
  const readable = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    held = Buffer.concat([held, chunk]);
    const verdict = judge(held, isRequired, () => isTrusted);
    if (verdict === 'unfinished') return;
    if ('problem' in verdict) refuse(verdict.problem);
    else pass(held, verdict.length, verdict.peer);
  };
  const ended = (): void => {
    end();
    if (held.length > 0) then.refused('cut', from);
    socket.destroy();
  };
  socket.on('error', () => undefined);
  if (isRequired && !isTrusted) refuse('outside');
  else socket.on('readable', readable).on('end', ended).on('close', ended);
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
