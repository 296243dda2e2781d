/** One question to a server, or a Sentinel, on a connection of its own. */
import { inTime } from '../io/in-time.js';
import { Turn } from '../io/turn.js';
import type { Address, ClientTls } from '../plan/endpoint.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import { Connection } from './connection.js';
import { openSocket } from './open-socket.js';

/** What a connection says of itself before anything else. `username` is absent for password-only servers. */
export interface Credentials {
  readonly username?: string;
  readonly password: string;
}

/** Whether both are the same login, each perhaps of another client. */
export const isSameLogin = (a: Credentials | undefined, b: Credentials | undefined): boolean =>
  a?.username === b?.username && a?.password === b?.password;

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
  const connection = new Connection(await openSocket(address, tls, TIMEOUT_MS), new Turn());
  try {
    const login: Argument[][] =
      credentials === undefined
        ? []
        : [['AUTH', ...(credentials.username ? [credentials.username] : []), credentials.password]];
    const replies = await inTime(connection.askAll([...login, args]), TIMEOUT_MS, () => new Error('timed out'));
    const reply = replies.at(-1)!;
    // A wrong password shows in the question's own answer, but says less there.
    if (login.length > 0 && isError(replies[0]) && isError(reply)) throw new Error(text(replies[0]));
    return reply;
  } finally {
    connection.destroy();
  }
}
