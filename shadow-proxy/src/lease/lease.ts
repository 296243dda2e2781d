/**
 * The lease of a shard at one of its servers: a connection whose name says who wants the lease. Nothing is written to
 * the server, and the lease ends with its process.
 *
 *   shadow-proxy-lease:<shard>:<process>:waits:<note>   waits for the lease, and knows that note of the holder; the
 *                                                      lowest client ID of those that answer is first
 *                                       :aside         waits, but cannot serve now: others go first
 *                                       :holds         has the lease, if a list of connections that was read later
 *                                                      shows no other holder
 *                                       :clean         has released it, with everything confirmed on both servers
 *                                       :left          has released it, with suspects left
 *
 * Behind the note there may be two addresses, `:<service>;<sentinel>`: where the holder's clients connect, and where
 * the process answers as a Sentinel.
 *
 * The next holder kills the connection of a process that has released it. So a word of goodbye that is there when the
 * lease is taken is that of the last holder.
 *
 * If two processes claim the lease at once, both read the list after both names are set. So at most one of them sees no
 * other. The epoch is the server's run ID and the connection's client ID, which only grows while the server lives.
 *
 * Room: lease: exactly one proxy serves a shard.
 * Called by: sentinel, stages, shard.
 * Calls: text, io, resp, route, plan, upstream.
 */
import { monotonicMs } from '../io/clock.js';
import { after, clearTimer, sleep } from '../io/timers.js';
import { isError, text } from '../resp/decode.js';
import type { Address } from '../plan/endpoint.js';
import type { Side } from '../route/stage.js';
import { Connection, ConnectionLost } from '../upstream/connection.js';
import type { Dialer } from '../upstream/dialer.js';
import { greet, HandshakeRefused, NOBODY, runIdIn, refusalOf, requireMaster } from '../upstream/handshake.js';
import { Turn } from '../io/turn.js';
import { claimName, dataName, goodbyeIn, isWaiting, NOWHERE, type Claim, type Places, type Word } from './claims.js';
import { OtherProcesses, type View } from './other-processes.js';

const GOODBYE_MS = 500;

/** Since when the lease is held, and at which process of the server. */
export interface Tenure {
  readonly runId: string;
  /** Both are in ms of the monotonic clock. At `aliveAt` the server certainly had our connection. */
  readonly since: number;
  aliveAt: number;
}

/** Another process holds the lease, or has taken it over from this one. */
export class LeaseError extends Error {
  override readonly name = 'LeaseError';
  constructor(
    readonly code: 'held' | 'lost' | 'one-server',
    message: string,
    /** Where it is `lost`: the process that has it now; null if none is known. */
    readonly holder: Claim | null = null,
  ) {
    super(message);
  }
}

/** The part that decides about a lease whose connection was lost. */
export interface LeaseOwner {
  /** Connects, and takes the lease again if it was held. @throws {LeaseError} if another process has it */
  regain(lease: Lease): Promise<void>;
  /** Called when the connection is lost. */
  lost(lease: Lease): void;
}

/** The server refuses a right that a holder of the lease needs. */
export class ClientRefused extends HandshakeRefused {
  constructor(
    readonly command: string,
    reply: string,
  ) {
    super(reply);
  }
}

export class Lease {
  /** The name of connections that carry data. Behind a colon, names of their clients may follow. */
  readonly dataName: string;
  runId = '';
  /** Kept when the connection is lost, until it is known whether another process held the lease meanwhile. */
  tenure: Tenure | null = null;
  /** Whose word of goodbye was there when the lease was taken: nobody has held the lease since then. */
  inherited: Claim | null = null;
  /** A message for the next holder of the lease; letters and digits. */
  note = '';
  /** The other processes at the server. */
  readonly others: OtherProcesses;
  /** What this process announces behind the note. */
  places = NOWHERE;
  /** Why there is no connection. */
  problem: Error = new ConnectionLost('not connected');
  #held = false;
  #waits: 'waits' | 'aside' = 'waits';
  #connection: Connection | undefined;
  #address: Address | undefined;
  #regaining: Promise<void> | undefined;
  /** Whether the rights of a holder were checked on this connection. */
  #allowed = false;

