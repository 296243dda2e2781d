/**
 * Servers on this machine, for the demo, the tests and the benchmark. Each listens on loopback only, and keeps its
 * files in a directory of its own. It saves nothing unless configured, and ends with this process.
 *
 * Room: local: servers on this machine, for the demo, the tests and the benchmark.
 * Called by: cli.
 * Calls: text, resp, route.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from './port.js';
import { afterDeath } from './guard.js';
import { ping } from './ping.js';
import { findRedis, findTarget, findValkey, requireKeydb, ServerMissing, type Program } from './program.js';

export { ServerMissing } from './program.js';

const HOST = '127.0.0.1';
const START_MS = 15_000;
const PORT_MS = 1_500;
const STOP_MS = 5_000;
/** Log lines that a server prints once it has the port; a Sentinel prints its ID. */
const LISTENS = /Server initialized|Ready to accept connections|Sentinel ID is/i;

/** A server did not start. The message ends with the last lines of its log. */
export class ServerFailed extends Error {
  override readonly name = 'ServerFailed';
  readonly code = 'SERVER_FAILED';
}

/** Lines of the configuration file: a value as written in the file, or a list with one line for each value. */
export type ServerConfig = Readonly<Record<string, string | number | readonly string[]>>;

export interface ServerOptions {
  /** A free port when absent. */
  readonly port?: number;
  /**
   * Settings that replace the defaults, such as `{ requirepass: 'pw', user: ['app on >pw ~* &* +@all'], maxmemory:
   * '10mb' }`.
   */
  readonly config?: ServerConfig;
  /** Paths of PEM files: then the port accepts TLS only. Not possible in a container. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string };
  /** Environment variables, in addition to this process's. */
  readonly env?: NodeJS.ProcessEnv;
}

/** One running server. */
export class LocalServer {
  readonly host = HOST;
  #child: ChildProcess | null = null;
  #callOff: () => void = () => {};
  readonly #containerName: string;

  /** Use `startRedis` and similar functions. */
  constructor(
    readonly program: Program,
    readonly port: number,
    /** The server's own directory, with its configuration, log, and saved data. */
    readonly dir: string,
    readonly tls: ServerOptions['tls'],
    readonly args: readonly string[],
    /** The server that runs instead of the requested one, such as `redis 7.0.15`. */
    readonly standIn?: string,
    private readonly env: NodeJS.ProcessEnv = {},
  ) {
    this.#containerName = `redis-to-keydb-${process.pid}-${port}`;
  }

  /** For example `KeyDB 6.3.4`. */
  get label(): string {
    return `${LABELS[this.program.name]} ${this.program.version}`;
  }

  get url(): string {
    return `${this.tls ? 'rediss' : 'redis'}://${HOST}:${this.port}`;
  }

  /** The server's process (the engine's client process for a container); undefined while it is down. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts a server that is down, on its port. Resolves when it answers PING. @throws {ServerFailed} */
  async start(): Promise<void> {
    const began = Date.now();
    for (;;) {
      const child = this.#spawn();
      const alive = (): boolean => this.#child === child;
      const answered = await ping({ host: HOST, port: this.port, tls: this.tls }, began + START_MS, alive);
      // If another server has the port, that server answered, and ours is about to exit.
      while (answered && alive() && !LISTENS.test(this.log()) && Date.now() < began + START_MS) await sleep(5);
      if (answered && alive()) return;
      await this.kill('SIGKILL');
      // The port of a server that has just ended may be in use briefly.
      const log = this.log();
      const isTaken = /Address already in use/i.test(log);
      if (!isTaken || Date.now() > began + PORT_MS) {
        const why = isTaken ? 'the port is in use' : log.trim().split('\n').slice(-5).join(' | ');
        throw new ServerFailed(`${this.label} did not start on port ${this.port}: ${why}`);
      }
      await sleep(100);
    }
  }

  /** The output of the last process. */
  log(): string {
    return readFileSync(join(this.dir, 'log'), 'utf8');
  }

