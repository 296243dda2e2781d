/**
 * Everything that the proxy takes from outside its own code: clock, timers, random, sockets, listeners, HTTP, disk. The
 * rooms call the functions of `io/clock.ts`, `io/timers.ts`, `io/random.ts`, `io/sockets.ts`, `io/http.ts` and
 * `io/files.ts`, which use the current world. By default that is Node's; a simulation replaces it. Several simulated
 * processes may live in one thread: the simulated world knows to which process an event belongs.
 *
 * Promises, `process.nextTick` and `queueMicrotask` stay Node's: they run before the event that created them ends.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import fs from 'node:fs';
import { createServer as createNodeHttpServer, type RequestListener, type ServerOptions } from 'node:http';
import { connect, createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectWithTls, createServer as createServerWithTls } from 'node:tls';
import type { ConnectionOptions, SecureContextOptions, TlsOptions } from 'node:tls';
import { promisify } from 'node:util';
import { ProcessListening } from './listening-clock.js';
import { runProgram, type Program, type ProgramEnd } from './run-program.js';

export interface World {
  // ── clock ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  /** Milliseconds of a clock that never jumps; more than 0. */
  monotonicMs(): number;
  /** Milliseconds since 1970 by the host's clock, which may jump. A whole number. */
  unixMs(): number;
  /** The value of `unixMs` when the monotonic clock was 0, with fractions. It never changes. */
  unixMsAtZero(): number;
  /** Milliseconds of the monotonic clock in which this process has read its sockets, since the first call. */
  listenedMs(): number;

  // ── timers ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /** Calls `run` once, after `ms`. */
  after(ms: number, run: () => void): Timer;
  /** Calls `run` every `ms`. */
  every(ms: number, run: () => void): Timer;
  /** Stops a timer of `after` or `every`. */
  clearTimer(timer: Timer): void;
  /** Calls `run` after everything that has arrived by now was read. */
  nextTurn(run: () => void): void;

  // ── random ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /** A number from 0 up to, but not including, 1. */
  randomShare(): number;
  /** Bytes for secrets. */
  randomBytes(count: number): Buffer;
  randomUuid(): string;

  // ── network ───────────────────────────────────────────────────────────────────────────────────────────────────────
  /** Emits `connect`, or `error`. */
  connectTcp(to: SocketAddress): TcpSocket;
  /** Emits `secureConnect` when the peer's certificate was verified, or `error`. */
  connectTls(to: SocketAddress & ConnectionOptions): TlsSocket;
  createTcpServer(connected: (socket: TcpSocket) => void): TcpServer;
  /** `connected` is called after the handshake. */
  createTlsServer(options: TlsOptions, connected: (socket: TcpSocket) => void): TlsServer;
  createHttpServer(options: ServerOptions, answer: RequestListener): HttpServer;
  /** An HTTP request. */
  fetch(url: string, request: RequestInit): Promise<Response>;

  // ── programs ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /** Runs a program until it ends, or until its deadline. */
  runProgram(program: Program): Promise<ProgramEnd>;

  // ── disk ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  readonly disk: Disk;
  readonly diskAsync: AsyncDisk;
}

/** What Node's `setTimeout` and `setInterval` return. */
export interface Timer {
  /** The process may end although the timer is still running. */
  unref(): this;
  /** Starts the time again. */
  refresh(): this;
}

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * The part of Node's `Socket` that the proxy uses. `end` and `close` are emitted as in Node; `timeout` after
 * `setTimeout`.
 */
export interface TcpSocket extends Duplex {
  readonly connecting: boolean;
  /** Number of bytes that have arrived. */
  readonly bytesRead: number;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  setNoDelay(on: boolean): unknown;
  setKeepAlive(on: boolean, afterMs: number): unknown;
  setTimeout(ms: number): this;
  /** Destroys the socket as soon as everything written is sent. */
  destroySoon(): void;
}

export interface TlsSocket extends TcpSocket {
  getPeerCertificate(): { readonly valid_to: string };
}

export interface ListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly backlog?: number;
  readonly reusePort?: boolean;
}

/** The part of Node's `Server` that the proxy uses. */
export interface TcpServer extends EventEmitter {
  /** Further connections are closed, and `drop` is emitted. */
  maxConnections: number;
  readonly listening: boolean;
  /** Emits `error` if the address cannot be opened. */
  listen(options: ListenOptions, listening?: () => void): unknown;
  address(): unknown;
  /** Accepts no new connections; `closed` is called when the last one has ended. */
  close(closed?: (problem?: Error) => void): unknown;
}

export interface TlsServer extends TcpServer {
  setSecureContext(options: SecureContextOptions): void;
}

export interface HttpServer extends TcpServer {
  closeAllConnections(): void;
}

