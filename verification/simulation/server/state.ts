/**
 * What a server holds: databases, clients, settings. Commands read and change it; how bytes become commands is in
 * server.ts.
 */
import type { ClusterView } from './cluster-view.js';
import type { Protocol } from './reply.js';
import { Refusal, WRONG_TYPE } from './reply.js';
import type { Surroundings } from './surroundings.js';
import { Tracking } from './tracking.js';
import type { Entry, Type, Values } from './values.js';
import type { User } from './users.js';

/** What a world may do to a server. */
export interface Troubles {
  /** It reads its file after a start. */
  loading: boolean;
  /** A script runs longer than the server's limit. */
  busy: boolean;
  /** Its memory is full, and nothing can be evicted. */
  outOfMemory: boolean;
  /** It could not save its keys. */
  cannotSave: boolean;
}

/** What a command answers a script, and what a script returns. */
export type Result = string | number | null | readonly Result[] | { readonly ok: string };

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** `redis.call`. @throws {Refusal} with the server's error */
  call(...words: readonly string[]): Result;
}

/** A function that does what a script does. */
export type Script = (script: ScriptCall) => Result;

export type Engine = 'redis' | 'keydb';

/** How often a server looks for expired keys, in milliseconds. */
const CYCLE_MS = 100;

export class Database {
  keys = new Map<string, Entry>();
  /** Keys with an expiry. */
  expiring = new Set<string>();
  /** Clients that WATCH a key. */
  readonly watchers = new Map<string, Set<Client>>();
  /** Clients that block on a key, the longest-waiting first. */
  blocked = new Map<string, Client[]>();

  constructor(
    readonly server: State,
    public id: number,
  ) {}

  /** The entry, as commands see it: an expired key is none, and a primary deletes it. */
  get(key: string): Entry | undefined {
    const entry = this.keys.get(key);
    if (entry === undefined || !this.isExpired(entry)) return entry;
    if (!this.server.keepsExpired) this.#expire(key);
    return undefined;
  }

  isExpired({ expireAt }: Entry): boolean {
    return expireAt !== -1 && this.server.isPast(expireAt);
  }

  /** @throws {Refusal} where the key holds another type */
  getAs<T extends Type>(key: string, type: T): Values[T] | undefined {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    if (entry.type !== type) throw WRONG_TYPE;
    return entry.value as Values[T];
  }

  /** As `getAs`, but makes an empty value where there is none. The caller fills it. */
  getOrAdd<T extends Type>(key: string, type: T, make: () => Values[T]): Values[T] {
    const found = this.getAs(key, type);
    if (found !== undefined) return found;
    const value = make();
    this.add(key, type, value);
    return value;
  }

  add<T extends Type>(key: string, type: T, value: Values[T], expireAt = -1): void {
    this.keys.set(key, { type, value, expireAt } as Entry);
    if (expireAt === -1) this.expiring.delete(key);
    else this.#noteExpiry(key);
    if (type === 'list' || type === 'zset' || type === 'stream') this.ready(key);
  }

  /** Puts a value in the place of what the key holds; its expiry is removed unless it is kept. */
  overwrite<T extends Type>(key: string, type: T, value: Values[T], keepExpiry = false): void {
    const old = this.keys.get(key);
    if (old?.type === 'stream' && this.server.engine === 'redis') this.ready(key);
    this.keys.set(key, { type, value, expireAt: keepExpiry && old !== undefined ? old.expireAt : -1 } as Entry);
    if (old === undefined && type !== 'string') this.ready(key);
    if (!keepExpiry) this.expiring.delete(key);
  }

  delete(key: string): boolean {
    const entry = this.keys.get(key);
    if (entry === undefined) return false;
    this.keys.delete(key);
    this.expiring.delete(key);
    if (entry.type === 'stream' && this.server.engine === 'redis') this.ready(key);
    return true;
  }

  /** Deletes a collection that a command has emptied. */
  deleteIfEmpty(key: string, size: number): void {
    if (size === 0) this.delete(key);
  }

  setExpiry(key: string, at: number): void {
    const entry = this.keys.get(key);
    if (entry === undefined) return;
    entry.expireAt = at;
    if (at === -1) this.expiring.delete(key);
    else this.#noteExpiry(key);
  }

  /** The key was modified: transactions that WATCH it fail. */
  touch(key: string): void {
    this.server.dirty++;
    this.server.noteTouched(this, key);
    if (this.watchers.size === 0) return;
    for (const client of [...(this.watchers.get(key) ?? [])]) client.touched(this, key);
  }

  /** Notes that clients that block on the key may be served after the command. */
  ready(key: string): void {
    if (this.blocked.size > 0 && this.blocked.has(key)) this.server.noteReady(this, key);
  }

