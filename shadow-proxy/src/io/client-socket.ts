/** The connection of a client, as a session uses it: a socket of this thread, or one that a front thread owns. */
import type { Take } from './intake.js';
import type { TcpSocket } from './sockets.js';

/** A client whose host is down is noticed after about so long, as by Redis. */
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
  /** Writes `buffer[start, end)`, which may change afterwards; absent where that takes a view and a copy. */
  writeRange?(buffer: Buffer, start: number, end: number): void;
  cork(): void;
  uncork(): void;
  pause(): unknown;
  resume(): unknown;
  /** Sends what was written, and then the end. */
  end(): unknown;
  destroy(): unknown;
  /** Closes the socket as soon as everything written is sent. */
  destroySoon(): void;
  /** `timeout` is emitted where nothing is sent for so many milliseconds; 0: never. */
  setTimeout(ms: number): ClientSocket;
  on(event: ClientEvent, listener: () => void): ClientSocket;
  once(event: ClientEvent, listener: () => void): ClientSocket;
  off(event: ClientEvent, listener: () => void): ClientSocket;
}

/** `end`: the client has closed its side. */
export type ClientEvent = 'end' | 'close' | 'drain' | 'timeout';

/** Begins to read a client: what it sends is handed to `take`. */
export type Connect = (take: Take) => ClientSocket;

/** What every connection of a client is set to. */
export function prepare(socket: TcpSocket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  socket.on('error', () => undefined);
  // Not before: a TLS handshake that is aborted ends with its connection.
  socket.allowHalfOpen = true;
}
