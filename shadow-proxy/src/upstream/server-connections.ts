/**
 * The connections to one server: how they are made, which there are, and what the server says of them. One is for
 * questions of the kit's own user: nothing else waits on it.
 */
import type { Address } from '../plan/endpoint.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
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

/** How long a look at the server's connections may take: on the connection of questions, and on a new one. */
const [GLANCE_MS, NEW_GLANCE_MS] = [150, 500];

/** The shard's lease at this server, without which no connection carries data. */
export interface ServerLease {
  readonly dialer: Dialer;
  /** The name of every connection that carries data: the next holder of the lease finds them by it. */
  readonly dataName: string;
  readonly connection: Connection | undefined;
  /** Resolves when the lease is held at that address and server now. @throws {Error} when it is not */
  confirm(address: Address | undefined, runId: string): Promise<void>;
  /** Takes the lease on a new connection, which may lead to another server. @throws {Error} when it is not held then */
  again(): Promise<void>;
}

/** A question that is still to be sent: about whom, and the answer. */
interface BlockedLook {
  readonly clientIds: Set<number>;
  readonly blocked: Promise<ReadonlySet<number>>;
}

export interface ConnectOptions {
  readonly db: number;
  readonly protocol: 2 | 3;
  readonly credentials: Credentials | undefined;
  /** A shared read buffer, for many connections that carry little. */
  readonly intake?: Intake;
  /** Ask which server is at the other end (`Connection.runId`). */
  readonly asksRunId?: boolean;
}

export interface ConnectionsContext {
  readonly side: Side;
  readonly lease: Pick<ServerLease, 'dialer' | 'dataName' | 'connection'>;
  readonly turn: Turn;
  /** The connection of questions is lost. */
  lost(): void;
  /** A connection without a login was made: whether it has to log in. */
  knocked(wantsPassword: boolean): void;
  /** The server refuses the kit's own user. */
  refused(reply: string): void;
}

export class ServerConnections {
  /** Connections that are not ready yet: a server that hangs may never answer them. */
  readonly #greeting = new Set<Connection>();
  /** All of this shard, without the lease's. */
  readonly #connections = new Set<Connection>();
  #control: Promise<Connection> | undefined;
  /** The connection of questions, where it is open. */
  #asking: Connection | undefined;
  /** A look on a connection of its own that has no answer yet. */
  #glancing: Promise<ReadonlyMap<number, string> | null> | undefined;
  /** The last question about connections that may block, and the one that is asked after it. */
  #look: Promise<unknown> = Promise.resolve();
  #nextLook: BlockedLook | undefined;
  /** How often it was closed: what was being opened before is not wanted any more. */
  #closed = 0;
  #ended = false;
  #address: Address | undefined;

  constructor(private readonly by: ConnectionsContext) {}

  /** The address that was connected to last, or that Sentinel names. */
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

  /** Asks on the connection of questions. */
  async ask(...args: Argument[]): Promise<Reply> {
    return (await this.#controlConnection()).ask(...args);
  }

  /** The open connections, the lease's among them. */
  list(): Connection[] {
    for (const connection of this.#connections) if (connection.ended) this.#connections.delete(connection);
    const { connection } = this.by.lease;
    return connection === undefined ? [...this.#connections] : [...this.#connections, connection];
  }

  /**
   * What the server says, by number, of connections that may be silent; asked on another connection, a new one where
   * need be. @returns null where it does not answer soon, or not that
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
    // One at a time: a server that hangs may answer it yet.
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
   * Ends a connection that was lost on our side only, and waits until the server does not know it any more: commands
   * may still sit in its receive buffer, and must not run after what we send next.
   * @throws {Error} when the server does not allow that, or the connection does not end
   */
  async kill(clientId: number): Promise<void> {
    if (clientId !== 0) await killClient((...args) => this.ask(...args), clientId, this.#dialer.label);
  }

  /**
   * The connections that block in a command now. While the server answers, further questions are gathered, and
   * go as one: KeyDB can end in a `CLIENT LIST` (docs/keydb.md).
   */
  blocked(clientIds: readonly number[]): Promise<ReadonlySet<number>> {
    const look = (this.#nextLook ??= this.#lookAfter(this.#look));
    for (const id of clientIds) look.clientIds.add(id);
    return look.blocked;
  }

  #lookAfter(before: Promise<unknown>): BlockedLook {
    const clientIds = new Set<number>();
    const blocked = before.then(async () => {
      this.#nextLook = undefined;
      const clients = await listClients((...args) => this.ask(...args), 'ID', ...clientIds);
      return new Set([...clients].filter(([, line]) => /\bflags=\w*b/.test(line)).map(([id]) => id));
    });
    this.#look = blocked.catch(() => undefined);
    return { clientIds, blocked };
  }

  /**
   * Has a connection's blocking command end as if its time were over, or with an error. False where it does not block,
   * or the server is busy; null where the server does not allow that.
   */
  async unblock(clientId: number, how: 'TIMEOUT' | 'ERROR' = 'TIMEOUT'): Promise<boolean | null> {
    const reply = await this.ask('CLIENT', 'UNBLOCK', clientId, how);
    if (isError(reply) && !text(reply).startsWith('BUSY ')) return null;
    return text(reply) === '1';
  }

  /** Ends those that are known to lead to another server than this one. */
  keepTo(runId: string): void {
    for (const connection of this.list())
      if (connection !== this.by.lease.connection && connection.runId !== '' && connection.runId !== runId)
        connection.destroy(new ConnectionLost('the address leads to another server now'));
  }

  /** Closes the connection of questions: the next question is asked where the address leads now. */
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

  /** Closes the connection of questions, and those that are being opened; the next question opens another. */
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
    const opening = this.connect({ db: 0, protocol: 2, credentials: this.#dialer.credentials });
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

/** The lines of the server's CLIENT LIST about connections; null where it does not even list the one that asks. */
async function linesOf(asking: Connection, about: readonly Connection[]): Promise<ReadonlyMap<number, string> | null> {
  const ids = [asking, ...about].map(({ clientId }) => clientId).filter((id) => id !== 0);
  const lines = await listClients((...args) => asking.ask(...args), 'ID', ...ids);
  return lines.has(asking.clientId) ? lines : null;
}