  /** Removes all keys. */
  clear(): void {
    const { keys } = this;
    this.server.noteChangedAll([this]);
    this.touchWatched();
    this.keys = new Map();
    this.expiring = new Set();
    if (this.server.engine === 'redis')
      for (const key of this.blocked.keys()) if (keys.get(key)?.type === 'stream') this.ready(key);
  }

  /** Exchanges all keys with another database: clients stay where they are. */
  swap(other: Database): void {
    this.server.noteChangedAll([this, other]);
    this.touchWatched(other);
    other.touchWatched(this);
    [this.keys, other.keys] = [other.keys, this.keys];
    [this.expiring, other.expiring] = [other.expiring, this.expiring];
    this.readyBlocked();
    other.readyBlocked();
  }

  /** The database is another one now: clients may block on keys that it has. */
  readyBlocked(): void {
    for (const key of this.blocked.keys()) if (this.keys.has(key)) this.ready(key);
  }

  /** All keys change: watched keys that exist, here or in what takes their place, are modified. */
  touchWatched(next?: Database): void {
    for (const [key, clients] of [...this.watchers]) {
      if (!this.keys.has(key) && next?.keys.has(key) !== true) continue;
      for (const client of [...clients]) {
        client.dirty = true;
        client.unwatch();
      }
    }
  }

  /** Deletes keys that have expired. */
  expireDue(): void {
    for (const key of this.expiring) if (this.server.isPast(this.keys.get(key)!.expireAt)) this.#expire(key);
  }

  #noteExpiry(key: string): void {
    this.expiring.add(key);
    this.server.startCycle();
  }

  #expire(key: string): void {
    this.delete(key);
    this.server.expired++;
    this.touch(key);
  }
}

/** A client that waits for a key. */
export interface Blocked {
  readonly type: 'list' | 'zset' | 'stream';
  readonly keys: readonly string[];
  readonly database: Database;
  /** What the client gets for the key as it is now; null while there is nothing for it. */
  serve(key: string): string | null;
  /** What it gets at its timeout. */
  readonly atTimeout: string;
  timer: { cancel(): void } | null;
}

/** A command in a transaction's queue. */
export interface Queued {
  readonly command: Command;
  readonly args: readonly string[];
}

/** Runs a command and returns its reply; an empty text where there is none, or none yet. */
export type Run = (client: Client, args: readonly string[]) => string;

/** A command of a server. */
export interface Command {
  /** Lower case; of a subcommand `container|subcommand`. */
  readonly name: string;
  readonly arity: number;
  readonly flags: ReadonlySet<string>;
  readonly isWrite: boolean;
  readonly deniesOom: boolean;
  /** As in the generated table. */
  readonly keySpecs: readonly string[];
  readonly subcommands: ReadonlyMap<string, Command> | null;
  readonly run: Run;
}

export class Client {
  name = '';
  protocol: Protocol = 2;
  database: Database;
  multi: Queued[] | null = null;
  /** A command of the transaction was refused. */
  spoilt = false;
  /** A watched key was modified. */
  dirty = false;
  /** Watched keys, with whether each had expired when WATCH came. */
  readonly watched: { readonly database: Database; readonly key: string; expired: boolean }[] = [];
  blocked: Blocked | null = null;
  /** Inside EXEC or a script, where no command blocks. */
  mayNotBlock = false;
  replies: 'on' | 'off' | 'skip' | 'skip next' = 'on';
  readonly channels = new Set<string>();
  readonly patterns = new Set<string>();
  /** Shown by CLIENT LIST. */
  lastCommand = 'NULL';
  readonly since: number;
  lastSeen: number;
  noEvict = false;
  asking = false;
  readsReplica = false;
  /** The connection ends once its replies are written. */
  closing = false;
  closed = false;
  /** Replies that are not written yet. */
  out = '';
  /** Set by the connection. */
  flush: () => void = () => undefined;
  /** Processes input that waited while the client was blocked. */
  resume: () => void = () => undefined;
  /** Ends the connection from the server's side. */
  close: () => void = () => undefined;

  constructor(
    readonly server: State,
    readonly id: number,
    readonly address: string,
    public user: User | null,
  ) {
    this.database = server.databases[0];
    this.since = this.lastSeen = server.now;
  }

  get subscribed(): number {
    return this.channels.size + this.patterns.size;
  }

  reply(text: string): void {
    if (text === '' || this.closed) return;
    if (this.replies === 'on') this.out += text;
  }

  /** Like `reply`, for what comes without a command: CLIENT REPLY OFF does not hide it. */
  push(text: string): void {
    if (!this.closed) this.out += text;
  }

  pushLater(text: string): void {
    this.push(text);
    this.server.flushLater(this);
  }

