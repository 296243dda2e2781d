/** One question to a server, or a Sentinel, on a connection of its own. */
import { inTime } from '../io/in-time.js';
import { Turn } from '../io/turn.js';
import type { Address, ClientTls } from '../plan/endpoint.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import { Connection } from './connection.js';
import { openSocket } from './open-socket.js';

/** The login of a connection. `username` is absent for servers with a password only. */
export interface Credentials {
  readonly username?: string;
  readonly password: string;
}

/** Whether both are the same login; two clients may have it. */
export const isSameLogin = (a: Credentials | undefined, b: Credentials | undefined): boolean =>
  a?.username === b?.username && a?.password === b?.password;

const TIMEOUT_MS = 2_000;

/**
 * @returns the reply, which may be an error of the server
 * @throws {Error} if the server does not answer in time, or refuses the login
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
    // A wrong password also fails the question, with an error that says less.
    if (login.length > 0 && isError(replies[0]) && isError(reply)) throw new Error(text(replies[0]));
    return reply;
  } finally {
    connection.destroy();
  }
}
