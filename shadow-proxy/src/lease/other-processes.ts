/**
 * The other processes of a shard at one server, as the server's list of connections shows them: which holds the lease,
 * which wait for it, and which have released it.
 */
import { monotonicMs } from '../io/clock.js';
import type { Connection } from '../upstream/connection.js';
import { killClient, listClients } from '../upstream/handshake.js';
import { claimsIn, dataName, goodbyeIn, isGoodbye, isNamed, isThere, isWaiting, type Claim } from './claims.js';

/**
 * A holder that has sent nothing for this many seconds (whole ones, by the server) is dead or stalled. A holder sends
 * something each second.
 */
export const SILENT_S = 3;
/**
 * How long a holder must be watched, in ms, without a pause of the server or of this process: both make a holder look
 * silent.
 */
const WATCH_MS = 2_000;
const PAUSE_MS = 1_000;

/** What a server's list of connections shows, without this process. */
export interface View {
  readonly holder: Claim | null;
  /** Whether the holder has sent nothing since the watch began. */
  readonly silent: boolean;
  /** Whether the holder has sent something since the watch began. */
  readonly alive: boolean;
  /** The process that has released the lease and is still listed; null if there is none. */
  readonly goodbye: Claim | null;
  /** Whether no other process has waited for longer. */
  readonly first: boolean;
}

/** A list of connections, by client ID. */
export type Listing = ReadonlyMap<number, string>;

export interface OtherProcessesContext {
  /** `name`, or `name@slots` in a cluster: shards that have a slot in common have the same lease. */
  readonly shard: string;
  /** This process. */
  readonly process: string;
  /** The server, in messages. */
  readonly label: string;
  readonly ask: Connection['ask'];
  /** The client ID of the lease's connection. */
  readonly clientId: () => number;
}

export class OtherProcesses {
  readonly #ask: Connection['ask'];
  #observedAt = -Infinity;
  #watched: { readonly id: number; readonly since: number } | null = null;

  constructor(private readonly by: OtherProcessesContext) {
    this.#ask = (...args) => by.ask(...args);
  }

  /** The lease has a new connection: what was observed before does not count. */
  connected(): void {
    this.#watched = null;
  }

  /** Reads the list, or the part of it that CLIENT LIST's arguments select. */
  list(...filter: Parameters<Connection['ask']>): Promise<Listing> {
    return listClients(this.#ask, ...filter);
  }

  /** The claims of other processes, in the order of their client IDs. */
  claims(listing: Listing): Claim[] {
    return claimsIn(listing, this.by.shard).filter(({ process }) => process !== this.by.process);
  }

  /** For a process that waits: reads who else is there. @throws {ConnectionLost} {HandshakeRefused} */
  async observe(): Promise<View> {
    const asked = monotonicMs();
    // A list of thousands of clients costs the server milliseconds: while the holder sends, its line alone is read.
    let others = this.#watched === null ? [] : this.claims(await this.list('ID', this.#watched.id));
    if (!others.some(({ word, idleS }) => word === 'holds' && idleS < SILENT_S))
      others = this.claims(await this.list());
    const now = monotonicMs();
    const holder = others.find(({ word }) => word === 'holds') ?? null;
    const paused = now - asked > PAUSE_MS || asked - this.#observedAt > PAUSE_MS;
    // The watch begins with the answer to a look during which the server was stopped: before, it could hear no holder.
    const since = now - asked > PAUSE_MS ? now : asked;
    if (paused || holder?.id !== this.#watched?.id) this.#watched = holder && { id: holder.id, since };
    this.#observedAt = now;
    const watchedMs = this.#watched === null ? 0 : now - this.#watched.since;
    const own = this.by.clientId();
    return {
      holder,
      silent: holder !== null && holder.idleS >= SILENT_S && watchedMs >= WATCH_MS,
      alive: holder !== null && watchedMs > (holder.idleS + 1) * 1_000,
      goodbye: goodbyeIn(others),
      first: !others.some(({ id, word, idleS }) => word === 'waits' && id < own && idleS < SILENT_S),
    };
  }

  /**
   * For a process that has the shard, after `open('holds')`: the other processes that claim to hold the lease. Kills
   * what is left of this process's lost connection.
   */
  async rivals(): Promise<Claim[]> {
    const claims = claimsIn(await this.list(), this.by.shard).filter(
      ({ id, word }) => word === 'holds' && id !== this.by.clientId(),
    );
    for (const { id, process } of claims) if (process === this.by.process) await this.kill(id);
    return claims.filter(({ process }) => process !== this.by.process);
  }

  /** Processes that hold the lease, or wait for it. */
  async present(): Promise<Claim[]> {
    return this.claims(await this.list()).filter(({ word, idleS }) => isThere(word) && idleS < SILENT_S);
  }

  /** Processes that wait for the lease and have sent something recently. */
  async waiting(): Promise<Claim[]> {
    return this.claims(await this.list()).filter(({ word, idleS }) => isWaiting(word) && idleS < SILENT_S);
  }

  kill(id: number): Promise<void> {
    return killClient(this.#ask, id, this.by.label);
  }

  /** Kills other processes' connections for data, and those of processes that have released the lease. */
  async end(listing: Listing): Promise<void> {
    const { shard, process } = this.by;
    for (const [id, line] of listing) {
      if (isNamed(line, dataName(shard)) && !isNamed(line, dataName(shard, process))) await this.kill(id);
    }
    // Where its end does not reach the server, the word of a past holder would stay, and be taken for that of the last.
    for (const { id, word } of this.claims(listing)) if (isGoodbye(word)) await this.kill(id);
  }
}