  watch(key: string): void {
    const { database } = this;
    if (this.watched.some((each) => each.database === database && each.key === key)) return;
    const entry = database.keys.get(key);
    const expired = entry !== undefined && entry.expireAt !== -1 && this.server.isPast(entry.expireAt);
    this.watched.push({ database, key, expired });
    const watchers = database.watchers.get(key);
    if (watchers === undefined) database.watchers.set(key, new Set([this]));
    else watchers.add(this);
  }

  unwatch(): void {
    for (const { database, key } of this.watched) {
      const watchers = database.watchers.get(key);
      watchers?.delete(this);
      if (watchers?.size === 0) database.watchers.delete(key);
    }
    this.watched.length = 0;
  }

  /** A watched key was modified. */
  touched(database: Database, key: string): void {
    const found = this.watched.find((each) => each.database === database && each.key === key);
    // Redis 7 lets a key that had expired before WATCH be deleted without a consequence.
    if (found?.expired === true && this.server.engine === 'redis') {
      if (!database.keys.has(key)) found.expired = false;
      return;
    }
    this.dirty = true;
    this.unwatch();
  }

  /** Whether a watched key has expired since WATCH. */
  get watchesExpired(): boolean {
    return this.watched.some(({ database, key, expired }) => {
      const entry = database.keys.get(key);
      if (entry === undefined || entry.expireAt === -1 || !this.server.isPast(entry.expireAt)) return false;
      return this.server.engine === 'keydb' || !expired;
    });
  }

  endTransaction(): void {
    this.multi = null;
    this.spoilt = this.dirty = false;
    this.unwatch();
  }

  /** Waits for one of the keys; `ms` 0 waits without a limit. */
  block(wait: Omit<Blocked, 'timer' | 'database'>, ms: number): void {
    const { database, server } = this;
    const blocked: Blocked = { ...wait, keys: [...new Set(wait.keys)], database, timer: null };
    this.blocked = blocked;
    for (const key of blocked.keys) {
      const waiting = database.blocked.get(key);
      if (waiting === undefined) database.blocked.set(key, [this]);
      else waiting.push(this);
    }
    if (ms > 0)
      blocked.timer = server.surroundings.after(ms, () => {
        server.readClock();
        this.unblock(blocked.atTimeout);
        server.resumeClients();
      });
  }

  /** Ends the wait with a reply; input behind the command is processed after the commands at hand. */
  unblock(reply: string | null): void {
    const { blocked } = this;
    if (blocked === null) return;
    this.blocked = null;
    blocked.timer?.cancel();
    for (const key of blocked.keys) {
      const waiting = blocked.database.blocked.get(key);
      if (waiting === undefined) return this.server.crash();
      waiting.splice(waiting.indexOf(this), 1);
      if (waiting.length === 0) blocked.database.blocked.delete(key);
    }
    if (reply === null) return;
    this.reply(reply);
    this.server.resumeLater(this);
  }
}

export interface StateOptions {
  readonly engine: Engine;
  readonly surroundings: Surroundings;
  readonly databases: number;
  readonly port: number;
}

export abstract class State {
  readonly engine: Engine;
  readonly surroundings: Surroundings;
  databases: Database[];
  readonly clients = new Map<number, Client>();
  readonly users = new Map<string, User>();
  readonly config = new Map<string, string>();
  /** Unix milliseconds at the command at hand: it stays the same within a transaction. */
  now: number;
  /** Changes of the keyspace so far. */
  dirty = 0;
  expired = 0;
  evicted = 0;
  commands = 0;
  /** How often each command has run, by its name in `INFO commandstats`. */
  readonly calls = new Map<string, number>();
  connections = 0;
  runId = '';
  startedAt: number;
  /** Scripts by their SHA-1, as EVAL and SCRIPT LOAD have brought them. */
  readonly scripts = new Map<string, string>();
  /** What the model can run, by the script's text. */
  readonly knownScripts = new Map<string, Script>();
  /** Commands and scripts that a client has sent and the model lacks. */
  readonly lacking = new Set<string>();
  /** What it knows of its cluster; null without cluster mode. */
  cluster: ClusterView | null = null;
  /** Replication. */
  replicaOf: { readonly host: string; readonly port: number; up: boolean } | null = null;
  replId = '';
  offset = 0;
  readonly troubles: Troubles = { loading: false, busy: false, outOfMemory: false, cannotSave: false };
  #ready: { readonly database: Database; readonly key: string }[] = [];
  #resuming: Client[] = [];
  /** What MEMORY USAGE says, as a multiple of what a key takes: as if its elements were so much larger. */
  memoryFactor = 1;
  readonly tracking = new Tracking();
  readonly #unflushed = new Set<Client>();
  #cycle: { cancel(): void } | null = null;
  #nextClient = 1;

