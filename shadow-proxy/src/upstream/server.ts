/**
 * One of a shard's two servers: how to connect to it, and who it is.
 *
 * Its identity matters: repairs copy from the authority only while it is still the process under which the keys were
 * last clean. So after each new connection, and before it is used, the run ID is asked for over the control connection.
 * If that showed another run ID than the new connection has, the new connection would be dead.
 *
 * Room: upstream: one server: connect, log in, identity, liveness, lost connections.
 * Called by: every room after it.
 * Calls: io, resp, route, plan, command, text.
 */
import { monotonicMs, unixMs } from '../io/clock.js';
import { nextTurn } from '../io/timers.js';
import { isError, text, type Reply, errorText } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import type { Side } from '../route/stage.js';
import { type Connection, ConnectionLost } from './connection.js';
import { missingOf } from './capabilities.js';
import type { Credentials, Dialer } from './dialer.js';
import { isNewer, newerServer, rdbVersionOf } from '../command/known.js';
import { softwareOf } from '../command/release.js';
import { HandshakeRefused, isSameUser, proxyRefuses, refusalOf } from './handshake.js';
import { changeOf, identityOf, isReplica, short, tooOld, type Identity, type KnownIdentity } from './identity.js';
import type { Login } from './login.js';
import { LoginProbe } from './login-probe.js';
import { KeyLosses } from './losses.js';
import { findDatabaseLimit, type DatabaseLimit } from './database-limit.js';
import { FenceUsers } from './fence-users.js';
import { parseInfo } from './info.js';
import { Privileges } from './privileges.js';
import { ServerClock } from './server-clock.js';
import { commandsIn } from './server-commands.js';
import { ServerTraits, type Traits } from './server-traits.js';
import { MOVED, ServerConnections, type ConnectOptions, type ServerLease } from './server-connections.js';
import type { Turn } from '../io/turn.js';

export { HandshakeRefused, parseInfo };

export interface OpenOptions extends ConnectOptions {
  /** Set for a client's connection. */
  readonly login?: Login;
}

export interface ServerEvents {
  /** The server behind the endpoint is known for the first time, or has another replication ID with the same data. */
  identified(server: Server): void;
  /** The server behind the endpoint may hold other data than before; `change` says why, as in "the source …". */
  replaced(server: Server, change: string): void;
  /** Why this server must not be used, by its run ID; null if it may. */
  refusal(server: Server, runId: string): string | null;
  /** `problem` has changed: why the server must not be used, or null. */
  usable(server: Server): void;
  /** The server is a replica, and was none at the last check, or was not checked before. */
  demoted(server: Server): void;
  /** The server's clock was read. */
  clockRead(server: Server): void;
  /** Clients must log in from now on, or need not any more. */
  passwordNeeded(server: Server): void;
  /** The server refuses writes because its memory is full. */
  full(server: Server): void;
  /** The server's clock was set by `byMs`: times to live end at another moment there than on the other server. */
  clockSet(server: Server, byMs: number): void;
}

/** How long after the last refusal for memory a server counts as full. */
const FULL_MS = 5_000;
/** The assumed `lua-time-limit` (since Redis 7 `busy-reply-threshold`) of a server that does not show it. */
const BUSY_AFTER_MS = 5_000;
export class Server {
  /** The identity at the last check; null before the first. */
  identity: Identity | null = null;
  /** Why the server must not be used although it answers; null if it may. */
  problem: string | null = null;
  up = false;
  /** The databases that the kit's user may select; null before the first check. */
  databaseLimit: DatabaseLimit | null = null;
  readonly #traits = new ServerTraits();
  #refusal: string | null = null;
  readonly connections: ServerConnections;
  readonly clock = new ServerClock();
  /** Keys that the server removed by itself. */
  readonly losses = new KeyLosses((...args) => this.ask(...args));
  readonly fence = new FenceUsers();
  readonly privileges = new Privileges(
    (...args) => this.ask(...args),
    (name) => this.fence.actual(name),
  );
  #fullUntil = 0;
  /** The run id under which `commands` was read. */
  #learnt = '';
  /** Whether the server was identified, and everything about it was learnt, once. */
  #isMet = false;
  /** The known identity, and since when it is known, in ms since 1970. */
  #known: KnownIdentity = { runId: '', replId: '' };
  #knownAt = 0;
  #identifying: Promise<void> | undefined;
  /** Set while questions follow the address to another server. */
  #following: Promise<void> | undefined;

