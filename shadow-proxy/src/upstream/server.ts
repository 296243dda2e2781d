/**
 * One of a shard's two servers: how to connect to it, and who it is.
 *
 * Who it is matters: heal and repair copy from the authority only while it is still the process under which
 * the keys were last clean. So each new connection is followed by a look at the server's run id, over the
 * control connection, before the connection is used: were it a different process than the one connected to,
 * the connection would be dead.
 *
 * Room: upstream: one server: connect, log in, identity, liveness, lost connections.
 * Called by: every room after it.
 * Calls: io, resp, route, plan, command.
 */
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import type { Address } from '../plan/endpoint.js';
import { commandCategories, supportedCommands, type CommandSpec } from '../command/table.js';
import type { Side } from '../route/stage.js';
import { Connection, ConnectionLost } from './connection.js';
import type { Credentials, Dialer } from './dialer.js';
import { greet, HandshakeRefused, killClient, listClients, refusalOf, requireMaster } from './handshake.js';
import { changeOf, identityOf, isReplica, type Identity, type KnownIdentity } from './identity.js';
import { inTime } from '../io/in-time.js';
import type { Intake } from '../io/intake.js';
import type { Login } from './login.js';
import { LoginProbe } from './login-probe.js';
import { KeyLosses } from './losses.js';
import { Privileges } from './privileges.js';
import type { Turn } from '../io/turn.js';

export { HandshakeRefused };

export interface OpenOptions {
  readonly db: number;
  readonly protocol: 2 | 3;
  readonly credentials: Credentials | undefined;
  /** Set for a client's connection. */
  readonly login?: Login;
  /** Where what comes is put, for connections that are many and carry little. */
  readonly intake?: Intake;
}

export interface ServerEvents {
  /** The server behind the endpoint is known for the first time, or by another replication ID with the same data. */
  identified(server: Server): void;
  /** The server behind the endpoint may hold other data than before; `change` says why, as in "the source …". */
  replaced(server: Server, change: string): void;
  /** Why this server must not be used, by its run ID; null where it may. */
  refusal(server: Server, runId: string): string | null;
  /** `problem` has changed: why it must not be used, or nothing any more. */
  usable(server: Server): void;
  /** It is a replica, and was none at the last look, or has not been looked at before. */
  demoted(server: Server): void;
  /** Its clock was looked at. */
  clockRead(server: Server): void;
  /** Clients must log in from now on, or need not any more. */
  passwordNeeded(server: Server): void;
  /** It refuses writes for want of memory. */
  full(server: Server): void;
  /** Its clock was set by so much: what has a time to live ends at another time there than on the other server. */
  clockSet(server: Server, byMs: number): void;
}

/** So long after the last such refusal a server is taken to be full. */
const FULL_MS = 5_000;
/** `lua-time-limit`, which Redis 7 calls `busy-reply-threshold`, where the server does not tell. */
const BUSY_AFTER_MS = 5_000;
/** How long a look at the server's connections may take: on the connection of questions, and on a new one. */
const [GLANCE_MS, NEW_GLANCE_MS] = [150, 500];
const UNTOLD_CLOCK_MS = 1_000;
/** By so much a clock is set, and does not only run fast or slow. */
const SET_CLOCK_MS = 500;

/** The shard's lease at this server, without which no connection carries data. */
export interface ServerLease {
  readonly dialer: Dialer;
  /** The name of every connection that carries data: whoever takes the lease over finds them by it. */
  readonly dataName: string;
  readonly connection: Connection | undefined;
  /** Resolves when the lease is held at that address now. @throws {Error} when it is not */
  confirm(address: Address | undefined): Promise<void>;
}

