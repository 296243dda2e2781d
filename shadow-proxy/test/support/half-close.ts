/** A client that closes its side (`shutdown(SHUT_WR)`) and goes on reading. */
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

/**
 * Sends `bytes`, closes the sending side, and reads to the end, from `readMs` on. @throws when the other side does not
 * close within 20 s
 */
export function halfClose(
  port: number,
  bytes: Buffer,
  { ca, readMs = 0 }: { readonly ca?: Buffer; readonly readMs?: number } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const options = { port, host: '127.0.0.1', allowHalfOpen: true };
    const socket = ca === undefined ? connect(options) : connectTls({ ...options, ca });
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`still open after ${Buffer.concat(chunks).length} bytes`));
    }, 20_000);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', () => undefined);
    socket.on('end', () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(chunks).toString('latin1'));
    });
    socket.end(bytes);
    if (readMs > 0) {
      socket.pause();
      setTimeout(() => socket.resume(), readMs);
    }
  });
}
