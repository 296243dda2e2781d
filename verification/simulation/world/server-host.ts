/** Puts a model of a server on the network: it listens, stops, and starts again with or without its data. */
import { ModelServer, type ModelOptions } from '../server/server.js';
import type { Engine } from '../server/state.js';
import type { Entry } from '../server/values.js';
import { keyName, partsOf, type KeyName } from './key-name.js';
import type { End } from './network.js';
import type { Host, Process } from './process.js';
import { Unanswered } from './unanswered.js';
import type { SimulatedWorld } from './world.js';

export type { KeyName };

export class ServerHost {
  readonly model: ModelServer;
  /** It ends: what is on its way to it is lost. */
  onStop: () => void = () => undefined;
  /** Called with each command that the server runs. */
  onCommand: (address: string, args: readonly string[]) => void = () => undefined;
  /** Called with each client that blocks, before it is given what it waits for. */
  onServe: (address: string) => void = () => undefined;
  /** Called with each change that a client makes. */
  onChange: (address: string) => void = () => undefined;
  /** Keys that were changed since the checkers looked last. */
  readonly changed = new Set<KeyName>();
  /** Keys of a slot that another node of the cluster has for a while. */
  readonly away = new Map<string, Entry>();
  /** Changes of keys whose replies are on their way. */
  readonly unanswered = new Unanswered();
  /** For how long it works on what has arrived before it answers anything, in ms. */
  worksOn: (bytes: Buffer) => number = () => 0;
  readonly #host: Host;
  readonly #ends = new Set<End>();
  #process: Process;
  /** The address of the client whose command runs. */
  #actor: string | null = null;
  #listens = false;
  #pausedUntil = 0;
  #pausedFrom = 0;
  #worksUntil = 0;
  /** When it ended last. */
  #endedAt = 0;
  /** When it last started without its keys, in ms of virtual time. */
  lostAt = -Infinity;
  /** When it last started, in ms of virtual time. */
  startedAt = 0;

