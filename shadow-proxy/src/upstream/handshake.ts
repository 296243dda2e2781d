/**
 * The handshake of a connection with a server, and how the server's list of connections is read, and connections are
 * killed.
 */
import { monotonicMs } from '../io/clock.js';
import { sleep } from '../io/timers.js';
import { isError, text, type Reply, errorText } from '../resp/decode.js';
import { printableBytes } from '../text/printable.js';
import type { Argument } from '../resp/encode.js';
import type { Side } from '../route/stage.js';
import type { Connection } from './connection.js';
import type { Credentials, Dialer } from './dialer.js';

/** The server refused the handshake; `reply` is its own error, for the client. */
export class HandshakeRefused extends Error {
  readonly code = 'HANDSHAKE_REFUSED';
  constructor(
    /** Each character is a byte. */
    readonly reply: string,
    /** Which server refused, if that is known. */
    readonly side?: Side,
    message = printableBytes(reply),
  ) {
    super(message);
  }
}

/** The proxy does not use the server: clients get an error with a code, as servers send it. */
export const proxyRefuses = (why: string): HandshakeRefused =>
  new HandshakeRefused(Buffer.from(`ERR shadow-proxy: ${why}`).toString('latin1'), undefined, why);

/** The server accepted the login and refused the database; `reply` is its own error. */
export class DatabaseRefused extends HandshakeRefused {
  constructor(
    reply: string,
    readonly db: number,
    side?: Side,
  ) {
    super(reply, side);
    this.message = `the ${side ?? 'server'} refuses database ${db}: ${printableBytes(reply)}`;
  }
}

/** The meaning of a server's refusal, for people. If the plan lacks a password, the text says so. */
export const refusalOf = (side: Side, { label, credentials }: Dialer, refusal: string): string =>
  credentials === undefined && refusal.startsWith('NOAUTH')
    ? `the ${side} ${label} requires a password, and the plan has none (${printableBytes(refusal)}): add it to the URL, or set passwordFile`
    : `the ${side} ${label} refuses: ${printableBytes(refusal)}`;

export type Ask = (...args: Argument[]) => Promise<Reply>;

/** How long to wait until a killed connection is seen to be closed. */
const KILL_TIMEOUT_MS = 5_000;

/**
 * Sends HELLO with the password, the protocol and the name; its reply has the connection's client ID.
 * @returns whether the server demands a password and none was given: every command will get this error
 * @throws {HandshakeRefused}
 */
export async function greet(
  connection: Connection,
  protocol: 2 | 3,
  credentials: Credentials | undefined,
  name: string,
): Promise<boolean> {
  const login = credentials ? ['AUTH', credentials.username ?? 'default', credentials.password] : [];
  const hello = await connection.ask('HELLO', protocol, ...login, 'SETNAME', name);
  if (hello.items) {
    for (let i = 0; i + 1 < hello.items.length; i += 2) {
      if (text(hello.items[i]) === 'id') connection.clientId = Number(text(hello.items[i + 1]));
    }
    return false;
  }
  const refused = text(hello);
  if (refused.startsWith('NOAUTH') && !credentials) return true;
  if (!/unknown command/i.test(refused) || protocol === 3) throw new HandshakeRefused(refused);
  if (credentials) {
    const auth = await connection.ask(
      'AUTH',
      ...(credentials.username ? [credentials.username] : []),
      credentials.password,
    );
    if (isError(auth)) throw new HandshakeRefused(text(auth));
  }
  const [id] = await Promise.all([connection.ask('CLIENT', 'ID'), connection.ask('CLIENT', 'SETNAME', name)]);
  if (!isError(id)) connection.clientId = Number(text(id));
  return false;
}

/**
 * Greets, and asks for the server's run ID. A client's user may not be allowed to ask, so the kit's own
 * user (`own`) does, before the connection becomes the client's.
 * @returns as `greet`; and the run ID, empty if the server does not show it
 * @throws {HandshakeRefused} also if the connection cannot become the client's again
 */
export async function greetAndAsk(
  connection: Connection,
  protocol: 2 | 3,
  credentials: Credentials | undefined,
  name: string,
  own: Credentials | undefined,
): Promise<{ readonly wantsPassword: boolean; readonly runId: string }> {
  // Redis 8.2 and newer do not answer a failed login while earlier replies are on their way: it is sent behind them.
  const asOwn = isSameUser(credentials, own) ? null : await askAsOwn(connection, own);
  const greeted = greet(connection, protocol, credentials, name);
  const asked = asOwn ?? connection.ask('INFO', 'server');
  const [wantsPassword, info] = await Promise.all([greeted, asked]);
  // Without HELLO, the login was sent after the question.
  const mustAskAgain = asOwn === null && isError(info) && !wantsPassword;
  return { wantsPassword, runId: runIdIn(mustAskAgain ? await connection.ask('INFO', 'server') : info) };
}

async function askAsOwn(connection: Connection, own: Credentials | undefined): Promise<Reply> {
  if (own === undefined) return connection.ask('INFO', 'server');
  const [, info, reset] = await connection.askAll([
    ['HELLO', 2, 'AUTH', own.username ?? 'default', own.password],
    ['INFO', 'server'],
    ['RESET'],
  ]);
  if (isError(reset)) throw new HandshakeRefused(text(reset));
  return info;
}

export const isSameUser = (one: Credentials | undefined, other: Credentials | undefined): boolean =>
  one?.password === other?.password && (one?.username ?? 'default') === (other?.username ?? 'default');

/** @param info the reply to `INFO server` @returns the run ID; empty if there is none */
export const runIdIn = (info: Reply): string => (isError(info) ? '' : (/run_id:(\w+)/.exec(text(info))?.[1] ?? ''));

/** During a failover Sentinel may still name the old master, which is a replica by then. @throws {Error} */
export async function requireMaster(connection: Connection, label: string): Promise<void> {
  const role = await connection.ask('ROLE');
  if (role.items && text(role.items[0]) !== 'master')
    throw new Error(`${label} is a ${errorText(role.items[0])}, not a master: waiting until the failover ends`);
}

/** The highest client ID, which no client has. */
export const NOBODY = '9223372036854775807';

/** The server's connections: a line of `field=value` for each client ID. @throws {HandshakeRefused} */
export async function listClients(ask: Ask, ...filter: Argument[]): Promise<Map<number, string>> {
  const reply = await ask('CLIENT', 'LIST', ...filter);
  if (isError(reply)) throw new HandshakeRefused(text(reply));
  const lines = text(reply).split('\n').filter(Boolean);
  return new Map(lines.map((line) => [Number(/\bid=(\d+)/.exec(line)?.[1]), line]));
}

/** A field of such a line; empty if the line has none. */
export const clientField = (line: string, name: string): string =>
  new RegExp(`(?:^| )${name}=(\\S*)`).exec(line)?.[1] ?? '';

/**
 * Kills a connection, and waits until the server does not list it any more: commands in its receive buffer must not run
 * after the proxy's next ones.
 * @throws {Error} if the server does not allow that, or the connection does not end
 */
export async function killClient(ask: Ask, id: number, label: string): Promise<void> {
  const deadline = monotonicMs() + KILL_TIMEOUT_MS;
  const killed = await ask('CLIENT', 'KILL', 'ID', id);
  if (isError(killed)) throw new HandshakeRefused(text(killed));
  while ((await listClients(ask, 'ID', id)).has(id)) {
    if (monotonicMs() > deadline) throw new Error(`connection ${id} is still open at ${label} after CLIENT KILL`);
    await sleep(5);
  }
}