  /** Functions that reject waiting calls when the server is closed: a server that hangs would never answer. */
  readonly #waiting = new Set<(reason: Error) => void>();

  #needsPassword = false;
  readonly #probe: LoginProbe;

  constructor(
    readonly side: Side,
    private readonly lease: ServerLease,
    turn: Turn,
    private readonly events: ServerEvents,
  ) {
    this.connections = new ServerConnections({
      side,
      lease,
      turn,
      lost: () => (this.up = false),
      knocked: (wantsPassword) => this.#setNeedsPassword(wantsPassword),
      refused: (reply) => this.#refused(reply),
    });
    this.#probe = new LoginProbe({
      connect: () => this.#connectHere(this.endpoint.credentials),
      probeAuth: () => this.#probeAuth(),
      name: this.name,
      credentials: () => this.endpoint.credentials,
    });
  }

  /** How long a script runs before the server answers BUSY to other clients, in ms; Infinity for never. */
  busyAfterMs = BUSY_AFTER_MS;
  /** Whether a client that has not logged in is refused, as far as is known. */
  get needsPassword(): boolean {
    return this.#needsPassword;
  }

  #setNeedsPassword(needed: boolean): void {
    if (needed === this.#needsPassword) return;
    this.#needsPassword = needed;
    this.events.passwordNeeded(this);
  }

  /**
   * Asks whether a new client must log in.
   * @throws {HandshakeRefused} while the server is down, {Error} if it cannot be asked
   */
  async askNeedsPassword(): Promise<boolean> {
    if (this.#refusal !== null) throw new HandshakeRefused(this.#refusal);
    const needed = await this.#untilClosed(this.#probe.needsPassword());
    this.#setNeedsPassword(needed);
    return needed;
  }

  /** Asks the same on a new connection, opened for this question. */
  async #probeAuth(): Promise<boolean> {
    await this.#glance(undefined, () => Promise.resolve());
    return this.#needsPassword;
  }

  /** Checks that the server accepts this user and password now. @throws {HandshakeRefused} if it does not */
  async verify(credentials: Credentials): Promise<void> {
    (await this.#untilClosed(this.#connectHere(credentials))).destroy();
  }

  /** Sets the error for callers that want a connection while the server is down; null ends it. */
  refuse(error: string | null): void {
    this.#refusal = error;
  }

  /** What the server is, which commands it has, and what follows from its release. */
  get traits(): Traits {
    return this.#traits;
  }

  get endpoint(): Dialer {
    return this.lease.dialer;
  }

  /** The run ID of the process that was seen last; empty before the first. */
  get runId(): string {
    return this.#known.runId;
  }

  /** The replication ID of the history that its data belong to; empty if it is unknown. */
  get replId(): string {
    return this.#known.replId;
  }

  /** The name of the kit's connections at the server. */
  get name(): string {
    return this.lease.dataName;
  }

  /**
   * A connection ready for use.
   * @throws {HandshakeRefused} with the server's error: wrong password, no such database, loading…
   * @throws {LeaseLost} if another process has taken the shard over
   * @throws {Error} if no connection can be opened
   */
  async open(options: OpenOptions): Promise<Connection> {
    const opening = this.#open(options);
    try {
      return await this.#untilClosed(opening);
    } catch (error) {
      opening.then(
        (connection) => connection.destroy(),
        () => undefined,
      );
      throw error;
    }
  }

  #untilClosed<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      work.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  async #open(options: OpenOptions): Promise<Connection> {
    if (this.#refusal !== null) throw new HandshakeRefused(this.#refusal);
    const connection = await this.#connect(options);
    try {
      // Other clients, which the server has admitted, may share the connection.
      if (!connection.admitted && options.login?.states[this.side] !== 'unauthenticated') {
        const refused = this.#refusedAs('NOAUTH Authentication required.');
        // A connection of the kit's own.
        if (options.login === undefined && this.endpoint.credentials === undefined) this.#refused(refused.reply);
        throw refused;
      }
      await this.identify();
      if (!this.#leadsHere(connection)) await this.#follow(connection);
      // The server did not give its run ID: the connection is taken to lead to the server that answers questions.
      if (connection.runId === '') connection.runId = this.runId;
      // Confirmed only now, when the connection has its name: by that, the next holder of the lease finds and kills it.
      await this.lease.confirm(this.connections.address, this.runId);
    } catch (error) {
      connection.destroy();
      throw error;
    }
    if (connection.ended) throw new ConnectionLost('the server closed the connection');
    return connection;
  }

  /** Connects, and asks where the connection leads if that is possible. */
  #connect(options: ConnectOptions): Promise<Connection> {
    const { credentials } = this.endpoint;
    // Otherwise the connection would keep the kit's own user.
    const mayAsk = credentials === undefined || isSameUser(options.credentials, credentials);
    return this.connections.connect({
      ...options,
      asksRunId: mayAsk || this.#traits.supported.names.has('reset'),
    });
  }

  /** Connects for questions of a user. @throws {HandshakeRefused} as `#follow` */
  async #connectHere(credentials: Credentials | undefined): Promise<Connection> {
    const connection = await this.#connect({ db: 0, protocol: 2, credentials });
    try {
      if (!this.#leadsHere(connection)) await this.#follow(connection);
    } catch (error) {
      connection.destroy();
      throw error;
    }
    return connection;
  }

  /**
   * Asks on a new connection, while the server is being identified.
   * @throws {HandshakeRefused} if it leads to another: the next check is made on another connection for questions
   */
  async #glance<T>(credentials: Credentials | undefined, ask: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#connect({ db: 0, protocol: 2, credentials });
    try {
      if (!this.#leadsHere(connection)) {
        void this.connections.closeControl();
        throw this.#severalServers(connection);
      }
      return await ask(connection);
    } finally {
      connection.destroy();
    }
  }

  #leadsHere({ runId }: Connection): boolean {
    return runId === '' || this.runId === '' || runId === this.runId;
  }

  /**
   * A new connection leads to another server than the one that answers questions: the address has changed, and open
   * connections still lead to the old server. From now on questions go to the new server, and connections to the old
   * one are closed.
   * @throws {HandshakeRefused} if the new server must not be used, or the address leads to either server
   */
  async #follow(connection: Connection): Promise<void> {
    this.#following ??= (async () => {
      await this.connections.closeControl();
      await this.identify();
    })().finally(() => (this.#following = undefined));
    await this.#following;
    if (!this.#leadsHere(connection)) throw this.#severalServers(connection);
  }

  #severalServers(connection: Connection): HandshakeRefused {
    const { side, endpoint } = this;
    const problem = `the address of the ${side}, ${endpoint.label}, leads to several servers (run IDs ${short(this.runId)} and ${short(connection.runId)}): give each shard's ${side} an address of one server`;
    this.#unusable(problem);
    return proxyRefuses(problem);
  }

  #refusedAs(reply: string): HandshakeRefused {
    return new HandshakeRefused(reply, this.side);
  }

  /**
   * Whether a new connection to the endpoint leads to another master than the connected server. The name may have moved
   * while open connections stay, as after a failover of ElastiCache.
   */
  async hasMoved(): Promise<boolean> {
    const { credentials } = this.endpoint;
    const connection = await this.connections.connect({ db: 0, protocol: 2, credentials });
    try {
      const [server, replication] = await connection.askAll([
        ['INFO', 'server'],
        ['INFO', 'replication'],
      ]);
      if (isError(server) || isError(replication) || this.identity === null) return false;
      const found = identityOf(parseInfo(text(server)), parseInfo(text(replication)));
      return found.runId !== '' && found.runId !== this.identity.runId && !isReplica(found);
    } finally {
      connection.destroy();
    }
  }

  /** Leaves the lease at the connected server. Until it is held again, no connection carries data. */
  leave(): void {
    void this.lease.regain().catch(() => undefined);
  }

  /** Asks the server as the kit's own user, on the connection for questions. */
  ask(...args: Argument[]): Promise<Reply> {
    return this.connections.ask(...args);
  }

  /**
   * Asks for the server's identity, and reports a server that may have other data than before.
   * @throws {HandshakeRefused} if it must not be used, or does not answer
   */
  async identify(): Promise<void> {
    const asked = monotonicMs();
    const [info, replication] = await Promise.all([this.ask('INFO', 'server'), this.ask('INFO', 'replication')]);
    if (isError(info)) {
      this.#refused(text(info));
      throw new HandshakeRefused(text(info));
    }
    const fields = parseInfo(text(info));
    const identity = identityOf(fields, isError(replication) ? new Map() : parseInfo(text(replication)));
    const version = fields.get('redis_version') ?? '';
    const refusal = this.events.refusal(this, identity.runId) ?? tooOld(this.side, version);
    this.#unusable(refusal);
    if (refusal !== null) {
      // The address may lead to another server by the next question.
      void this.connections.closeControl();
      throw proxyRefuses(refusal);
    }
    const setByMs = this.clock.read(Number(fields.get('server_time_usec')) / 1000, asked, monotonicMs());
    this.events.clockRead(this);
    this.#traits.version = version;
    this.up = true;
    const before = this.#known;
    const demoted = isReplica(identity) && (this.identity === null || !isReplica(this.identity));
    const change = changeOf(before, identity, unixMs() - this.#knownAt);
    if (before.runId !== identity.runId) this.privileges.close();
    this.identity = identity;
    this.#known = { runId: identity.runId, replId: identity.replId };
    this.#knownAt = unixMs();
    if (identity.runId !== '' && before.runId !== identity.runId) this.connections.keepTo(identity.runId);
    // The lease may have been taken while the address led to another server.
    const { connection: leased } = this.lease;
    if (leased !== undefined && !this.#leadsHere(leased)) leased.destroy(new ConnectionLost(MOVED));
    if (demoted) this.events.demoted(this);
    // Reported at once: a server that answers, and has lost its keys, must not count as clean for a moment.
    if (change !== null) this.events.replaced(this, change);
    if (identity.runId !== this.#learnt) await this.#learn(identity.runId, fields);
    const first = !this.#isMet;
    this.#isMet = true;
    if (change !== null) return;
    if (first || before.replId !== identity.replId) this.events.identified(this);
    else if (setByMs !== 0) this.events.clockSet(this, setByMs);
  }

  #refused(refusal: string): void {
    this.#unusable(refusalOf(this.side, this.endpoint, refusal));
  }

  #unusable(problem: string | null): void {
    if (problem !== null) this.up = false;
    if (problem === this.problem) return;
    this.problem = problem;
    this.events.usable(this);
  }

  /** As `identify`, with a check that begins after this call; calls of one turn share it. */
  reidentify(): Promise<void> {
    this.#identifying ??= new Promise<void>(nextTurn).then(() => {
      this.#identifying = undefined;
      return this.identify();
    });
    return this.#identifying;
  }

  async #learn(runId: string, fields: ReadonlyMap<string, string>): Promise<void> {
    // Also probes without a login: `needsPassword` is known from then on.
    const [reply, cpu, limit] = await Promise.all([
      this.connections.askBytes('COMMAND'),
      this.ask('INFO', 'cpu'),
      this.ask('CONFIG', 'GET', 'lua-time-limit'),
      this.#probeAuth(),
      this.findDatabaseLimit(),
    ]);
    const listed = commandsIn(reply);
    if (typeof listed === 'string') throw new HandshakeRefused(listed);
    // Only its answer shows a KeyDB.
    if (isError(cpu)) throw new HandshakeRefused(text(cpu));
    // The default, if the user may not CONFIG or the server does not know the setting. A value that is not positive
    // means never.
    const busyAfterMs = limit.items?.length === 2 ? Number(text(limit.items[1])) : BUSY_AFTER_MS;
    this.busyAfterMs = busyAfterMs > 0 ? busyAfterMs : Infinity;
    const traits = this.#traits;
    traits.isKeydb = isKeydb(parseInfo(text(cpu)));
    traits.software = softwareOf(fields, traits.isKeydb);
    traits.newer = newerServer(traits.software, isNewer(traits.software) ? await this.#rdbVersion() : null);
    this.#traits.supported.learn(listed);
    traits.missing = await missingOf((...args) => this.ask(...args));
    this.#learnt = runId;
    await this.losses.begin();
  }

  /** The RDB version of a payload that the server makes for a missing key; null if it refuses. */
  async #rdbVersion(): Promise<number | null> {
    const dump = await this.ask('FUNCTION', 'DUMP');
    return isError(dump) ? null : rdbVersionOf(dump.data);
  }

  /** Asks again which databases can be selected: a change of the user's rules may change that at any time. */
  async findDatabaseLimit(): Promise<void> {
    const configured = await this.ask('CONFIG', 'GET', 'databases');
    const count = configured.items?.length === 2 ? Number(text(configured.items[1])) : null;
    this.databaseLimit = await this.#glance(this.endpoint.credentials, (connection) =>
      findDatabaseLimit((...args) => connection.ask(...args), count),
    );
  }

  /**
   * Sets what an earlier process of the kit saw at that time (ms since 1970). A difference is reported at the next
   * check.
   */
  expect(known: KnownIdentity, at: number): void {
    this.#known = known;
    this.#knownAt = at;
  }

  /** Tries a client's password; resolves to the server's refusal, or null. */
  async authenticate(args: readonly string[]): Promise<string | null> {
    const reply = await this.askAs(undefined, 'AUTH', ...args);
    return isError(reply) ? errorText(reply) : null;
  }

  /** Asks as a client's user, on a new connection: no other command is ahead of the question. */
  askAs(credentials: Credentials | undefined, ...args: Argument[]): Promise<Reply> {
    return this.#askAs('client', credentials, args);
  }

  /** Asks as a client's user, whose rights a fence may have reduced. */
  askFenced(credentials: Credentials | undefined, ...args: Argument[]): Promise<Reply> {
    return this.#askAs('fenced', credentials, args);
  }

  async #askAs(
    as: 'client' | 'fenced',
    credentials: Credentials | undefined,
    args: readonly Argument[],
  ): Promise<Reply> {
    if (this.#refusal !== null) throw this.#refusedAs(this.#refusal);
    const connection = await this.#connectHere(credentials);
    try {
      const login = as === 'client' ? this.fence.loginFor(credentials) : null;
      if (login !== null && connection.admitted) await connection.ask('AUTH', login.username!, login.password);
      return await connection.ask(...args);
    } finally {
      connection.destroy();
    }
  }

  /**
   * The number of keys of each database that has any.
   * @throws {Error} if the server refuses, as one does that runs a long script: then its keys are not known
   */
  async databases(): Promise<Map<number, number>> {
    const reply = await this.ask('INFO', 'keyspace');
    if (isError(reply)) throw new Error(`${this.endpoint.label} refuses INFO: ${errorText(reply)}`);
    const found = new Map<number, number>();
    for (const [name, value] of parseInfo(text(reply))) {
      if (/^db\d+$/.test(name)) found.set(Number(name.slice(2)), Number(/keys=(\d+)/.exec(value)?.[1] ?? 0));
    }
    return found;
  }

  /** Keys in all databases. @throws {Error} as `databases` */
  async keyCount(): Promise<number> {
    return [...(await this.databases()).values()].reduce((sum, keys) => sum + keys, 0);
  }

  /** Whether the server has refused a write because its memory is full, in the last `FULL_MS`. */
  get full(): boolean {
    return monotonicMs() < this.#fullUntil;
  }

  /** The server has refused a write because its memory is full. */
  refusedForMemory(): void {
    const known = this.full;
    this.#fullUntil = monotonicMs() + FULL_MS;
    if (!known) this.events.full(this);
  }

  /** Closes for good: nothing connects any more. */
  async end(): Promise<void> {
    this.privileges.close();
    this.#probe.close();
    await this.connections.end();
  }

  /** Closes the connection for questions, and those that are being opened. The next question opens another. */
  async close(): Promise<void> {
    for (const reject of this.#waiting) reject(new ConnectionLost('the server is considered down'));
    this.#probe.close();
    await this.connections.close();
  }
}

/** Whether the server is a KeyDB, by its `INFO cpu`: an operator may have renamed the commands that only KeyDB has. */
export const isKeydb = (info: ReadonlyMap<string, string>): boolean => info.has('server_threads');