export class Server {
  /** As it was seen last; null before the first look. */
  identity: Identity | null = null;
  version = '';
  /** Why it must not be used although it answers; null where it may. */
  problem: string | null = null;
  /** As the process that runs there told when it was first seen. */
  isKeydb = false;
  /** Lower-case names from the server's `COMMAND`. */
  commands: ReadonlySet<string> = new Set();
  /** Likewise, of those that `COMMAND` lists, their ACL categories. */
  categories: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  /** By command id: 0 not asked yet, 1 known, 2 not known. */
  #knows = new Uint8Array(1024);
  /** So many of its evictions have explained a loss already, or were before our time. */
  #evictionsSpent = 0;
  up = false;
  #refusal: string | null = null;
  /** Connections that are not ready yet: a server that hangs may never answer them. */
  readonly #greeting = new Set<Connection>();
  /** All of this shard, without the lease's. */
  readonly #connections = new Set<Connection>();
  /** The connection of questions, where it is open. */
  #asking: Connection | undefined;
  /** A look on a connection of its own that has no answer yet. */
  #glancing: Promise<ReadonlyMap<number, string> | null> | undefined;
  /** How often it was closed: what was being opened before is not wanted any more. */
  #closed = 0;
  /** Keys that it removed by itself. */
  readonly losses = new KeyLosses();
  /** Closed for good. */
  ended = false;
  /** Its Unix time in ms when our monotonic clock was 0, and by how much that may be wrong. */
  unixTimeAtZero = 0;
  clockErrorMs = Infinity;
  #address: Address | undefined;
  readonly privileges = new Privileges((...args) => this.ask(...args));
  #fullUntil = 0;
  #control: Promise<Connection> | undefined;
  /** The run id under which `commands` was read. */
  #learnt = '';
  /** What is known of it, and since when, in ms since 1970. */
  #known: KnownIdentity = { runId: '', replId: '' };
  #knownAt = 0;
  #look: Promise<void> | undefined;

  #needsPassword = false;
  readonly #probe: LoginProbe;

