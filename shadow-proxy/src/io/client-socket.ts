/** The connection of a client, as a session uses it: a socket of this thread, or a socket that a front thread owns. */
import type { Take } from './intake.js';
import type { TcpSocket } from './sockets.js';

/** A client whose host is down is noticed after about this time, as by Redis. */
const KEEP_ALIVE_MS = 300_000;

export interface ClientSocket extends Pick<
  TcpSocket,
  | 'remoteAddress'
  | 'remotePort'
  | 'localAddress'
  | 'localPort'
  | 'destroyed'
  | 'writable'
  | 'writableLength'
  | 'writableNeedDrain'
> {
  write(bytes: Buffer): unknown;
  /**
   * Writes `buffer[start, end)`. The caller may change the buffer afterwards. Absent if that would take a view and a
   * copy.
   */
  writeRange?(buffer: Buffer, start: number, end: number): void;
  cork(): void;
  uncork(): void;
  pause(): unknown;
  resume(): unknown;
  /** Sends what was written, and then closes this side. */
  end(): unknown;
  destroy(): unknown;
  /** Closes the socket as soon as everything written is sent. */
  destroySoon(): void;
  /** Emits `timeout` if nothing is sent for this number of milliseconds; 0: never. */
  setTimeout(ms: number): ClientSocket;
  on(event: ClientEvent, listener: () => void): ClientSocket;
  once(event: ClientEvent, listener: () => void): ClientSocket;
  off(event: ClientEvent, listener: () => void): ClientSocket;
}

/** `end`: the client has closed its side. */
export type ClientEvent = 'end' | 'close' | 'drain' | 'timeout';

/** Begins to read a client. The bytes are passed to `take`. */
export type Connect = (take: Take) => ClientSocket;

/** Settings of every client's connection. */
export function prepare(socket: TcpSocket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  socket.on('error', () => undefined);
  // Not earlier: a TLS handshake that is aborted must end with its connection.
  socket.allowHalfOpen = true;
}
