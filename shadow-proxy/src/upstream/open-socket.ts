/** A socket to a server, over TCP or TLS. */
import { connectTcp, connectTls, type TcpSocket } from '../io/sockets.js';
import { after, clearTimer } from '../io/timers.js';
import type { Address, ClientTls } from '../plan/endpoint.js';

/**
 * A connection that is ready to write to; with `tls`, only after the peer's certificate was verified.
 * @throws {Error} if the connection is not open within `timeoutMs`, not TLS, or not verified
 */
export function openSocket({ host, port }: Address, tls: ClientTls | null, timeoutMs: number): Promise<TcpSocket> {
  return new Promise((resolve, reject) => {
    const socket = tls
      ? connectTls({ servername: isIp(host) ? undefined : host, ...tls, host, port })
      : connectTcp({ host, port });
    const late = (): string =>
      tls && !socket.connecting
        ? `${host}:${port} did not answer a TLS handshake within ${timeoutMs} ms: use the TLS port of the server`
        : `no connection to ${host}:${port} within ${timeoutMs} ms`;
    const timer = after(timeoutMs, () => socket.destroy(new Error(late())));
    const failed = (error: NodeJS.ErrnoException): void => {
      clearTimer(timer);
      // OpenSSL's error code for a first answer that is no TLS record, such as an error reply in plaintext.
      const plaintext = error.code === 'ERR_SSL_WRONG_VERSION_NUMBER';
      reject(plaintext ? new Error(`${host}:${port} does not speak TLS: use the TLS port of the server`) : error);
    };
    socket.once('error', failed);
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      clearTimer(timer);
      socket.off('error', failed);
      resolve(socket);
    });
  });
}

const isIp = (host: string): boolean => /^[\d.]+$|:/.test(host);