  constructor(options: StateOptions) {
    this.engine = options.engine;
    this.surroundings = options.surroundings;
    this.now = this.startedAt = Math.floor(options.surroundings.unixMs());
    this.databases = Array.from({ length: options.databases }, (_, id) => new Database(this, id));
  }

  /** Whether it has the command. @param name in lower case */
  abstract knows(name: string): boolean;
  /** Runs a command as a client would, without checks; EXEC and scripts use it. */
  abstract call(client: Client, args: readonly string[], isScripted?: boolean): string;

  /**
   * Exchanges two databases as KeyDB does: only the client that asks for it sees the change. The others stay with the
   * keys that they had, under the other number; one that blocks is served by a crash.
   */
  exchange(client: Client, one: Database, other: Database): void {
    const { id } = client.database;
    const { databases } = this;
    this.noteChangedAll([one, other]);
    [databases[one.id], databases[other.id]] = [other, one];
    [one.id, other.id] = [other.id, one.id];
    [one.blocked, other.blocked] = [other.blocked, one.blocked];
    for (const [changed, next] of [
      [other, one],
      [one, other],
    ]) {
      changed.readyBlocked();
      changed.touchWatched(next);
    }
    client.database = databases[id];
  }

  /** What a client's user lacks for a command; null where it may run it. */
  abstract lackingRight(client: Client, command: Command, args: readonly string[]): 'command' | 'keys' | null;
  abstract noteTouched(database: Database, key: string): void;
  /** Each key of these databases may be another one, in any of them. */
  abstract noteChangedAll(databases: readonly Database[]): void;
  /** Hands on what has changed since. */
  abstract flushChanges(): void;

  /** The server's process ends with an assertion: no connection survives, nor a key that was not saved. */
  abstract crash(): void;

  readClock(): void {
    this.now = Math.floor(this.surroundings.unixMs());
  }

  isPast(at: number): boolean {
    return this.now > at;
  }

  /** A replica leaves it to its primary to delete expired keys. */
  get keepsExpired(): boolean {
    return this.replicaOf !== null;
  }

  newClientId(): number {
    return this.#nextClient++;
  }

  /** 40 hexadecimal digits. */
  newId(): string {
    return Array.from({ length: 40 }, () => Math.floor(this.surroundings.random() * 16).toString(16)).join('');
  }

  below(limit: number): number {
    return Math.floor(this.surroundings.random() * limit);
  }

  noteReady(database: Database, key: string): void {
    if (!this.#ready.some((each) => each.database === database && each.key === key))
      this.#ready.push({ database, key });
  }

  /** Serves clients that block on keys which the last command made ready, the longest-waiting first. */
  serveBlocked(): void {
    while (this.#ready.length > 0) {
      const batch = this.#ready;
      this.#ready = [];
      this.readClock();
      for (const { database, key } of batch) {
        for (const client of [...(database.blocked.get(key) ?? [])]) {
          const { blocked } = client;
          if (blocked === null) continue;
          if (blocked.database !== database) {
            if (database.get(key)?.type === blocked.type) return this.crash();
            continue;
          }
          const reply = this.serve(client, blocked, key);
          if (reply !== null) client.unblock(reply);
        }
      }
    }
  }

  /** @returns the reply to the client that waits; null where it waits on */
  serve(_client: Client, blocked: Blocked, key: string): string | null {
    try {
      return blocked.serve(key);
    } catch (error) {
      if (error instanceof Refusal) return `-${error.text}\r\n`;
      throw error;
    }
  }

  resumeLater(client: Client): void {
    this.#resuming.push(client);
  }

  /** A client has got something without a command of its own. */
  flushLater(client: Client): void {
    this.#unflushed.add(client);
  }

  /** Writes the replies of clients that were unblocked, and processes what they had sent meanwhile. */
  resumeClients(): void {
    for (let client = this.#resuming.shift(); client !== undefined; client = this.#resuming.shift()) {
      client.flush();
      client.resume();
    }
    for (const client of this.#unflushed) client.flush();
    this.#unflushed.clear();
  }

  startCycle(): void {
    this.#cycle ??= this.surroundings.after(CYCLE_MS, () => {
      this.#cycle = null;
      if (this.keepsExpired) return;
      this.readClock();
      for (const database of this.databases) database.expireDue();
      this.flushChanges();
      this.serveBlocked();
      this.resumeClients();
      if (this.databases.some(({ expiring }) => expiring.size > 0)) this.startCycle();
    });
  }

  stopTimers(): void {
    this.#cycle?.cancel();
    this.#cycle = null;
  }
}
