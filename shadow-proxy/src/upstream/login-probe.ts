/**
 * Asks a server whether a new client without a login may run commands. A connection keeps the rights that it got when
 * it was opened. So the probe resets its connection with RESET for each question: one round trip. A second one, which
 * only the next question waits for, logs in again.
 *
 *   RESET (the user is `default` again, if that needs no password) ─ PING ─▶ NOAUTH? ─▶ HELLO AUTH SETNAME (the kit again)
 */
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import { ConnectionLost, type Connection } from './connection.js';
import type { Credentials } from './dialer.js';

export interface LoginProbeContext {
  /** A connection of the kit's own user. */
  connect(): Promise<Connection>;
  /** Whether a new connection without a login is refused. */
  probeAuth(): Promise<boolean>;
  readonly name: string;
  credentials(): Credentials | undefined;
}

const isNoAuth = (reply: Reply): boolean => isError(reply) && text(reply).startsWith('NOAUTH');

export class LoginProbe {
  #connection: Promise<Connection> | undefined;
  /** A question that is not sent yet. A later caller may share its answer. */
  #next: Promise<boolean> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  /** The last login, whether it succeeded or not. */
  #loggedIn: Promise<unknown> = Promise.resolve();
  /** How many times the probe was closed. A waiting question is not asked after that. */
  #closed = 0;
  /** The server lacks RESET (before Redis 6.2), or the kit's user may not send it. */
  #lacksReset = false;

  constructor(private readonly context: LoginProbeContext) {}

  /** Whether the server demands a password, by its answer after this call. @throws {Error} if it cannot be asked */
  needsPassword(): Promise<boolean> {
    if (this.#next !== undefined) return this.#next;
    const closed = this.#closed;
    const next: Promise<boolean> = this.#last.then(() => {
      if (this.#next === next) this.#next = undefined;
      if (closed !== this.#closed) throw new ConnectionLost('the server is considered down');
      return this.#ask();
    });
    this.#next = next;
    this.#last = next.catch(() => undefined).then(() => this.#loggedIn);
    return next;
  }

  async #ask(): Promise<boolean> {
    if (this.#lacksReset) return this.context.probeAuth();
    const connection = await this.#connected();
    const [reset, ping] = await connection.askAll([['RESET'], ['PING']]);
    // Redis 8.2 and newer do not answer a failed login while earlier replies are on their way: it is sent behind them.
    this.#loggedIn = this.#logIn(connection);
    if (isNoAuth(reset) || isNoAuth(ping)) return true;
    if (!isError(reset)) return false;
    this.#lacksReset = true;
    this.#disconnect();
    return this.context.probeAuth();
  }

  /** A server that refuses the login answers the next question all the same. */
  async #logIn(connection: Connection): Promise<void> {
    const { name } = this.context;
    const credentials = this.context.credentials();
    const login: Argument[] =
      credentials === undefined ? [] : ['AUTH', credentials.username ?? 'default', credentials.password];
    await connection.ask('HELLO', 2, ...login, 'SETNAME', name).catch(() => undefined);
  }

  #connected(): Promise<Connection> {
    if (this.#connection !== undefined) return this.#connection;
    const opening = this.context.connect();
    this.#connection = opening;
    const forget = (): void => {
      if (this.#connection === opening) this.#connection = undefined;
    };
    opening.then((connection) => connection.attachLost(forget), forget);
    return opening;
  }

  /** Unanswered questions fail. The next one is asked on another connection, perhaps to another server. */
  close(): void {
    this.#closed++;
    this.#next = undefined;
    this.#disconnect();
  }

  #disconnect(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    void connection?.then(
      (open) => open.destroy(),
      () => undefined,
    );
  }
}
