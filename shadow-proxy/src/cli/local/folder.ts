/**
 * The folder of a practice migration on this machine, and its processes.
 *
 *   <folder>/.redis-to-keydb   marks the folder as ours, so that it may be removed
 *   <folder>/running.json      exists while the migration runs; removed when its process ends, for whatever reason
 *   <folder>/migration.yaml    its plan; with state/ and log
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { typed } from '../../text/invocation.js';
import { quoted } from '../../text/shell.js';
import { CliError, exitCode } from '../exit.js';

export interface Running {
  /** The ID of the program that started the migration: Terraform compares it with its own. */
  readonly id: string;
  readonly pid: number;
  readonly source: Server;
  readonly target: Server & { readonly standIn: string | null };
  /** URLs of the proxy for clients, and of the admin HTTP. */
  readonly proxy: string;
  readonly admin: string;
  /** Whether source, target and proxy are clusters: then the servers are those of slot 0. */
  readonly cluster?: boolean;
  readonly plan: string;
}

export interface Server {
  readonly label: string;
  readonly url: string;
  readonly port: number;
  readonly pid: number;
}

const MARK = '.redis-to-keydb';
const STOP_MS = 20_000;
const KILL_MS = 5_000;

export class Folder {
  readonly path: string;

  constructor(path: string) {
    this.path = resolve(path);
  }

  file(name: 'running.json' | 'migration.yaml' | 'log' | 'state'): string {
    return join(this.path, name);
  }

  /** The running migration; null if there is none. */
  async running(): Promise<Running | null> {
    const running = this.#read();
    return running !== null && (await this.#isOurs(running)) ? running : null;
  }

  /** Creates the folder, empty. @throws {CliError} if a migration runs in it, or it contains foreign files */
  async claim(): Promise<void> {
    const running = await this.running();
    if (running !== null)
      throw new CliError(
        'running',
        `a migration runs in ${this.path} already (process ${running.pid}): stop it with ${typed(`shadow-compare local down --directory ${quoted(this.path)}`)}`,
        exitCode.fails,
      );
    if (existsSync(this.path) && readdirSync(this.path).length > 0 && !this.#isMarked()) {
      throw new CliError(
        'directory',
        `--directory ${this.path} holds other files: give an empty or new directory`,
        exitCode.usage,
      );
    }
    this.remove();
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.path, MARK), 'shadow-compare local: `local down` removes this directory\n');
  }

  write(running: Running): void {
    const temporary = `${this.file('running.json')}.new`;
    writeFileSync(temporary, `${JSON.stringify(running, null, 2)}\n`);
    renameSync(temporary, this.file('running.json'));
  }

  /** Ends the processes, gracefully at first, and removes the folder. @returns whether anything ran */
  async end(): Promise<boolean> {
    const running = this.#read();
    const ran = running !== null && (await this.#isOurs(running));
    if (ran) await endProcess(running.pid, () => this.#isOurs(running));
    // If that process was killed before, its servers may still be stopping.
    for (const server of running === null ? [] : [running.source, running.target])
      await waitForEnd(() => isServer(server), KILL_MS);
    this.remove();
    return ran;
  }

  /** The log of the process, for an error's message. */
  log(): string {
    const text = existsSync(this.file('log')) ? readFileSync(this.file('log'), 'utf8') : '';
    return text
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('{'))
      .slice(-5)
      .join('\n');
  }

  remove(): void {
    if (this.#isMarked()) rmSync(this.path, { recursive: true, force: true });
  }

  #isMarked(): boolean {
    return existsSync(join(this.path, MARK));
  }

  #read(): Running | null {
    try {
      return JSON.parse(readFileSync(this.file('running.json'), 'utf8')) as Running;
    } catch {
      return null;
    }
  }

  /** The process ID may belong to another process by now. */
  async #isOurs({ pid }: Running): Promise<boolean> {
    return (await commandOf(pid)).includes(this.path);
  }
}

async function endProcess(pid: number, alive: () => Promise<boolean>): Promise<void> {
  signal(pid, 'SIGTERM');
  if (await waitForEnd(alive, STOP_MS)) return;
  signal(pid, 'SIGKILL');
  await waitForEnd(alive, KILL_MS);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended meanwhile.
  }
}

/** A server shows its port in the list of processes. */
const isServer = async ({ pid, port }: Server): Promise<boolean> => (await commandOf(pid)).includes(`:${port}`);

async function waitForEnd(alive: () => Promise<boolean>, forMs: number): Promise<boolean> {
  for (const deadline = Date.now() + forMs; Date.now() < deadline; await sleep(50)) if (!(await alive())) return true;
  return false;
}

/** The command line of a process; empty if the process does not exist or is a zombie. Linux may have no `ps`. */
export async function commandOf(pid: number): Promise<string> {
  if (existsSync('/proc/self/cmdline'))
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ');
  return new Promise((done) =>
    execFile('ps', ['-o', 'args=', '-ww', '-p', String(pid)], (error, stdout) => done(error ? '' : stdout)),
  );
}
