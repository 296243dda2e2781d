/** One question to a server, or a Sentinel, on a connection of its own. */
import type { Address, ClientTls } from '../plan/endpoint.js';
import { decodeReply, isError, text, type Reply } from '../resp/decode.js';
import { encodeCommand, type Argument } from '../resp/encode.js';
import { FrameScanner } from '../resp/scan.js';
import { openSocket } from './open-socket.js';

/** What a connection says of itself before anything else. `username` is absent for password-only servers. */
export interface Credentials {
  readonly username?: string;
  readonly password: string;
}

const TIMEOUT_MS = 2_000;

/**
 * @returns the reply, which may be an error of the server
 * @throws {Error} where it does not answer in time, or refuses the login
 */
export async function askOnce(
  address: Address,
  tls: ClientTls | null,
  credentials: Credentials | undefined,
  ...args: Argument[]
): Promise<Reply> {
  const socket = await openSocket(address, tls, TIMEOUT_MS);
  return new Promise((resolve, reject) => {
    const scanner = new FrameScanner();
    let received = Buffer.alloc(0);
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('timed out')));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed the connection')));
    if (credentials) {
      const { username, password } = credentials;
      socket.write(encodeCommand(username ? ['AUTH', username, password] : ['AUTH', password]));
    }
    socket.write(encodeCommand(args));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      let at = 0;
      for (let skip = credentials ? 1 : 0; skip > 0; skip--) {
        const end = scanner.scan(received, at, received.length);
        if (end === -1) return;
        at = end;
      }
      if (scanner.scan(received, at, received.length) === -1) return;
      socket.destroy();
      const { reply } = decodeReply(received, at);
      // A wrong password shows in the question's own answer, but says less there.
      const login = credentials ? decodeReply(received).reply : null;
      if (login !== null && isError(login) && isError(reply)) reject(new Error(text(login)));
      else resolve(reply);
    });
  });
}
