/**
 * The world that the product lives in during a simulation: one thread, virtual time, one seed. It serves the process
 * whose event runs.
 */
import type { AsyncDisk, Disk as ProductDisk, Timer, World } from '../../../shadow-proxy/src/io/world.js';
import { Disk } from './disk.js';
import { Events, type Event } from './events.js';
import { Network, type NetworkOptions } from './network.js';
import { Host, Process } from './process.js';
import { Random } from './random.js';
import { connect, Server } from './sockets.js';

/** Virtual time begins here: Unix milliseconds. */
const EPOCH = 1_800_000_000_000;
/** What a monotonic clock says at the beginning. */
const UPTIME_MS = 1_000;
/** How long a turn of the event loop takes. */
const TURN_MS = 0.005;

export class SimulatedWorld implements World {
  readonly events = new Events();
  readonly random: Random;
  readonly network: Network;
  readonly disk: ProductDisk;
  readonly diskAsync: AsyncDisk;
  /** How long an asynchronous call to a disk takes. */
  diskMs: readonly [number, number] = [0.02, 0.5];
  readonly #product: Random;

  constructor(seed: number, network: NetworkOptions) {
    this.random = new Random(seed);
    this.#product = this.random.fork();
    this.network = new Network(this.events, this.random.fork(), network);
    this.disk = this.#disk();
    this.diskAsync = this.#asyncDisk();
  }

  newHost(address: string): Host {
    const host: Host = new Host(address, new Disk(this.random.fork(), () => this.unixMsAt(host)));
    host.disk.place('/proc/sys/kernel/random/boot_id', this.randomUuid());
    return host;
  }

  newProcess(name: string, host: Host): Process {
    return new Process(name, host, this.network);
  }

  /** With a fraction. */
  unixMsAt({ clockAheadMs }: Host): number {
    return EPOCH + this.events.now + clockAheadMs;
  }

  get #process(): Process {
    const { current } = this.events;
    if (!(current instanceof Process)) throw new Error('the product runs outside of a simulated process');
    return current;
  }

  // ── clock ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  monotonicMs(): number {
    return UPTIME_MS + this.events.now;
  }

  unixMs(): number {
    return Math.floor(this.unixMsAt(this.#process.host));
  }

  unixMsAtZero(): number {
    return Math.floor(this.unixMsAt(this.#process.host)) - this.monotonicMs();
  }

  listenedMs(): number {
    return this.events.now;
  }

  // ── timers ────────────────────────────────────────────────────────────────────────────────────────────────────────

  after(ms: number, run: () => void): Timer {
    return new SimulatedTimer(this.events, this.#process, ms, run, false);
  }

  every(ms: number, run: () => void): Timer {
    return new SimulatedTimer(this.events, this.#process, ms, run, true);
  }

  clearTimer(timer: Timer): void {
    (timer as SimulatedTimer).stop();
  }

  nextTurn(run: () => void): void {
    this.events.after(TURN_MS, this.#process, run);
  }

  // ── random ────────────────────────────────────────────────────────────────────────────────────────────────────────

  randomShare(): number {
    return this.#product.share();
  }

  randomBytes(count: number): Buffer {
    return this.#product.bytes(count);
  }

  randomUuid(): string {
    const digits = this.randomBytes(16).toString('hex');
    return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5');
  }

  // ── network ───────────────────────────────────────────────────────────────────────────────────────────────────────

  connectTcp(to: { readonly host: string; readonly port: number }): ReturnType<World['connectTcp']> {
    return connect(this.#process, this.network, to);
  }

  createTcpServer(connected: Parameters<World['createTcpServer']>[0]): Server {
    return new Server(this.#process, this.network, connected);
  }

  connectTls(): never {
    throw new Error('the simulation has no TLS');
  }

  createTlsServer(): never {
    throw new Error('the simulation has no TLS');
  }

  createHttpServer(): never {
    throw new Error('the simulation has no HTTP');
  }

  fetch(): Promise<never> {
    return Promise.reject(new TypeError('fetch failed'));
  }

  runProgram(): never {
    throw new Error('the simulation has no programs');
  }

  // ── disk ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  #disk(): ProductDisk {
    const of = (): Disk => this.#process.host.disk;
    return {
      open: (path, flags) => {
        const process = this.#process;
        const file = process.host.disk.open(path, flags);
        process.files.add(file);
        return file;
      },
      close: (file) => {
        this.#process.files.delete(file);
        of().close(file);
      },
      read: (...args) => of().read(...args),
      write: (...args) => of().write(...args),
      truncate: (...args) => of().truncate(...args),
      sync: (file) => of().sync(file),
      readFile: (path) => of().readFile(path, this.#process),
      stat: (path) => of().stat(path),
      rename: (from, to) => of().rename(from, to),
      remove: (path) => of().remove(path),
      mkdir: (path) => of().mkdir(path),
      list: (path) => of().list(path),
    };
  }

  /** The same calls: each is made after a while, or never, where the process ends before. */
  #asyncDisk(): AsyncDisk {
    const { disk, events } = this;
    const later =
      <Args extends unknown[], T>(call: (...args: Args) => T) =>
      (...args: Args): Promise<T> =>
        new Promise((resolve, reject) => {
          events.after(this.random.between(...this.diskMs), this.#process, () => {
            try {
              resolve(call(...args));
            } catch (problem) {
              reject(problem as Error);
            }
          });
        });
    return {
      open: later(disk.open),
      close: later(disk.close),
      read: later(disk.read),
      write: later(disk.write),
      truncate: later(disk.truncate),
      sync: later(disk.sync),
      readFile: later(disk.readFile),
      stat: later(disk.stat),
      rename: later(disk.rename),
      remove: later(disk.remove),
      mkdir: later(disk.mkdir),
      list: later(disk.list),
    };
  }
}

class SimulatedTimer implements Timer {
  #event: Event;

  constructor(
    private readonly events: Events,
    private readonly process: Process,
    ms: number,
    private readonly task: () => void,
    private readonly repeats: boolean,
  ) {
    // As Node's: at least a millisecond.
    this.ms = ms >= 1 ? Math.trunc(ms) : 1;
    this.#event = this.#begin();
  }

  private readonly ms: number;

  unref(): this {
    return this;
  }

  refresh(): this {
    this.stop();
    this.#event = this.#begin();
    return this;
  }

  stop(): void {
    this.events.cancel(this.#event);
  }

  #begin(): Event {
    return this.events.after(this.ms, this.process, () => {
      if (this.repeats) this.#event = this.#begin();
      this.task();
    });
  }
}
