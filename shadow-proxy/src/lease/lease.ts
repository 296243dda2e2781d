/**
 * The lease of a shard at one of its servers: a connection whose name says who wants it. Nothing is written to the
 * server, and the lease ends with its process.
 *
 *   shadow-proxy-lease:<shard>:<process>:waits:<note>   in line, and knows that note of the holder; of those that
 *                                                      answer, the lowest number is first
 *                                       :aside         would wait in line, but could not serve now: others go first
 *                                       :holds         the lease, if a list read after this name was given shows no other that says so
 *                                       :clean         given back, with everything confirmed on both servers
 *                                       :left          given back, with suspects left
 *
 * Two that claim it at once both read their lists after both names are there, so at most one of them sees no other.
 * The epoch is the server's run id and the connection's number, which only grows while the server lives.
 *
 * Room: lease: exactly one proxy serves a shard.
 * Called by: stages, shard.
 * Calls: text, io, resp, route, plan, upstream.
 */
import { monotonicMs } from '../io/clock.js';
import { after, clearTimer, sleep } from '../io/timers.js';
import { isError, text } from '../resp/decode.js';
import { commonSlots } from '../plan/cluster.js';
import type { Address } from '../plan/endpoint.js';
import { parseSlots } from '../plan/owns.js';
import type { Side } from '../route/stage.js';
import { Connection, ConnectionLost } from '../upstream/connection.js';
import type { Dialer } from '../upstream/dialer.js';
import {
  clientField,
  greet,
  HandshakeRefused,
  killClient,
  listClients,
  NOBODY,
  runIdIn,
  refusalOf,
  requireMaster,
} from '../upstream/handshake.js';
import { Turn } from '../io/turn.js';

const NAME = 'shadow-proxy-lease';
const DATA_NAME = 'shadow-proxy';
/**
 * A holder that has sent nothing for so long, in the server's whole seconds, is dead or stalled. It sends each second.
 */
const SILENT_S = 3;
/** For so long must we have watched it, without a pause of the server's or ours: both make a holder look silent. */
const WATCH_MS = 2_000;
const PAUSE_MS = 1_000;
const GOODBYE_MS = 500;

export type Word = 'waits' | 'aside' | 'holds' | 'clean' | 'left';

/** A process in the list of a server. */
export interface Claim {
  /** The number of its connection there. */
  readonly id: number;
  readonly process: string;
  readonly word: Word;
  readonly note: string;
  /** The address that it comes from. */
  readonly from: string;
  readonly ageS: number;
  readonly idleS: number;
}

/** What a look at a server's list shows, ourselves left out. */
export interface View {
  readonly holder: Claim | null;
  /** The process has said nothing since we began to look. */
  readonly silent: boolean;
  /** The process has said something since we began to look. */
  readonly alive: boolean;
  /** Who has given the lease back, and is still to be seen. */
  readonly goodbye: Claim | null;
  /** Whether no other process has waited for longer. */
  readonly first: boolean;
}

/** Since when the lease is held, and under which process of the server. */
export interface Tenure {
  readonly runId: string;
  /** Both in ms of the monotonic clock; at `aliveAt` the server had our connection for certain. */
  readonly since: number;
  aliveAt: number;
}

/** Another process holds the lease, or has taken it over from this one. */
export class LeaseError extends Error {
  override readonly name = 'LeaseError';
  constructor(
    readonly code: 'held' | 'lost' | 'one-server',
    message: string,
  ) {
    super(message);
  }
}

/** Who decides what becomes of a lease whose connection was lost. */
export interface LeaseOwner {
  /** Connects, and takes the lease again where it was held. @throws {LeaseError} if another has it */
  regain(lease: Lease): Promise<void>;
  /** The connection is lost. */
  lost(lease: Lease): void;
}

/** The server refuses what a holder of the lease needs. */
export class ClientRefused extends HandshakeRefused {
  constructor(
    readonly command: string,
    reply: string,
  ) {
    super(reply);
  }
}

export class Lease {
  /** What the connections that carry data are called. */
  readonly dataName: string;
  runId = '';
  /** Kept over the loss of the connection, until it is clear whether another process held it meanwhile. */
  tenure: Tenure | null = null;
  /** What the next holder of the lease is to know; letters and digits. */
  note = '';
  /** Why there is no connection. */
  problem: Error = new ConnectionLost('not connected');
  #held = false;
  #waits: 'waits' | 'aside' = 'waits';
  #connection: Connection | undefined;
  #address: Address | undefined;
  #regaining: Promise<void> | undefined;
  #observedAt = -Infinity;
  #watched: { readonly id: number; readonly since: number } | null = null;
  /** Whether this connection was seen to be allowed what a holder needs. */
  #allowed = false;