  constructor(
    private readonly world: SimulatedWorld,
    readonly engine: Engine,
    /** Where it listens from the next start on. */
    public address: { readonly host: string; readonly port: number },
    options: Omit<ModelOptions, 'port'> = {},
  ) {
    this.#host = world.newHost(address.host);
    this.#process = world.newProcess(engine, this.#host);
    const random = world.random.fork();
    this.model = new ModelServer(
      engine,
      {
        unixMs: () => world.unixMsAt(this.#host),
        after: (ms, run) => {
          const event = world.events.after(ms, this.#process, run);
          return { cancel: () => world.events.cancel(event) };
        },
        random: () => random.share(),
      },
      { ...options, port: address.port },
    );
    const changed = (database: number, key: string): void => {
      const name = keyName(database, key);
      this.changed.add(name);
      this.unanswered.changed(name);
      if (this.#actor !== null) this.onChange(this.#actor);
    };
    this.model.onWrite = ({ id }, key) => changed(id, key);
    for (const database of this.model.databases) {
      const touch = database.touch.bind(database);
      database.touch = (key) => {
        changed(database.id, key);
        touch(key);
      };
    }
    const changedAll = this.model.noteChangedAll.bind(this.model);
    this.model.noteChangedAll = (databases) => {
      const names = new Set(databases.flatMap(({ keys }) => [...keys.keys()]));
      for (const { id } of databases) for (const name of names) changed(id, name);
      changedAll(databases);
    };
    const process = this.model.process.bind(this.model);
    this.model.process = (client, args) => {
      this.onCommand(client.address, args);
      this.unanswered.asks(client, args);
      this.#actor = client.address;
      this.unanswered.as(client, () => process(client, args));
      this.#actor = null;
    };
    const serve = this.model.serve.bind(this.model);
    this.model.serve = (client, blocked, key) => {
      this.onServe(client.address);
      return this.unanswered.as(client, () => serve(client, blocked, key));
    };
    this.#listen();
  }

  /** By how much its clock is ahead of virtual time. */
  get clockAheadMs(): number {
    return this.#host.clockAheadMs;
  }

  set clockAheadMs(ms: number) {
    this.#host.clockAheadMs = ms;
  }

  get unixMs(): number {
    return this.world.unixMsAt(this.#host);
  }

  /** For how long it has not run, in ms: it has ended, or is stopped; 0 where it runs. */
  get stillMs(): number {
    const { now } = this.world.events;
    if (!this.#listens) return now - this.#endedAt;
    return this.#pausedUntil > now ? now - this.#pausedFrom : 0;
  }

  /** Whether it is asked in vain, and not because of what it was asked. */
  get isSilent(): boolean {
    const isStopped = this.#pausedUntil > this.world.events.now && this.#worksUntil <= this.world.events.now;
    return !this.#listens || isStopped || this.model.troubles.loading;
  }

  get isUp(): boolean {
    return this.#listens;
  }

  /** Ends; its keys are kept for a start with data. */
  stop(): void {
    if (!this.#listens) return;
    this.onStop();
    this.#listens = false;
    this.#endedAt = this.world.events.now;
    this.world.network.unlisten(this.address);
    for (const end of this.#ends) end.close(this.world.random.chance(0.5));
    this.#ends.clear();
    for (const client of [...this.model.clients.values()]) client.close();
  }

  /** What clients see of the key; it changes nothing. */
  entry(key: KeyName): Entry | undefined {
    const { db, name } = partsOf(key);
    const entry = this.model.databases[db].keys.get(name) ?? this.away.get(name);
    const isPast = entry !== undefined && entry.expireAt !== -1 && this.world.unixMsAt(this.#host) > entry.expireAt;
    return isPast ? undefined : entry;
  }

  start(keepData: boolean): void {
    if (this.#listens) return;
    if (!keepData) {
      this.lostAt = this.world.events.now;
      for (const { id, keys } of this.model.databases)
        for (const key of keys.keys()) this.changed.add(keyName(id, key));
    }
    this.startedAt = this.world.events.now;
    this.model.restart(keepData);
    this.#listen();
  }

  /** SIGSTOP, and SIGCONT after so long: what arrives meanwhile is read then, in any order between connections. */
  pause(ms: number): void {
    if (this.#pausedUntil <= this.world.events.now) this.#pausedFrom = this.world.events.now;
    this.#pausedUntil = Math.max(this.#pausedUntil, this.world.events.now + ms);
    for (const end of this.#ends) end.silence(ms + this.world.random.between(0, 0.5));
  }

  #listen(): void {
    this.#listens = true;
    this.world.network.listen({ ...this.address, owner: this.#process, accept: (end) => this.#accept(end) });
  }

  #accept(end: End): void {
    this.#ends.add(end);
    const client = this.model.connect(
      (bytes) => {
        end.send(bytes);
        this.unanswered.replied(client.client);
      },
      () => {
        this.#ends.delete(end);
        end.close();
      },
      end.remote,
    );
    this.unanswered.connected(client.client, end);
    const left = this.#pausedUntil - this.world.events.now;
    if (left > 0) end.silence(left + this.world.random.between(0, 0.5));
    end.received = (bytes) => {
      // While it loads its data, it refuses the command at once.
      const ms = this.model.troubles.loading ? 0 : this.worksOn(bytes);
      if (ms === 0) return client.receive(bytes);
      this.pause(ms);
      this.#worksUntil = Math.max(this.#worksUntil, this.world.events.now + ms);
      this.world.events.after(ms, this.#process, () => {
        if (this.#ends.has(end)) client.receive(bytes);
      });
    };
    const ended = (): void => {
      if (!this.#ends.delete(end)) return;
      client.end();
      end.close();
    };
    end.ended = ended;
    end.closed = ended;
  }
}
