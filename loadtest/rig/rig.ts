/**
 * The processes and the temporary folder of one load test. They are created here, and removed when the test ends, for
 * whatever reason.
 */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterDeath } from '../../shadow-proxy/src/local/guard.js';
import { stopServers } from '../../shadow-proxy/src/local/servers.js';
import { LoadtestError } from './errors.js';

/** A process that was started and answers on `port` (loopback). */
export interface Running {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
}

interface Started {
  readonly name: string;
  readonly child: ChildProcess;
  readonly log: string;
}

/** How long a process may take to end, in ms: a proxy drains, and a profiler writes its file. */
const STOP_MS = 15_000;

export class Rig {
  /** Configurations, logs and state; removed at the end. */
  readonly dir = mkdtempSync(path.join(os.tmpdir(), 'redis-to-keydb-loadtest-'));
  readonly #started: Started[] = [];
  readonly #watched: { readonly name: string; readonly alive: () => boolean }[] = [];
  readonly #callOff = [afterDeath('rm -rf -- "$1"', this.dir)];
  readonly #tasks = new Set<ChildProcess>();
  readonly #first: (() => Promise<void>)[] = [];
  #closing: Promise<void> | null = null;

  constructor() {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () => void this.close().finally(() => process.exit(130)));
    }
  }

  /** A file's path in the rig's folder. */
  file(name: string): string {
    return path.join(this.dir, name);
  }

  /** Starts a program and waits until it accepts connections on `port`. */
  async start(name: string, port: number, command: string, args: readonly string[]): Promise<Running> {
    const log = this.file(`${name}.log`);
    const output = openSync(log, 'a');
    // A session of its own: Ctrl-C in the terminal reaches only this process, which then ends all others in order.
    const child = spawn(command, args, { stdio: ['ignore', output, output], detached: true });
    closeSync(output);
    const started = { name, child, log };
    this.#started.push(started);
    child.once('error', () => undefined); // `pid` stays undefined, which the wait below reports
    if (child.pid !== undefined) this.#callOff.push(afterDeath(`kill -KILL ${child.pid}`));
    await this.#accepting(started, port);
    return { name, port, pid: child.pid! };
  }

  /** Stops a process that `start` has started. */
  async stop({ pid }: Running): Promise<void> {
    const [started] = this.#started.splice(
      this.#started.findIndex(({ child }) => child.pid === pid),
      1,
    );
    await stop(started.child);
  }

  /** Starts a program that listens on no port. @returns a function that stops it */
  begin(name: string, command: string, args: readonly string[]): () => Promise<void> {
    const log = this.file(`${name}.log`);
    const output = openSync(log, 'a');
    const child = spawn(command, args, { stdio: ['ignore', output, output], detached: true, cwd: this.dir });
    closeSync(output);
    const started = { name, child, log };
    this.#started.push(started);
    child.once('error', () => undefined);
    if (child.pid !== undefined) this.#callOff.push(afterDeath(`kill -KILL ${child.pid}`));
    return async () => {
      this.#started.splice(this.#started.indexOf(started), 1);
      await stop(child);
    };
  }

  /** Runs `body` before anything is stopped, however the test ends. */
  beforeClose(body: () => Promise<void>): void {
    this.#first.push(body);
  }

  /** Lets `assertAlive` also check a process that the test did not start. */
  watch(name: string, alive: () => boolean): void {
    this.#watched.push({ name, alive });
  }

  /**
   * Runs a program to its end (at most `limitMs`).
   * @param started called with its process ID
   * @throws {LoadtestError} if it does not succeed
   */
  async run(
    name: string,
    command: string,
    args: readonly string[],
    limitMs: number,
    started: (pid: number) => void = () => undefined,
  ): Promise<void> {
    const log = this.file(`${name}.log`);
    const output = openSync(log, 'w');
    const child = spawn(command, args, { stdio: ['ignore', output, output] });
    closeSync(output);
    this.#tasks.add(child);
    if (child.pid !== undefined) started(child.pid);
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
    const code = await new Promise((resolve) => child.once('error', resolve).once('exit', resolve));
    clearTimeout(timer);
    this.#tasks.delete(child);
    if (code !== 0) throw new LoadtestError('MEASUREMENT', `${name} did not end well${lastLines(log)}`);
  }

  /** Starts a Node process with a channel to it; it is stopped with the others. */
  fork(module: URL, args: readonly string[]): ChildProcess {
    const child = fork(module, args);
    this.#tasks.add(child);
    return child;
  }

  /** @throws {LoadtestError} that names the first process that has ended unexpectedly */
  assertAlive(): void {
    for (const { name, alive } of this.#watched)
      if (!alive()) throw new LoadtestError('DIED', `${name} ended by itself`);
    for (const started of this.#started) {
      if (hasEnded(started.child))
        throw new LoadtestError('DIED', `${started.name} ended by itself${lastLines(started.log)}`);
    }
  }

  /** Stops everything in reverse order, and removes the folder. If the rig is killed, its guards do the same. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const task of this.#tasks) task.kill('SIGKILL');
    // Errors are reported; the processes are stopped nevertheless.
    for (const body of this.#first) await body().catch((error: Error) => process.stderr.write(`${error.message}\n`));
    for (const { child } of this.#started.reverse()) await stop(child);
    await stopServers();
    for (const callOff of this.#callOff) callOff();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #accepting(started: Started, port: number): Promise<void> {
    for (const deadline = Date.now() + 20_000; Date.now() < deadline; await sleep(50)) {
      if (hasEnded(started.child)) break;
      if (await accepts(port)) return;
    }
    throw new LoadtestError(
      'NOT_READY',
      `${started.name} does not accept connections on 127.0.0.1:${port}${lastLines(started.log)}`,
    );
  }
}

const hasEnded = (child: ChildProcess): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

function lastLines(log: string): string {
  const lines = readFileSync(log, 'utf8').trim().split('\n').slice(-8).join('\n');
  return lines ? `; its last words:\n${lines}` : '';
}

async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(timer);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const answer = (yes: boolean): void => {
      socket.destroy();
      resolve(yes);
    };
    socket.once('connect', () => answer(true)).once('error', () => answer(false));
  });
}