  constructor(
    readonly side: Side,
    readonly dialer: Dialer,
    /** `name`, or `name@slots` in a cluster: shards that have a slot in common have the same lease. */
    private readonly shard: string,
    private readonly process: string,
    private readonly owner: LeaseOwner,
  ) {
    this.dataName = dataName(shard, process);
    this.others = new OtherProcesses({
      shard,
      process,
      label: dialer.label,
      ask: (...args) => this.#ask(...args),
      clientId: () => this.clientId,
    });
  }

  get connected(): boolean {
    return this.#connection !== undefined;
  }
  get connection(): Connection | undefined {
    return this.#connection;
  }
  get held(): boolean {
    return this.#held;
  }
  get clientId(): number {
    return this.#connection?.clientId ?? 0;
  }

  /**
   * Connects, and replaces the present connection if there is one.
   * @throws {HandshakeRefused} {Error} if the server cannot be reached or does not answer in time
   */
  async open(word: Word): Promise<void> {
    this.close();
    const [address, connection] = await this.#connect(word).catch((error: Error) => {
      throw (this.problem = error);
    });
    this.#address = address;
    this.others.connected();
    this.#allowed = false;
    this.inherited = null;
    this.#connection = connection;
    connection.attachLost((reason) => {
      if (this.#connection !== connection) return;
      this.#connection = undefined;
      this.#held = false;
      this.problem = reason;
      this.owner.lost(this);
    });
  }

  async #connect(word: Word): Promise<[Address, Connection]> {
    const address = await this.dialer.resolve();
    const connection = new Connection(await this.dialer.connect(address), new Turn());
    const timer = after(this.dialer.timeoutMs, () =>
      connection.destroy(new Error(`${this.dialer.label} does not answer`)),
    );
    try {
      await greet(
        connection,
        2,
        this.dialer.credentials,
        claimName(this.shard, this.process, word, this.note, this.places),
      );
      if (this.dialer.followsMaster) await requireMaster(connection, this.dialer.label);
      const info = await connection.ask('INFO', 'server');
      if (isError(info)) throw new HandshakeRefused(refusalOf(this.side, this.dialer, text(info)));
      this.runId = connection.runId = runIdIn(info);
      if (connection.ended) throw new ConnectionLost('the server closed the connection');
      return [address, connection];
    } catch (error) {
      connection.destroy();
      throw error;
    } finally {
      clearTimer(timer);
    }
  }

  /** For a process that waits: reads who else is there. @throws {ConnectionLost} {HandshakeRefused} */
  async observe(): Promise<View> {
    if (!this.#allowed) await this.#requireRights();
    return this.others.observe();
  }

  /** Takes the lease, unless another process has it, and ends what is left of other processes. */
  async claim(): Promise<boolean> {
    const [, listing] = await Promise.all([this.#say('holds'), this.others.list()]);
    const claims = this.others.claims(listing);
    if (claims.some(({ word }) => word === 'holds')) {
      await this.withdraw();
      return false;
    }
    this.inherited = goodbyeIn(claims);
    await this.others.end(listing);
    this.resume(null);
    return true;
  }

  /** Takes the lease from its holder, who then finds that it is held. */
  async seize(): Promise<void> {
    await this.#say('holds');
    const listing = await this.others.list();
    for (const { id, word } of this.others.claims(listing)) if (word === 'holds') await this.others.kill(id);
    await this.others.end(listing);
    this.resume(null);
  }

  /** Waits in line again. */
  async withdraw(): Promise<void> {
    this.tenure = null;
    this.#held = false;
    await this.#say(this.#waits);
  }

  /** For a process that waits: lets the processes behind it go first, or takes its place in line again. */
  async stepAside(isAside: boolean): Promise<void> {
    const waits = isAside ? 'aside' : 'waits';
    if (waits === this.#waits) return;
    this.#waits = waits;
    if (this.connected) await this.#say(waits);
  }

  /** Marks the lease as held. @param tenure continues this tenure; null: a new one begins now */
  resume(tenure: Tenure | null): void {
    const aliveAt = monotonicMs();
    this.tenure = { runId: this.runId, since: tenure?.since ?? aliveAt, aliveAt };
    this.#held = this.connected;
  }

  /** Resolves when the server has answered on our connection. @throws {ConnectionLost} */
  async ping(): Promise<void> {
    const asked = monotonicMs();
    await this.#ask('PING');
    if (this.tenure !== null && this.#held) this.tenure.aliveAt = asked;
  }

  /**
   * Resolves if the lease is held now, at the server with that address and run ID.
   * @throws {LeaseError} if another process has it
   * @throws {Error} if the server cannot be reached
   */
  async confirm(address?: Address, runId = ''): Promise<void> {
    const there =
      address === undefined || (address.host === this.#address?.host && address.port === this.#address.port);
    if (this.#held && there && this.#isAt(runId)) {
      try {
        return await this.ping();
      } catch {
        // The connection was lost meanwhile.
      }
    }
    await this.regain();
    if (!this.#held) throw this.problem;
    if (!this.#isAt(runId)) throw new Error(`${this.dialer.label} leads to another server for the lease than for data`);
  }

  #isAt(runId: string): boolean {
    return runId === '' || this.runId === '' || this.runId === runId;
  }

  /** Calls `regain` of the owner; never twice at a time. */
  regain(): Promise<void> {
    this.#regaining ??= this.owner.regain(this).finally(() => (this.#regaining = undefined));
    return this.#regaining;
  }

  /** Changes the note of a lease that is held. */
  async publishNote(note: string): Promise<void> {
    this.note = note;
    if (this.#held) await this.#say('holds');
  }

  /** Changes what is announced by a process that holds the lease. */
  async announce(places: Places): Promise<void> {
    this.places = places;
    if (this.#held) await this.#say('holds');
  }

  /** For a process that waits: shows that it knows the holder's note. */
  async learn(note: string): Promise<void> {
    this.note = note;
    if (this.connected) await this.#say(this.#waits);
  }

  /** Releases the lease; resolves to whether another process waits for it: null if the server does not answer. */
  async release(word: 'clean' | 'left'): Promise<boolean | null> {
    if (!this.connected) return null;
    const late = sleep(GOODBYE_MS, null, { ref: false });
    const said = await Promise.race([Promise.all([this.#say(word), this.others.list()]), late]).catch(() => null);
    return said && this.others.claims(said[1]).some(({ word: other }) => isWaiting(other));
  }

  close(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#held = false;
    connection?.destroy();
  }

  /** @throws {ClientRefused} if other processes could not see that it is held */
  async #say(word: Word): Promise<void> {
    const reply = await this.#ask(
      'CLIENT',
      'SETNAME',
      claimName(this.shard, this.process, word, this.note, this.places),
    );
    if (isError(reply)) throw new ClientRefused('CLIENT SETNAME', text(reply));
  }

  /** @throws {HandshakeRefused} if the user lacks a right that a holder needs */
  async #requireRights(): Promise<void> {
    await this.others.list('ID', this.clientId);
    await this.#say(this.#waits);
    const killed = await this.#ask('CLIENT', 'KILL', 'ID', NOBODY);
    if (isError(killed)) throw new ClientRefused('CLIENT KILL', text(killed));
    this.#allowed = true;
  }

  #ask(...args: Parameters<Connection['ask']>): ReturnType<Connection['ask']> {
    return this.#connection?.ask(...args) ?? Promise.reject(this.problem);
  }
}