  /**
   * Sends the signal. After SIGKILL and SIGTERM, resolves when the process has ended; after SIGSTOP, when every thread
   * has stopped.
   */
  async kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    const ends = signal === 'SIGKILL' || signal === 'SIGTERM';
    child.ref();
    const exit = ends ? once(child, 'exit') : null;
    const container = this.program.container;
    if (container === undefined) child.kill(signal);
    else
      await promisify(execFile)(container.engine, ['kill', '--signal', signal, this.#containerName]).catch(() =>
        child.kill('SIGKILL'),
      );
    await exit;
    if (signal === 'SIGSTOP' && container === undefined)
      while (child.exitCode === null && isRunning(child.pid!)) await sleep(1);
    child.unref();
  }

  /** Ends the server gracefully (it saves if configured to), and starts it on the same port. */
  async restart(): Promise<void> {
    await this.kill('SIGCONT');
    const impatient = setTimeout(() => void this.kill('SIGKILL'), STOP_MS);
    await this.kill('SIGTERM');
    clearTimeout(impatient);
    await this.start();
  }

  /** Kills the server and removes its directory. It may be called twice. */
  async stop(): Promise<void> {
    await this.kill('SIGKILL');
    await rm(this.dir, { recursive: true, force: true });
    this.#callOff();
    running.delete(this);
  }

  #spawn(): ChildProcess {
    const { container, path } = this.program;
    const out = openSync(join(this.dir, 'log'), 'w');
    const [command, args] =
      container === undefined ? [path, this.args] : [container.engine, this.#containerArgs(container.image)];
    // A session of its own: Ctrl-C in the terminal reaches only this process, which ends before the servers do.
    const child = spawn(command, args, {
      cwd: this.dir,
      detached: true,
      stdio: ['ignore', out, out],
      env: { ...process.env, ...this.env },
    });
    closeSync(out);
    child.unref();
    running.add(this);
    this.#child = child;
    this.#guard(
      container === undefined ? `kill -KILL ${child.pid}` : `'${container.engine}' rm --force ${this.#containerName}`,
    );
    const ended = (): void => {
      if (this.#child !== child) return;
      this.#child = null;
      this.#guard(':');
    };
    child.once('exit', ended);
    child.once('error', ended);
    return child;
  }

  /** The cleanup of the process, and then the directory, if this process ends first. */
  #guard(kill: string): void {
    this.#callOff();
    if (running.has(this)) this.#callOff = afterDeath(`${kill}; rm -rf -- "$1"`, this.dir);
  }

  #containerArgs(image: string): string[] {
    const publish = `${HOST}:${this.port}:${this.port}`;
    return ['run', '--rm', '--name', this.#containerName, '--publish', publish, image, this.program.path, ...this.args];
  }
}

const LABELS: Record<Program['name'], string> = { redis: 'Redis', keydb: 'KeyDB', valkey: 'Valkey' };

const running = new Set<LocalServer>();

/** Stops every server that this process started and has not stopped. */
export async function stopServers(): Promise<void> {
  await Promise.all([...running].map((server) => server.stop()));
}

/** The source of a migration: Redis. @throws {ServerMissing} {ServerFailed} */
export async function startRedis(options: ServerOptions = {}): Promise<LocalServer> {
  return launch(await findRedis(), options);
}

/** KeyDB without a stand-in. @throws {ServerMissing} {ServerFailed} */
export async function startKeydb(options: ServerOptions = {}): Promise<LocalServer> {
  return launch(await requireKeydb(), options);
}

/** A server to which people may move from KeyDB. @throws {ServerMissing} {ServerFailed} */
export async function startValkey(options: ServerOptions = {}): Promise<LocalServer> {
  const program = await findValkey();
  if (program !== null) return launch(program, options);
  throw new ServerMissing('no valkey-server: install Valkey, or set VALKEY_SERVER to its path');
}

/** KeyDB if this machine has it; otherwise a stand-in, which `standIn` names: callers must report it. */
export async function startTarget(options: ServerOptions = {}): Promise<LocalServer> {
  const program = await findTarget({ tls: options.tls !== undefined });
  return launch(program, options, program.name === 'keydb' ? undefined : `${program.name} ${program.version}`);
}

/** The first line of output if a stand-in is used instead of KeyDB. */
export const standInNotice = ({ standIn }: Pick<LocalServer, 'standIn'>): string =>
  `NOTE: there is no KeyDB on this machine: ${standIn} stands in for it. docs/install.md#keydb says how to get KeyDB.`;

