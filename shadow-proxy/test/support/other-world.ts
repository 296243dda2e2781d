/**
 * A world that is not Node's: its clock is stopped until the test moves it, its random numbers begin again with each
 * world, its sockets and its files are in memory.
 */
import { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import type { AsyncDisk, Disk, TcpServer, TcpSocket, Timer, World } from '../../src/io/world.js';

/** When its monotonic clock is 0. */
export const BEGINS_AT = Date.UTC(2040, 0, 1);

interface Due {
  at: number;
  readonly everyMs: number | null;
  readonly run: () => void;
}

export class OtherWorld implements World {
  /** Listeners by port. */
  readonly listeners = new Map<number, (socket: TcpSocket) => void>();
  /** Its files by path. */
  readonly files = new Map<string, Buffer>();
  readonly disk = memoryDisk(this.files, () => this.unixMs());
  readonly diskAsync = inBackground(this.disk);
  #now = 1;
  #shares = 0;
  readonly #due = new Set<Due>();

  monotonicMs = (): number => this.#now;
  listenedMs = (): number => this.#now;
  unixMs = (): number => BEGINS_AT + Math.floor(this.#now);
  unixMsAtZero = (): number => BEGINS_AT;

  after = (ms: number, run: () => void): Timer => this.#timer({ at: this.#now + ms, everyMs: null, run });
  every = (ms: number, run: () => void): Timer => this.#timer({ at: this.#now + ms, everyMs: ms, run });
  clearTimer = (timer: Timer): void => void this.#due.delete((timer as Timer & { readonly due: Due }).due);
  nextTurn = (run: () => void): void => void this.after(0, run);

  randomShare = (): number => (++this.#shares % 10) / 10;
  randomBytes = (count: number): Buffer => Buffer.alloc(count, ++this.#shares);
  randomUuid = (): string => `uuid-${++this.#shares}`;

  connectTcp = ({ port }: { readonly port: number }): TcpSocket => {
    const [here, there] = pair();
    this.nextTurn(() => {
      const connected = this.listeners.get(port);
      if (connected === undefined) return here.destroy(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
      here.connecting = false;
      connected(there);
      here.emit('connect');
    });
    return here;
  };
  createTcpServer = (connected: (socket: TcpSocket) => void): TcpServer => new MemoryServer(this, connected);
  connectTls = (): never => refuse('TLS');
  createTlsServer = (): never => refuse('TLS');
  createHttpServer = (): never => refuse('HTTP');
  fetch = (): never => refuse('HTTP');
  runProgram = (): never => refuse('programs');

  /** Moves the clock: what is due on the way runs in its order, and all that follows from it has happened. */
  async advance(ms: number): Promise<void> {
    const to = this.#now + ms;
    for (;;) {
      await settled();
      const [next] = [...this.#due].filter(({ at }) => at <= to).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.at);
      if (next.everyMs === null) this.#due.delete(next);
      else next.at += next.everyMs;
      next.run();
    }
    this.#now = to;
  }

  #timer(due: Due): Timer {
    this.#due.add(due);
    const timer = {
      due,
      unref: () => timer,
      refresh: () => {
        due.at = this.#now + (due.everyMs ?? 0);
        return timer;
      },
    };
    return timer as unknown as Timer;
  }
}

const refuse = (what: string): never => {
  throw new Error(`this world has no ${what}`);
};

/** Promises and ticks have run. */
async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise<void>((resolve) => void setImmediate(resolve));
}

class MemorySocket extends Duplex implements TcpSocket {
  connecting = true;
  bytesRead = 0;
  peer: MemorySocket | undefined;
  setNoDelay = (): this => this;
  setKeepAlive = (): this => this;
  setTimeout = (): this => this;
  destroySoon(): void {
    this.end(() => this.destroy());
  }
  override _read(): void {
    // What comes is pushed.
  }
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.peer!.bytesRead += chunk.length;
    this.peer!.push(chunk);
    done();
  }
  override _final(done: () => void): void {
    this.peer!.push(null);
    done();
  }
}

function pair(): [MemorySocket, MemorySocket] {
  const [one, other] = [new MemorySocket(), new MemorySocket()];
  [one.peer, other.peer] = [other, one];
  other.connecting = false;
  return [one, other];
}

class MemoryServer extends EventEmitter implements TcpServer {
  maxConnections = Infinity;
  #port = 0;

  constructor(
    private readonly world: OtherWorld,
    private readonly connected: (socket: TcpSocket) => void,
  ) {
    super();
  }

  get listening(): boolean {
    return this.#port !== 0;
  }

  listen({ port }: { readonly port: number }, listening: () => void): void {
    this.#port = port;
    this.world.listeners.set(port, this.connected);
    this.world.nextTurn(listening);
  }

  address(): { readonly port: number } {
    return { port: this.#port };
  }

  close(closed: () => void): void {
    this.world.listeners.delete(this.#port);
    this.world.nextTurn(closed);
  }
}

/** Files alone, and folders as a beginning of their paths. */
export function memoryDisk(files: Map<string, Buffer>, unixMs: () => number): Disk {
  const open = new Map<number, { readonly path: string; readonly appends: boolean; at: number }>();
  const missing = (path: string): Error => Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
  const bytesOf = (path: string): Buffer => {
    const bytes = files.get(path);
    if (bytes === undefined) throw missing(path);
    return bytes;
  };
  let last = 0;
  return {
    open(path, flags) {
      const isFolder = [...files.keys()].some((each) => each.startsWith(`${path}/`));
      if (flags === 'r' && !isFolder) bytesOf(path);
      if (flags === 'w' || (flags === 'a+' && !files.has(path))) files.set(path, Buffer.alloc(0));
      open.set(++last, { path, appends: flags === 'a+', at: 0 });
      return last;
    },
    close: (file) => void open.delete(file),
    read: (file, bytes, at, length, position) =>
      bytesOf(open.get(file)!.path).copy(bytes, at, position, position + length),
    write(file, bytes, at, length, position) {
      const written = open.get(file)!;
      const before = bytesOf(written.path);
      const from = position ?? (written.appends ? before.length : written.at);
      const after = Buffer.concat([before, Buffer.alloc(Math.max(0, from + length - before.length))]);
      bytes.copy(after, from, at, at + length);
      files.set(written.path, after);
      written.at = from + length;
      return length;
    },
    truncate(file, size) {
      const { path } = open.get(file)!;
      files.set(path, Buffer.concat([bytesOf(path), Buffer.alloc(size)]).subarray(0, size));
    },
    sync: () => undefined,
    readFile: (path) => Buffer.from(bytesOf(path)),
    stat: (path) => ({ size: bytesOf(path).length, mtimeMs: unixMs() }),
    rename(from, to) {
      const bytes = bytesOf(from);
      files.delete(from);
      files.set(to, bytes);
      // As of an operating system: who has it open goes on writing to it under its new name.
      for (const [file, each] of open) if (each.path === from) open.set(file, { ...each, path: to });
    },
    remove: (path) => void files.delete(path),
    mkdir: () => undefined,
    list: (path) =>
      [...files.keys()].filter((each) => each.startsWith(`${path}/`)).map((each) => each.slice(path.length + 1)),
  };
}

export const inBackground = (disk: Disk): AsyncDisk =>
  Object.fromEntries(
    Object.entries(disk).map(([name, call]) => [
      name,
      async (...args: unknown[]) => (call as (...args: unknown[]) => unknown)(...args),
    ]),
  ) as unknown as AsyncDisk;
