/**
 * What sockets bring, packed side by side in the order in which it came, so that the commands of a turn are one range
 * of one buffer: nothing has to be put together again to be sent on.
 *
 * A socket that allows it is read into one buffer that all share, and what came is moved behind what came before.
 * The stream's own way allocates 64 KiB for each read, and gives back what was not needed: at a command a read that is
 * a tenth of the proxy's time.
 */
import { Socket, type SocketConstructorOpts } from 'node:net';
import { copyBytes } from './copy-bytes.js';
import type { TcpSocket } from './sockets.js';

/** The most that one read can bring. */
const SCRATCH_BYTES = 64 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/** Takes `buffer[start, end)`: it stays as it is for the one that keeps it. */
export type Take = (buffer: Buffer, start: number, end: number) => void;

export class Intake {
  #buffer: Buffer = Buffer.alloc(0);
  #at = 0;

  /** @param bytes size of the buffers: one lives for as long as anything in it is kept */
  constructor(private readonly bytes = 2 * SCRATCH_BYTES) {}

  /** Moves `from[start, end)` behind what came before, and hands it to `take`. */
  add(from: Uint8Array, start: number, end: number, take: Take): void {
    const length = end - start;
    if (this.#at + length > this.#buffer.length) {
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(this.bytes, length));
      this.#at = 0;
    }
    const at = this.#at;
    copyBytes(from, start, end, this.#buffer, at);
    this.#at = at + length;
    take(this.#buffer, at, this.#at);
  }
}

/** A `Socket` as Node makes it: its handle can be given to another. */
interface Inside {
  _handle: { useUserBuffer?: unknown } | null;
  _server?: unknown;
  server?: unknown;
}

/**
 * Reads a connected socket through `intake`, and returns the one to use in its place. Node offers `onread` only to a
 * socket that is about to connect, not to one that a server accepted: this makes a second one over the same handle.
 * Where that cannot be (TLS, a simulated socket), the socket is read as a stream.
 */
export function readInto(intake: Intake, socket: TcpSocket, take: Take): TcpSocket {
  return readEach(
    socket,
    (bytes, length) => intake.add(bytes, 0, length, take),
    (chunk) => take(chunk, 0, chunk.length),
  );
}

/**
 * As `readInto`, for a reader that keeps none of the bytes: `received` has the first `length` of them for as long as it
 * runs. What is read as a stream is given to `streamed`.
 */
export function readEach(
  socket: TcpSocket,
  received: (bytes: Uint8Array, length: number) => void,
  streamed: (chunk: Buffer) => void = (chunk) => received(chunk, chunk.length),
): TcpSocket {
  const inside = socket as unknown as Inside;
  const { _handle: handle } = inside;
  if (socket.constructor !== Socket || typeof handle?.useUserBuffer !== 'function') {
    socket.on('data', streamed);
    return socket;
  }
  const callback = (length: number, bytes: Uint8Array): boolean => {
    received(bytes, length);
    return true;
  };
  const reading = new Socket({ handle, onread: { buffer: scratch, callback } } as SocketConstructorOpts);
  Object.assign(reading, { _server: inside._server, server: inside.server });
  inside._handle = null;
  return reading;
}