/** The last lines of output if a stand-in was used: what was not shown. */
export function standInLimits({ standIn = '' }: Pick<LocalServer, 'standIn'>): string {
  const own = 'its threads, its speed, its own defects and error texts, active-active';
  return standIn.startsWith('redis 6.2.')
    ? `${standIn} stood in for KeyDB: it has the same commands and reads the same RDB 9. Not shown of KeyDB: ${own}.`
    : `${standIn} stood in for KeyDB. Not shown of KeyDB: ${own}, the commands that it lacks, and the change of values to RDB 9.`;
}

/** A Sentinel that watches `masters` (their names are the keys), and notices failures quickly. */
export async function startSentinel(
  masters: Readonly<Record<string, { readonly server: LocalServer; readonly quorum?: number }>>,
  options: Pick<ServerOptions, 'port' | 'config' | 'tls'> = {},
): Promise<LocalServer> {
  const sentinel = Object.entries(masters).flatMap(([name, { server, quorum = 1 }]) => [
    `monitor ${name} ${server.host} ${server.port} ${quorum}`,
    `down-after-milliseconds ${name} 500`,
    `failover-timeout ${name} 3000`,
  ]);
  return launch(await findRedis(), { ...options, config: { sentinel, ...options.config } }, undefined, ['--sentinel']);
}

async function launch(
  program: Program,
  options: ServerOptions,
  standIn?: string,
  flags: readonly string[] = [],
): Promise<LocalServer> {
  if (options.tls && !program.tls) {
    const [name, variable] = [`${program.name}-server`, `${program.name.toUpperCase()}_SERVER`];
    throw new ServerMissing(
      `TLS needs an installed ${name}: set ${variable} (${program.container?.image ?? program.path} has none)`,
    );
  }
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const dir = await mkdtemp(join(tmpdir(), `${program.name}-`));
    const config = { ...defaults(program, port, flags, options.tls), ...options.config };
    const args = program.container ? asArguments(config) : ['server.conf', ...flags];
    if (!program.container) await writeFile(join(dir, 'server.conf'), asFile(config));
    const server = new LocalServer(program, port, dir, options.tls, args, standIn, options.env);
    try {
      await server.start();
      return server;
    } catch (error) {
      const taken = options.port === undefined && /Address already in use/i.test(server.log());
      await server.stop();
      if (!taken || attempt === 3) throw error;
    }
  }
}

function defaults(program: Program, port: number, flags: readonly string[], tls: ServerOptions['tls']): ServerConfig {
  const listen: ServerConfig = tls
    ? {
        port: 0,
        'tls-port': port,
        'tls-cert-file': tls.cert,
        'tls-key-file': tls.key,
        'tls-ca-cert-file': tls.ca,
        'tls-auth-clients': 'no',
      }
    : { port };
  // A container's port is published on loopback only.
  const bind: ServerConfig = program.container ? { bind: '0.0.0.0', 'protected-mode': 'no' } : { bind: HOST };
  const keydb: ServerConfig = program.name === 'keydb' ? { 'server-threads': 2, 'enable-motd': 'no' } : {};
  const kept: ServerConfig = flags.includes('--sentinel') ? {} : { save: '""', appendonly: 'no' };
  return { ...listen, ...bind, ...keydb, ...kept };
}

function asFile(config: ServerConfig): string {
  const lines = Object.entries(config).flatMap(([name, value]) => [value].flat().map((line) => `${name} ${line}\n`));
  return lines.join('');
}

function asArguments(config: ServerConfig): string[] {
  return Object.entries(config).flatMap(([name, value]) =>
    [value].flat().flatMap((line) => [`--${name}`, ...String(line).replace('""', '').split(' ')]),
  );
}

/**
 * Whether a thread of the process still runs: a thread may receive SIGSTOP late. Linux only; false on other systems.
 */
function isRunning(pid: number): boolean {
  try {
    const tasks = `/proc/${pid}/task`;
    return readdirSync(tasks).some((task) => !/\) [TtZX] /.test(readFileSync(join(tasks, task, 'stat'), 'latin1')));
  } catch {
    // The system is not Linux, or a thread has just ended.
    return false;
  }
}