/**
 * The file calls of an operating system. Paths are absolute, or relative to the working directory. Descriptors are
 * numbers. Errors have the system's `code`, such as `ENOENT` and `ENOSPC`. New files and folders belong to the owner
 * alone: mode 0600 and 0700.
 */
export interface Disk {
  /**
   * `r`: read. `w`: write; the file is created or emptied. `a+`: read and append; the file is created if missing.
   * Folders: `r`, for `sync`.
   */
  open(path: string, flags: 'r' | 'w' | 'a+'): number;
  close(file: number): void;
  /**
   * Reads up to `length` bytes from `position` of the file into `bytes` at `at`. @returns number of bytes; 0 at the end
   */
  read(file: number, bytes: Buffer, at: number, length: number, position: number): number;
  /**
   * Writes `bytes[at, at + length)` at `position`; null: behind the last write. @returns number of bytes that the disk
   * took
   */
  write(file: number, bytes: Buffer, at: number, length: number, position: number | null): number;
  /** Cuts the file, or fills it up with zeros. */
  truncate(file: number, size: number): void;
  /** Returns when the file, or the names in the folder, survive a crash of the host. */
  sync(file: number): void;
  readFile(path: string): Buffer;
  /** Size and time of a file or a folder. */
  stat(path: string): { readonly size: number; readonly mtimeMs: number };
  rename(from: string, to: string): void;
  /** Removes a file. No error if there is none. */
  remove(path: string): void;
  /** Creates the folder and its parents. No error if it exists. */
  mkdir(path: string): void;
  /** Names in a folder. */
  list(path: string): string[];
}

/** The same calls, without blocking the thread. */
export type AsyncDisk = {
  readonly [Name in keyof Disk]: (...args: Parameters<Disk[Name]>) => Promise<ReturnType<Disk[Name]>>;
};

const FILE_MODE = 0o600;
const FOLDER = { recursive: true, mode: 0o700 } as const;
const background = {
  open: promisify(fs.open),
  read: promisify(fs.read),
  write: promisify(fs.write),
};
const listening = new ProcessListening();

const node: World = {
  monotonicMs: () => performance.now(),
  unixMs: () => Date.now(),
  unixMsAtZero: () => performance.timeOrigin,
  listenedMs: () => listening.ms(),

  after: (ms, run) => setTimeout(run, ms),
  every: (ms, run) => setInterval(run, ms),
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout),
  nextTurn: (run) => void setImmediate(run),

  randomShare: () => Math.random(),
  randomBytes: (count) => randomBytes(count),
  randomUuid: () => randomUUID(),

  connectTcp: (to) => connect({ ...to, noDelay: true }),
  connectTls: (to) => connectWithTls(to),
  createTcpServer: (connected) => createServer({ noDelay: true }, connected),
  createTlsServer: (options, connected) => createServerWithTls(options, connected),
  createHttpServer: (options, answer) => createNodeHttpServer(options, answer),
  fetch: (url, request) => fetch(url, request),
  runProgram,

  disk: {
    open: (path, flags) => fs.openSync(path, flags, FILE_MODE),
    close: (file) => fs.closeSync(file),
    read: (file, bytes, at, length, position) => fs.readSync(file, bytes, at, length, position),
    write: (file, bytes, at, length, position) => fs.writeSync(file, bytes, at, length, position),
    truncate: (file, size) => fs.ftruncateSync(file, size),
    sync: (file) => fs.fsyncSync(file),
    readFile: (path) => fs.readFileSync(path),
    stat: (path) => fs.statSync(path),
    rename: (from, to) => fs.renameSync(from, to),
    remove: (path) => fs.rmSync(path, { force: true }),
    mkdir: (path) => void fs.mkdirSync(path, FOLDER),
    list: (path) => fs.readdirSync(path),
  },
  diskAsync: {
    open: (path, flags) => background.open(path, flags, FILE_MODE),
    close: promisify(fs.close),
    read: async (...args) => (await background.read(...args)).bytesRead,
    write: async (...args) => (await background.write(...args)).bytesWritten,
    truncate: promisify(fs.ftruncate),
    sync: promisify(fs.fsync),
    readFile: (path) => fs.promises.readFile(path),
    stat: (path) => fs.promises.stat(path),
    rename: (from, to) => fs.promises.rename(from, to),
    remove: (path) => fs.promises.rm(path, { force: true }),
    mkdir: async (path) => void (await fs.promises.mkdir(path, FOLDER)),
    list: (path) => fs.promises.readdir(path),
  },
};

/** The current world; only for the files of `io/`. */
export let world: World = node;
export let { disk, diskAsync } = world;

/**
 * Replaces the current world, for a simulation, before it starts a shard. Null: Node's world again.
 * @public
 */
export function useWorld(next: World | null): void {
  world = next ?? node;
  ({ disk, diskAsync } = world);
}
