/**
 * The connections to one server: it opens them, lists them, and reads what the server says about them. One connection
 * is for questions of the kit's own user; nothing else uses it.
 */
import type { Address } from '../plan/endpoint.js';
import { isError, text, type Reply } from '../resp/decode.js';
import { encodeCommand, type Argument } from '../resp/encode.js';
import type { Side } from '../route/stage.js';
import { inTime } from '../io/in-time.js';
import type { Intake } from '../io/intake.js';
import type { Turn } from '../io/turn.js';
import { Connection, ConnectionLost } from './connection.js';
import type { Credentials, Dialer } from './dialer.js';
import { refusesDatabase } from './database-limit.js';
import {
  DatabaseRefused,
  greet,
  greetAndAsk,
  HandshakeRefused,
  killClient,
  listClients,
  requireMaster,
} from './handshake.js';

/**
 * How long the question about the server's connections may take, in ms: on the connection for questions, and on a new
 * one.
 */
const [GLANCE_MS, NEW_GLANCE_MS] = [150, 500];

/** The shard's lease at this server, without which no connection carries data. */
export interface ServerLease {
  readonly dialer: Dialer;
  /** The name of every connection that carries data. By it, the next holder of the lease finds and kills them. */
  readonly dataName: string;
  readonly connection: Connection | undefined;
  /** Resolves when the lease is held at that address and server now. @throws {Error} if it is not */
  confirm(address: Address | undefined, runId: string): Promise<void>;
  /**
   * Takes the lease on a new connection, which may lead to another server.
   * @throws {Error} if the lease is not held then
   */
  regain(): Promise<void>;
}

/** A question that is not sent yet: which connections it is about, and the promise of its answer. */
interface BlockedQuestion {
  readonly clientIds: Set<number>;
  readonly blocked: Promise<ReadonlySet<number>>;
}

export interface ConnectOptions {
  readonly db: number;
  readonly protocol: 2 | 3;
  readonly credentials: Credentials | undefined;
  /** A shared read buffer, for many connections that carry little. */
  readonly intake?: Intake;
  /** Whether to ask for the server's run ID (`Connection.runId`). */
  readonly asksRunId?: boolean;
}

export interface ConnectionsContext {
  readonly side: Side;
  readonly lease: Pick<ServerLease, 'dialer' | 'dataName' | 'connection'>;
  readonly turn: Turn;
  /** The connection for questions is lost. */
  lost(): void;
  /** A connection without a login was opened: whether it has to log in. */
  knocked(wantsPassword: boolean): void;
  /** The server refuses the kit's own user. */
  refused(reply: string): void;
}

/** Why a connection is closed that leads to another server than the one that answers questions. */
export const MOVED = 'the address leads to another server now';

export class ServerConnections {
  /** Connections whose handshake is not finished: a server that hangs may never answer them. */
  readonly #greeting = new Set<Connection>();
  /** All connections of this shard, without the lease's. */
  readonly #connections = new Set<Connection>();
  #control: Promise<Connection> | undefined;
  /** The open connection for questions. */
  #asking: Connection | undefined;
  /** The open question on a connection of its own. */
  #glancing: Promise<ReadonlyMap<number, string> | null> | undefined;
  /** The last question about blocked connections, and the one that is asked after it. */
  #lastQuestion: Promise<unknown> = Promise.resolve();
  #nextQuestion: BlockedQuestion | undefined;
  /** How many times the connections were closed. A connection that was being opened before that is dropped. */
  #closed = 0;
  #ended = false;
  #address: Address | undefined;

  constructor(private readonly by: ConnectionsContext) {}

  /** The address of the last connection, or the one that Sentinel names. */
  get address(): Address | undefined {
    return this.#address;
  }

  /** Sentinel has chosen the master at this address. */
  follow(address: Address): void {
    this.#address = address;
  }