  constructor(
    readonly side: Side,
    private readonly lease: ServerLease,
    private readonly turn: Turn,
    private readonly events: ServerEvents,
  ) {
    this.#probe = new LoginProbe({
      connect: () => this.#connect({ db: 0, protocol: 2, credentials: this.endpoint.credentials }),
      knock: () => this.#knock(),
      name: this.name,
      credentials: () => this.endpoint.credentials,
    });
  }

  /** How long a script runs before the server answers others that it is BUSY, in ms; Infinity for never. */
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
   * Asks whether a client that connects now must log in.
   * @throws {HandshakeRefused} while the server is down, {Error} where it cannot be asked
   */
  async askNeedsPassword(): Promise<boolean> {
    if (this.#refusal !== null) throw new HandshakeRefused(this.#refusal);
    const needed = await this.#probe.needsPassword();
    this.#setNeedsPassword(needed);
    return needed;
  }

  /** Likewise, by a connection that is made for it. */
  async #knock(): Promise<boolean> {
    (await this.#connect({ db: 0, protocol: 2, credentials: undefined })).destroy();
    return this.#needsPassword;
  }

  /** Whether the server takes this user and password now. @throws {HandshakeRefused} where it does not */
  async verify(credentials: Credentials): Promise<void> {
    (await this.#connect({ db: 0, protocol: 2, credentials })).destroy();
  }

  /** The error for whoever wants a connection, while the server is down; null where it is not. */
  refuse(error: string | null): void {
    this.#refusal = error;
  }

  /** The address that was connected to last, or that Sentinel names. */
  get address(): Address | undefined {
    return this.#address;
  }

  /** Sentinel has chosen the master at this address. */
  follow(address: Address): void {
    this.#address = address;
  }

  get endpoint(): Dialer {
    return this.lease.dialer;
  }

  /** Of the process that was seen last; empty before the first. */
  get runId(): string {
    return this.#known.runId;
  }

  /** Of the history that its data belong to; empty where it does not tell. */
  get replId(): string {
    return this.#known.replId;
  }

  /** What the kit's connections are called there. */
  get name(): string {
    return this.lease.dataName;
  }

  /**
   * A connection ready for use.
   * @throws {HandshakeRefused} with the server's error: wrong password, no such database, loading…
   * @throws {LeaseLost} when another process has taken the shard over
   * @throws {Error} when there is no connection to be had
   */
  async open(options: OpenOptions): Promise<Connection> {
    if (this.#refusal !== null) throw new HandshakeRefused(this.#refusal);
    const connection = await this.#connect(options);
    try {
      // Others may share it, which the server has let in.
      if (!connection.admitted && options.login?.standing[this.side] !== 'barred') {
        const refused = this.#refusedAs('NOAUTH Authentication required.');
        // One of the kit's own.
        if (options.login === undefined && this.endpoint.credentials === undefined) this.#refused(refused.reply);
        throw refused;
      }
      await this.identify();
      // Held now, after the connection has its name: whoever takes the lease over later finds it by that, and ends it.
      await this.lease.confirm(this.#address);
    } catch (error) {
      connection.destroy();
      throw error;
    }
    if (connection.ended) throw new ConnectionLost('the server closed the connection');
    return connection;
  }

  #refusedAs(reply: string): HandshakeRefused {
    return new HandshakeRefused(reply, this.side);
  }

  /**
   * Whether a number that a script gives a command becomes the shortest text that tells it, as since Redis 7.2; else 17
   * digits.
   */
  get writesShortNumbers(): boolean {
    const [major, minor] = this.version.split('.').map(Number);
    return major > 7 || (major === 7 && minor >= 2);
  }

  /** Whether the server has the command, by what its own `COMMAND` says. */
  knows(spec: CommandSpec): boolean {
    const known = this.#knows[spec.id];
    if (known !== 0) return known === 1;
    if (this.commands.size === 0) return true;
    const answer = this.commands.has(spec.name);
    this.#knows[spec.id] = answer ? 1 : 2;
    return answer;
  }

  /** Asks the server, as the kit's own user, on a connection that nothing else waits on. */
  async ask(...args: Argument[]): Promise<Reply> {
    return (await this.#controlConnection()).ask(...args);
  }

  /**
   * Asks the server who it is, and tells if it may hold other data than the last time.
   * @throws {HandshakeRefused} where it must not be used, or does not answer that
   */
  async identify(): Promise<void> {
    const asked = performance.now();
    const [info, replication] = await Promise.all([this.ask('INFO', 'server'), this.ask('INFO', 'replication')]);
    if (isError(info)) {
      this.#refused(text(info));
      throw new HandshakeRefused(text(info));
    }
    const fields = parseInfo(text(info));
    const identity = identityOf(fields, isError(replication) ? new Map() : parseInfo(text(replication)));
    const refusal = this.events.refusal(this, identity.runId);
    this.#unusable(refusal);
    if (refusal !== null) throw new HandshakeRefused(refusal);
    const setByMs = this.#setClock(Number(fields.get('server_time_usec')) / 1000, asked, performance.now());
    const first = this.version === '';
    this.version = fields.get('redis_version') ?? '';
    this.up = true;
    if (identity.runId !== this.#learnt) await this.#learn(identity.runId);
    const before = this.#known;
    const demoted = isReplica(identity) && (this.identity === null || !isReplica(this.identity));
    const change = changeOf(before, identity, Date.now() - this.#knownAt);
    if (before.runId !== identity.runId) this.privileges.close();
    this.identity = identity;
    this.#known = { runId: identity.runId, replId: identity.replId };
    this.#knownAt = Date.now();
    if (demoted) this.events.demoted(this);
    if (change !== null) this.events.replaced(this, change);
    else if (first || before.replId !== identity.replId) this.events.identified(this);
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

  /** As `identify`, with a look that begins after this call; calls of one turn share it. */
  look(): Promise<void> {
    this.#look ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
      this.#look = undefined;
      return this.identify();
    });
    return this.#look;
  }

  /**
   * Servers before Redis 6.2 do not tell the time in INFO: theirs is taken to be ours, more or less.
   * @returns by how much the clock was set since the last look; 0 where that is not certain
   */
  #setClock(unixMs: number, asked: number, answered: number): number {
    const told = Number.isFinite(unixMs);
    const [before, errorBefore] = [this.unixTimeAtZero, this.clockErrorMs];
    this.unixTimeAtZero = (told ? unixMs : Date.now()) - (asked + answered) / 2;
    this.clockErrorMs = told ? (answered - asked) / 2 : UNTOLD_CLOCK_MS;
    this.events.clockRead(this);
    const byMs = this.unixTimeAtZero - before;
    return Math.abs(byMs) > errorBefore + this.clockErrorMs + SET_CLOCK_MS ? byMs : 0;
  }

  async #learn(runId: string): Promise<void> {
    // Knocks, too, as one who has not logged in: `needsPassword` is known from then on.
    const [reply, cpu, limit] = await Promise.all([
      this.ask('COMMAND'),
      this.ask('INFO', 'cpu'),
      this.ask('CONFIG', 'GET', 'lua-time-limit'),
      this.#knock(),
    ]);
    if (isError(reply)) throw new HandshakeRefused(text(reply));
    // A user who may not CONFIG, or a server that does not know it: the default. What is not positive is never.
    const busyAfterMs = limit.items?.length === 2 ? Number(text(limit.items[1])) : BUSY_AFTER_MS;
    this.busyAfterMs = busyAfterMs > 0 ? busyAfterMs : Infinity;
    this.isKeydb = isKeydb(parseInfo(text(cpu)));
    this.commands = supportedCommands(reply);
    this.categories = commandCategories(reply);
    this.#knows.fill(0);
    this.#learnt = runId;
    this.#evictionsSpent = await this.#evictions();
  }

  /** What an earlier process of ours saw at that time (ms since 1970): a difference is told at the next look. */
  expect(known: KnownIdentity, at: number): void {
    this.#known = known;
    this.#knownAt = at;
  }

  /** Tries a client's password; resolves to the server's refusal, or null. */
  async authenticate(args: readonly string[]): Promise<string | null> {
    const reply = await this.askAs(undefined, 'AUTH', ...args);
    return isError(reply) ? text(reply) : null;
  }

  /**
   * Asks as a client's user, on a connection of its own: nothing on the way to the server stands before the question.
   */
  async askAs(credentials: Credentials | undefined, ...args: Argument[]): Promise<Reply> {
    const connection = await this.#connect({ db: 0, protocol: 2, credentials });
    try {
      return await connection.ask(...args);
    } finally {
      connection.destroy();
    }
  }

  /** How many keys each database has that has any. */
  async databases(): Promise<Map<number, number>> {
    const found = new Map<number, number>();
    for (const [name, value] of parseInfo(text(await this.ask('INFO', 'keyspace')))) {
      if (/^db\d+$/.test(name)) found.set(Number(name.slice(2)), Number(/keys=(\d+)/.exec(value)?.[1] ?? 0));
    }
    return found;
  }

  /** Keys in all databases. */
  async keyCount(): Promise<number> {
    return [...(await this.databases()).values()].reduce((sum, keys) => sum + keys, 0);
  }

  /** Whether it has refused a write for want of memory just now. */
  get full(): boolean {
    return performance.now() < this.#fullUntil;
  }

  /** It has refused a write for want of memory. */
  refusedForMemory(): void {
    const known = this.full;
    this.#fullUntil = performance.now() + FULL_MS;
    if (!known) this.events.full(this);
  }

  /** Whether the server has evicted more keys than losses were put down to it. */
  async hasEvicted(): Promise<boolean> {
    const evictions = await this.#evictions();
    // CONFIG RESETSTAT.
    if (evictions < this.#evictionsSpent) this.#evictionsSpent = 0;
    return evictions > this.#evictionsSpent;
  }

  /** A loss was put down to an eviction: that one explains no other. */
  spendEviction(): void {
    this.#evictionsSpent++;
  }

  /**
   * Counts the keys that it has removed by itself. @returns those evicted since it started; null where it does not tell
   */
  async readStats(): Promise<number | null> {
    const reply = await this.ask('INFO', 'stats');
    if (isError(reply)) return null;
    const stats = parseInfo(text(reply));
    this.losses.see(stats, Date.now());
    const evicted = stats.get('evicted_keys');
    return evicted === undefined ? null : Number(evicted);
  }

  async #evictions(): Promise<number> {
    return (await this.readStats()) ?? 0;
  }

  /**
   * Ends a connection that was lost on our side only, and waits until the server does not know it any more:
   * commands may still sit in its receive buffer, and must not run after what we send next.
   * @throws {Error} when the server does not allow that, or the connection does not end
   */
  async bury(clientId: number): Promise<void> {
    if (clientId !== 0) await killClient((...args) => this.ask(...args), clientId, this.endpoint.label);
  }

  /** Those of the connections that block in a command now. */
  async blockedClients(clientIds: readonly number[]): Promise<ReadonlySet<number>> {
    const clients = await listClients((...args) => this.ask(...args), 'ID', ...clientIds);
    return new Set([...clients].filter(([, line]) => /\bflags=\w*b/.test(line)).map(([id]) => id));
  }

  /** The connections to it, the lease's among them. */
  connections(): Connection[] {
    for (const connection of this.#connections) if (connection.ended) this.#connections.delete(connection);
    const { connection } = this.lease;
    return connection === undefined ? [...this.#connections] : [...this.#connections, connection];
  }

  /**
   * What it says, by number, of connections that may be silent; asked on another connection, a new one where need be.
   * @returns null where it does not answer soon, or not that
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
    const connection = await this.#connect({ db: 0, protocol: 2, credentials: this.endpoint.credentials });
    try {
      return await linesOf(connection, silent);
    } finally {
      connection.destroy();
    }
  }

  /** Has a connection's blocking command end as if its time were over, or with an error. */
  async unblock(clientId: number, how: 'TIMEOUT' | 'ERROR' = 'TIMEOUT'): Promise<boolean> {
    return text(await this.ask('CLIENT', 'UNBLOCK', clientId, how)) === '1';
  }

  /** Closes for good: nothing connects any more. */
  async end(): Promise<void> {
    this.ended = true;
    this.privileges.close();
    await this.close();
  }

  /** Closes the connection of questions, and those that are being opened; the next question opens another. */
  async close(): Promise<void> {
    this.#closed++;
    this.#probe.close();
    for (const connection of this.#greeting) connection.destroy();
    const control = this.#control;
    this.#control = undefined;
    await control?.then(
      (connection) => connection.destroy(),
      () => undefined,
    );
  }

  #controlConnection(): Promise<Connection> {
    if (this.#control) return this.#control;
    const opening = this.#connect({ db: 0, protocol: 2, credentials: this.endpoint.credentials });
    this.#control = opening;
    const gone = (): void => {
      this.up = false;
      if (this.#control === opening) this.#control = undefined;
    };
    opening.then((connection) => {
      this.#asking = connection;
      connection.attachLost(gone);
    }, gone);
    return opening;
  }

  async #connect({ db, protocol, credentials, intake }: OpenOptions): Promise<Connection> {
    const closed = this.#closed;
    const address = await this.endpoint.resolve();
    const socket = await this.endpoint.connect(address);
    if (this.ended || closed !== this.#closed) {
      socket.destroy();
      throw new ConnectionLost(this.ended ? 'the shard is closed' : 'the server was given up');
    }
    this.#address = address;
    const connection = new Connection(socket, this.turn, intake);
    this.#greeting.add(connection);
    this.#connections.add(connection);
    try {
      const wantsPassword = await greet(connection, protocol, credentials, this.name);
      connection.admitted = !wantsPassword;
      if (credentials === undefined) this.#setNeedsPassword(wantsPassword);
      if (db !== 0) {
        const selected = await connection.ask('SELECT', db);
        if (isError(selected)) throw new HandshakeRefused(text(selected));
      }
      if (this.endpoint.followsSentinel) await requireMaster(connection, this.endpoint.label);
      return connection;
    } catch (error) {
      connection.destroy();
      if (!(error instanceof HandshakeRefused)) throw error;
      const ours = credentials !== undefined && credentials === this.endpoint.credentials;
      if (ours && /^(NOAUTH|WRONGPASS|NOPERM)/.test(error.reply)) this.#refused(error.reply);
      throw new HandshakeRefused(error.reply, this.side);
    } finally {
      this.#greeting.delete(connection);
    }
  }
}

/** The lines of the server's CLIENT LIST about connections; null where it does not even list the one that asks. */
async function linesOf(asking: Connection, about: readonly Connection[]): Promise<ReadonlyMap<number, string> | null> {
  const ids = [asking, ...about].map(({ clientId }) => clientId).filter((id) => id !== 0);
  const lines = await listClients((...args) => asking.ask(...args), 'ID', ...ids);
  return lines.has(asking.clientId) ? lines : null;
}

/** Whether it is a KeyDB, by its `INFO cpu`: what only KeyDB's `COMMAND` has, a careful operator renames away. */
export const isKeydb = (info: ReadonlyMap<string, string>): boolean => info.has('server_threads');

/** `INFO` as a map: lines of `field:value`. */
export function parseInfo(info: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of info.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}