  constructor(
    readonly side: Side,
    readonly dialer: Dialer,
    /** `name`, or, of a cluster, `name@slots`: a shard that has one of these slots has the same lease. */
    private readonly shard: string,
    private readonly process: string,
    private readonly owner: LeaseOwner,
  ) {
    this.dataName = `${DATA_NAME}:${nameOf(shard)}:${process}`;
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
   * Connects, in place of the connection that may be there.
   * @throws {HandshakeRefused} {Error} if the server cannot be reached or does not answer in time
   */
  async open(word: Word): Promise<void> {
    this.close();
    const [address, connection] = await this.#connect(word).catch((error: Error) => {
      throw (this.problem = error);
    });
    this.#address = address;
    this.#watched = null;
    this.#allowed = false;
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
      await greet(connection, 2, this.dialer.credentials, this.#name(word));
      if (this.dialer.followsMaster) await requireMaster(connection, this.dialer.label);
      const info = await connection.ask('INFO', 'server');
      if (isError(info)) throw new HandshakeRefused(refusalOf(this.side, this.dialer, text(info)));
      this.runId = runIdIn(info);
      if (connection.ended) throw new ConnectionLost('the server closed the connection');
      return [address, connection];
    } catch (error) {
      connection.destroy();
      throw error;
    } finally {
      clearTimer(timer);
    }
  }

  /** As one that waits: who else is there. @throws {ConnectionLost} {HandshakeRefused} */
  async observe(): Promise<View> {
    if (!this.#allowed) await this.#requireRights();
    const asked = monotonicMs();
    // A list of thousands costs the server milliseconds: while the holder says something, its line is enough.
    let others = this.#watched === null ? [] : this.#claims(await this.#list('ID', this.#watched.id));
    if (!others.some(({ word, idleS }) => word === 'holds' && idleS < SILENT_S))
      others = this.#claims(await this.#list());
    const now = monotonicMs();
    const holder = others.find(({ word }) => word === 'holds') ?? null;
    const paused = now - asked > PAUSE_MS || asked - this.#observedAt > PAUSE_MS;
    if (paused || holder?.id !== this.#watched?.id) this.#watched = holder && { id: holder.id, since: asked };
    this.#observedAt = now;
    const watchedMs = this.#watched === null ? 0 : now - this.#watched.since;
    return {
      holder,
      silent: holder !== null && holder.idleS >= SILENT_S && watchedMs >= WATCH_MS,
      alive: holder !== null && watchedMs > (holder.idleS + 1) * 1_000,
      goodbye: others.findLast(({ word }) => word === 'clean' || word === 'left') ?? null,
      first: !others.some(({ id, word, idleS }) => word === 'waits' && id < this.clientId && idleS < SILENT_S),
    };
  }

  /** Takes the lease, unless another has it, and ends the connections that carried data for others. */
  async claim(): Promise<boolean> {
    const [, lines] = await Promise.all([this.#say('holds'), this.#list()]);
    if (this.#claims(lines).some(({ word }) => word === 'holds')) {
      await this.withdraw();
      return false;
    }
    await this.#endOthers(lines);
    this.resume(null);
    return true;
  }

  /** Takes the lease from its holder, which finds it another's before it can take it again. */
  async seize(): Promise<void> {
    await this.#say('holds');
    const lines = await this.#list();
    for (const { id, word } of this.#claims(lines)) if (word === 'holds') await this.kill(id);
    await this.#endOthers(lines);
    this.resume(null);
  }

  /** Back in line. */
  async withdraw(): Promise<void> {
    this.tenure = null;
    this.#held = false;
    await this.#say(this.#waits);
  }

  /** As one that waits: lets those behind it go first, or takes its place in line again. */
  async stepAside(isAside: boolean): Promise<void> {
    const waits = isAside ? 'aside' : 'waits';
    if (waits === this.#waits) return;
    this.#waits = waits;
    if (this.connected) await this.#say(waits);
  }

  /**
   * After `open('holds')` by a process that has the shard: the others who say that they hold the lease. What is left of
   * our own lost connection is ended.
   */
  async rivals(): Promise<Claim[]> {
    const claims = this.#claims(await this.#list(), true).filter(
      ({ id, word }) => word === 'holds' && id !== this.clientId,
    );
    for (const { id, process } of claims) if (process === this.process) await this.kill(id);
    return claims.filter(({ process }) => process !== this.process);
  }

  /** The lease is ours, as it was before (`tenure`) or from now on (null). */
  resume(tenure: Tenure | null): void {
    const aliveAt = monotonicMs();
    this.tenure = { runId: this.runId, since: tenure?.since ?? aliveAt, aliveAt };
    this.#held = this.connected;
  }

  /** Ends the connections of other processes that carried data. */
  async endOthers(): Promise<void> {
    await this.#endOthers(await this.#list());
  }

  kill(id: number): Promise<void> {
    return killClient((...args) => this.#ask(...args), id, this.dialer.label);
  }

  /** Resolves when the server has our connection. @throws {ConnectionLost} */
  async ping(): Promise<void> {
    const asked = monotonicMs();
    await this.#ask('PING');
    if (this.tenure !== null && this.#held) this.tenure.aliveAt = asked;
  }

  /**
   * Resolves when the lease is held now, at the server of that address and run ID.
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
        // Lost meanwhile.
      }
    }
    await this.regain();
    if (!this.#held) throw this.problem;
    if (!this.#isAt(runId)) throw new Error(`${this.dialer.label} leads to another server for the lease than for data`);
  }

  #isAt(runId: string): boolean {
    return runId === '' || this.runId === '' || this.runId === runId;
  }

  /** `regain`, once at a time. */
  regain(): Promise<void> {
    this.#regaining ??= this.owner.regain(this).finally(() => (this.#regaining = undefined));
    return this.#regaining;
  }

  /** Changes the note of a lease that is held. */
  async tell(note: string): Promise<void> {
    this.note = note;
    if (this.#held) await this.#say('holds');
  }

  /** As one that waits: says that the note of the holder is known. */
  async learn(note: string): Promise<void> {
    this.note = note;
    if (this.connected) await this.#say(this.#waits);
  }

  /** Processes that wait for the lease and have said something lately. */
  async waiters(): Promise<Claim[]> {
    return this.#claims(await this.#list()).filter(({ word, idleS }) => isWaiting(word) && idleS < SILENT_S);
  }

  /** Gives the lease back; resolves to whether another process waits for it. */
  async release(word: 'clean' | 'left'): Promise<boolean> {
    if (!this.connected) return false;
    const late = sleep(GOODBYE_MS, null, { ref: false });
    const lines = await Promise.race([Promise.all([this.#say(word), this.#list()]), late]).catch(() => null);
    return lines !== null && this.#claims(lines[1]).some(({ word: other }) => isWaiting(other));
  }

  close(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#held = false;
    connection?.destroy();
  }

  #name(word: Word): string {
    return `${NAME}:${this.shard}:${this.process}:${word}:${this.note}`;
  }

  /** @throws {ClientRefused} if nobody would see that it is held */
  async #say(word: Word): Promise<void> {
    const reply = await this.#ask('CLIENT', 'SETNAME', this.#name(word));
    if (isError(reply)) throw new ClientRefused('CLIENT SETNAME', text(reply));
  }

  /** @throws {HandshakeRefused} if the user may not do what a holder has to */
  async #requireRights(): Promise<void> {
    await this.#list('ID', this.clientId);
    await this.#say(this.#waits);
    const killed = await this.#ask('CLIENT', 'KILL', 'ID', NOBODY);
    if (isError(killed)) throw new ClientRefused('CLIENT KILL', text(killed));
    this.#allowed = true;
  }

  #ask(...args: Parameters<Connection['ask']>): ReturnType<Connection['ask']> {
    return this.#connection?.ask(...args) ?? Promise.reject(this.problem);
  }

  #list(...filter: Parameters<Connection['ask']>): Promise<Map<number, string>> {
    return listClients((...args) => this.#ask(...args), ...filter);
  }

  async #endOthers(lines: ReadonlyMap<number, string>): Promise<void> {
    for (const [id, line] of lines) {
      const name = clientField(line, 'name');
      const ours = `${DATA_NAME}:${nameOf(this.shard)}`;
      const data = name === ours || name.startsWith(`${ours}:`);
      if (data && name !== this.dataName) await this.kill(id);
    }
  }

  /** The claims on the shard, in the order of their numbers; without our own, as a rule. */
  #claims(lines: ReadonlyMap<number, string>, withOurs = false): Claim[] {
    const prefix = `${NAME}:`;
    const claims: Claim[] = [];
    for (const [id, line] of lines) {
      const name = clientField(line, 'name');
      if (!name.startsWith(prefix)) continue;
      const [shard, process, word, note = ''] = name.slice(prefix.length).split(':');
      if (!isSameShard(shard, this.shard)) continue;
      if (process === this.process && !withOurs) continue;
      claims.push({
        id,
        process,
        word: word as Word,
        note,
        from: clientField(line, 'addr'),
        ageS: Number(clientField(line, 'age')),
        idleS: Number(clientField(line, 'idle')),
      });
    }
    return claims.sort((a, b) => a.id - b.id);
  }
}

const isWaiting = (word: Word): boolean => word === 'waits' || word === 'aside';

const nameOf = (shard: string): string => shard.split('@', 1)[0];

/** Whether both names are of one shard, or of shards of a cluster that have a slot in common. */
function isSameShard(a: string, b: string): boolean {
  const [[name, slots], [other, others]] = [a.split('@'), b.split('@')];
  if (slots === undefined || others === undefined || name === other) return name === other;
  try {
    return commonSlots(parseSlots(slots), parseSlots(others)).length > 0;
  } catch {
    // Any client may call itself so.
    return false;
  }
}
