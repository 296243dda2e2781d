/**
 * All that the proxy takes from outside its own code: clock, timers, random, sockets, listeners, HTTP, disk. The rooms
 * call the functions of `io/clock.ts`, `io/timers.ts`, `io/random.ts`, `io/sockets.ts`, `io/http.ts` and
 * `io/files.ts`, which ask the world in use. That is the process's own, Node, unless a simulation puts another one in
 * its place. Several simulated processes may live in one thread: the simulated world knows whose event runs.
 *
 * Promises, `process.nextTick` and `queueMicrotask` stay Node's: they run before the event that made them ends.
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
  /** Milliseconds since 1970, as the host's clock says; it may jump. A whole number. */
  unixMs(): number;
  /** The time of `unixMs` when the monotonic clock was 0, with fractions; it stays the same. */
  unixMsAtZero(): number;
  /** Milliseconds of the monotonic clock in which this process has read its sockets, since the first call. */
  listenedMs(): number;

  // ── timers ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /** Calls `run` once, after `ms`. */
  after(ms: number, run: () => void): Timer;
  /** Calls `run` each `ms`. */
  every(ms: number, run: () => void): Timer;
  /** Ends what `after` or `every` began. */
  clearTimer(timer: Timer): void;
  /** Calls `run` after what has arrived by now was read. */
  nextTurn(run: () => void): void;

  // ── random ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /** From 0 up to 1, without 1. */
  randomShare(): number;
  /** Cannot be guessed. */
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
  /** Runs a program to its end, or to the end of its time. */
  runProgram(program: Program): Promise<ProgramEnd>;

  // ── disk ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  readonly disk: Disk;
  readonly diskAsync: AsyncDisk;
}

/** `setTimeout` and `setInterval` of Node return one. */
export interface Timer {
  /** The process may end although the timer is still to run. */
  unref(): this;
  /** The time begins again. */
  refresh(): this;
}

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/** What the proxy uses of Node's `Socket`. `end` and `close` are emitted as there; `timeout` after `setTimeout`. */
export interface TcpSocket extends Duplex {
  readonly connecting: boolean;
  /** Bytes that have come. */
  readonly bytesRead: number;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  setNoDelay(on: boolean): unknown;
  setKeepAlive(on: boolean, afterMs: number): unknown;
  setTimeout(ms: number): this;
  /** Destroys it as soon as what was written is sent. */
  destroySoon(): void;
}

export interface TlsSocket extends TcpSocket {
  getPeerCertificate(): { readonly valid_to: string };
}

export interface ListenOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly backlog?: number;
  readonly reusePort?: boolean;
}

/** What the proxy uses of Node's `Server`. */
export interface TcpServer extends EventEmitter {
  /** A connection that is one too many is closed, and `drop` emitted. */
  maxConnections: number;
  readonly listening: boolean;
  /** Emits `error` where the address cannot be opened. */
  listen(options: ListenOptions, listening?: () => void): unknown;
  address(): unknown;
  /** Takes no new connections; `closed` is called when the last one has ended. */
  close(closed?: (problem?: Error) => void): unknown;
}

export interface TlsServer extends TcpServer {
  setSecureContext(options: SecureContextOptions): void;
}

export interface HttpServer extends TcpServer {
  closeAllConnections(): void;
}

/**
 * The calls of an operating system on files. Paths are absolute or of the working directory; descriptors are numbers;
 * errors have the system's `code`, such as `ENOENT` and `ENOSPC`. What is made is for the owner alone: files 0600,
 * folders 0700.
 */
export interface Disk {
  /**
   * `r`: to read; `w`: to write, emptied or made; `a+`: to read and to write, made where it is missing, and each write
   * goes to its end. Folders: `r`, to sync.
   */
  open(path: string, flags: 'r' | 'w' | 'a+'): number;
  close(file: number): void;
  /** Up to `length` bytes from `position` of the file into `bytes` at `at`. @returns how many; 0 at the end */
  read(file: number, bytes: Buffer, at: number, length: number, position: number): number;
  /** `bytes[at, at + length)`, at `position`, or null: behind what was written. @returns how many the disk took */
  write(file: number, bytes: Buffer, at: number, length: number, position: number | null): number;
  /** Cuts the file, or fills it up with zeros. */
  truncate(file: number, size: number): void;
  /** Returns when the file, or the names in the folder, outlive the host. */
  sync(file: number): void;
  readFile(path: string): Buffer;
  /** Without what is above it; folders too. */
  stat(path: string): { readonly size: number; readonly mtimeMs: number };
  rename(from: string, to: string): void;
  /** No error where there is none. */
  remove(path: string): void;
  /** With those above it; no error where it is there. */
  mkdir(path: string): void;
  /** Names in a folder. */
  list(path: string): string[];
}

/** The same calls, while the thread goes on. */
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

/** The world in use; for the files of `io/` alone. */
export let world: World = node;
export let { disk, diskAsync } = world;

/**
 * Puts another world in the place of the process's own, for a simulation: before it starts a shard. Null: the
 * process's own again.
 * @public
 */
export function useWorld(next: World | null): void {
  world = next ?? node;
  ({ disk, diskAsync } = world);
}