  /** Closed for good. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Asks on the connection for questions. */
  async ask(...args: Argument[]): Promise<Reply> {
    return (await this.#controlConnection()).ask(...args);
  }

  /** As `ask`, with the bytes of the reply. */
  async askBytes(...args: Argument[]): Promise<Buffer> {
    return (await this.#controlConnection()).askBytes(encodeCommand(args));
  }

  /** The open connections, the lease's among them. */
  list(): Connection[] {
    for (const connection of this.#connections) if (connection.ended) this.#connections.delete(connection);
    const { connection } = this.by.lease;
    return connection === undefined ? [...this.#connections] : [...this.#connections, connection];
  }

  /**
   * The server's lines about connections that may be silent, by client ID. They are asked for on another connection, if
   * necessary a new one.
   * @returns null if the server does not answer soon, or not this question
   */
  async glance(silent: readonly Connection[]): Promise<ReadonlyMap<number, string> | null> {
    const control = this.#asking;
    type Lines = ReadonlyMap<number, string> | null;
    const soon = (lines: Promise<Lines>, ms: number): Promise<Lines> =>
      inTime(lines, ms, () => new Error('no answer')).catch(() => null);
    if (control !== undefined && !control.ended && !silent.includes(control)) {
      const lines = await soon(linesOf(control, silent), GLANCE_MS);
      if (lines !== null) return lines;
    }
    // One at a time: a server that hangs may still answer it.
    this.#glancing ??= this.#glanceBeside(silent).finally(() => (this.#glancing = undefined));
    return soon(this.#glancing, NEW_GLANCE_MS);
  }

  async #glanceBeside(silent: readonly Connection[]): Promise<ReadonlyMap<number, string> | null> {
    const connection = await this.connect({ db: 0, protocol: 2, credentials: this.#dialer.credentials });
    try {
      return await linesOf(connection, silent);
    } finally {
      connection.destroy();
    }
  }

  /**
   * Kills a connection that was lost only at the proxy's end, and waits until the server does not list it any more:
   * commands in its receive buffer must not run after the proxy's next ones.
   * @throws {Error} if the server does not allow that, or the connection does not end
   */
  async kill(clientId: number): Promise<void> {
    if (clientId !== 0) await killClient((...args) => this.ask(...args), clientId, this.#dialer.label);
  }

  /**
   * The connections that are blocked in a command now. While the server answers, further questions are gathered and
   * sent as one: KeyDB can crash in a `CLIENT LIST` (docs/keydb.md).
   */
  blocked(clientIds: readonly number[]): Promise<ReadonlySet<number>> {
    const question = (this.#nextQuestion ??= this.#askBlockedAfter(this.#lastQuestion));
    for (const id of clientIds) question.clientIds.add(id);
    return question.blocked;
  }

  #askBlockedAfter(before: Promise<unknown>): BlockedQuestion {
    const clientIds = new Set<number>();
    const blocked = before.then(async () => {
      this.#nextQuestion = undefined;
      const clients = await listClients((...args) => this.ask(...args), 'ID', ...clientIds);
      return new Set([...clients].filter(([, line]) => /\bflags=\w*b/.test(line)).map(([id]) => id));
    });
    this.#lastQuestion = blocked.catch(() => undefined);
    return { clientIds, blocked };
  }

  /**
   * Ends a connection's blocking command, with nil or with an error.
   * @returns false if the connection is not blocked, or the server is busy; null if the server does not allow that
   */
  async unblock(clientId: number, how: 'TIMEOUT' | 'ERROR' = 'TIMEOUT'): Promise<boolean | null> {
    const reply = await this.ask('CLIENT', 'UNBLOCK', clientId, how);
    if (isError(reply) && !text(reply).startsWith('BUSY ')) return null;
    return text(reply) === '1';
  }

  /** Closes connections that are known to lead to another server. */
  keepTo(runId: string): void {
    for (const connection of this.list())
      if (connection !== this.by.lease.connection && connection.runId !== '' && connection.runId !== runId)
        connection.destroy(new ConnectionLost(MOVED));
  }

  /** Closes the connection for questions: the next question goes to the server to which the address leads then. */
  async closeControl(): Promise<void> {
    const control = this.#control;
    this.#control = undefined;
    await control?.then(
      (connection) => connection.destroy(),
      () => undefined,
    );
  }

  /** Closes for good: nothing connects any more. */
  end(): Promise<void> {
    this.#ended = true;
    return this.close();
  }

  /** Closes the connection for questions, and those that are being opened. The next question opens another. */
  async close(): Promise<void> {
    this.#closed++;
    for (const connection of this.#greeting) connection.destroy();
    await this.closeControl();
  }

  get #dialer(): Dialer {
    return this.by.lease.dialer;
  }

  #controlConnection(): Promise<Connection> {
    if (this.#control) return this.#control;
    const opening = this.#openControl();
    this.#control = opening;
    const forget = (): void => {
      this.by.lost();
      if (this.#control === opening) this.#control = undefined;
    };
    opening.then((connection) => {
      this.#asking = connection;
      connection.attachLost(forget);
    }, forget);
    return opening;
  }

  /** Nothing that was asked on the connection before runs later than what is asked on this one. */
  async #openControl(): Promise<Connection> {
    const before = this.#asking;
    const { credentials, label } = this.#dialer;
    const connection = await this.connect({ db: 0, protocol: 2, credentials, asksRunId: true });
    const mayRun = before?.leftUnanswered === true && before.runId !== '' && before.runId === connection.runId;
    if (!mayRun || before.clientId === 0) return connection;
    try {
      await killClient((...args) => connection.ask(...args), before.clientId, label);
    } catch (problem) {
      if (!(problem instanceof HandshakeRefused)) {
        connection.destroy();
        throw problem;
      }
    }
    return connection;
  }

  /** Connects and logs in. @throws {HandshakeRefused} {ConnectionLost} {Error} */
  async connect({ db, protocol, credentials, intake, asksRunId = false }: ConnectOptions): Promise<Connection> {
    const dialer = this.#dialer;
    const closed = this.#closed;
    const address = await dialer.resolve();
    const socket = await dialer.connect(address);
    if (this.#ended || closed !== this.#closed) {
      socket.destroy();
      throw new ConnectionLost(this.#ended ? 'the shard is closed' : 'the server is considered down');
    }
    this.#address = address;
    const connection = new Connection(socket, this.by.turn, intake);
    this.#greeting.add(connection);
    this.#connections.add(connection);
    try {
      const name = this.by.lease.dataName;
      const { wantsPassword, runId } = asksRunId
        ? await greetAndAsk(connection, protocol, credentials, name, dialer.credentials)
        : { wantsPassword: await greet(connection, protocol, credentials, name), runId: '' };
      connection.runId = runId;
      connection.admitted = !wantsPassword;
      if (credentials === undefined) this.by.knocked(wantsPassword);
      if (db !== 0) {
        const selected = await connection.ask('SELECT', db);
        if (isError(selected)) throw refusalOfDatabase(text(selected), db, this.by.side);
      }
      if (dialer.followsMaster) await requireMaster(connection, dialer.label);
      return connection;
    } catch (error) {
      connection.destroy();
      if (!(error instanceof HandshakeRefused) || error instanceof DatabaseRefused) throw error;
      const ours = credentials !== undefined && credentials === dialer.credentials;
      if (ours && /^(NOAUTH|WRONGPASS|NOPERM)/.test(error.reply)) this.by.refused(error.reply);
      throw new HandshakeRefused(error.reply, this.by.side);
    } finally {
      this.#greeting.delete(connection);
    }
  }
}

const refusalOfDatabase = (refusal: string, db: number, side: Side): HandshakeRefused =>
  refusesDatabase(refusal) ? new DatabaseRefused(refusal, db, side) : new HandshakeRefused(refusal);

/** The lines about connections in the server's CLIENT LIST; null if it does not even list the connection that asks. */
async function linesOf(asking: Connection, about: readonly Connection[]): Promise<ReadonlyMap<number, string> | null> {
  const ids = [asking, ...about].map(({ clientId }) => clientId).filter((id) => id !== 0);
  const lines = await listClients((...args) => asking.ask(...args), 'ID', ...ids);
  return lines.has(asking.clientId) ? lines : null;
}
