/**
 * Hosts on this machine: each a file system over the common image, a network namespace, and a systemd that boots in
 * them.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, mkdirSync, openSync, closeSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterDeath } from '../../../shadow-proxy/src/local/guard.js';
import { CommandFailed, run, type Ran, type RunOptions } from '../run.js';
import type { Image } from './image.js';
import { Network } from './network.js';

export interface Host {
  readonly name: string;
  readonly index: number;
  readonly address: string;
}

const DOWN = fileURLToPath(new URL('../../../../verification/rehearsal/hosts/down.sh', import.meta.url));
const BOOT_MS = 120_000;
const POWER_MS = 20_000;

export class Hosts {
  readonly network: Network;
  readonly key: string;
  readonly #prefix: string;
  readonly #callOff: () => void;
  readonly #hosts = new Map<string, Host>();
  readonly #nspawn = new Map<string, ChildProcess>();

  /** @param directory of this rehearsal alone: removed by `down`, or by a shell that outlives this process. */
  constructor(
    readonly directory: string,
    private readonly image: Image,
    private readonly log: string,
  ) {
    this.#prefix = `rehearsal${process.pid}`;
    this.network = new Network(this.#prefix, log);
    this.key = join(directory, 'id');
    this.#callOff = afterDeath('sh "$1" "$2" "$3"', DOWN, directory, this.#prefix);
  }

  /** Boots them, and waits until each takes ssh. */
  async up(names: readonly string[]): Promise<readonly Host[]> {
    await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', this.key], { log: this.log });
    await this.network.up();
    for (const [index, name] of names.entries())
      this.#hosts.set(name, { name, index, address: this.network.address(index) });
    for (const host of this.#hosts.values()) await this.#furnish(host);
    for (const host of this.#hosts.values()) this.#boot(host);
    for (const host of this.#hosts.values()) await this.#reachable(host);
    return [...this.#hosts.values()];
  }

  host(name: string): Host {
    const host = this.#hosts.get(name);
    if (host === undefined) throw new Error(`there is no host ${name}`);
    return host;
  }

  get all(): readonly Host[] {
    return [...this.#hosts.values()];
  }

  /** Kills every process of a host at once, as a power cut does; what it wrote stays. */
  async powerOff(name: string): Promise<void> {
    const { index } = this.host(name);
    const { stdout } = await run(['ip', 'netns', 'pids', this.network.namespace(index)]);
    const own = readlinkSync('/proc/self/ns/pid');
    for (const pid of stdout.split('\n').map(Number).filter(Boolean)) {
      // Programs of ours in its network are not its own: they have this machine's process numbers.
      if ((processNamespace(pid) ?? own) !== own) tryKill(pid);
    }
    for (const deadline = Date.now() + POWER_MS; alive(this.#nspawn.get(name)); await sleep(50)) {
      if (Date.now() > deadline) throw new Error(`${name} did not end`);
    }
  }

  /** Boots a host again after `powerOff`, and waits until it takes ssh. */
  async powerOn(name: string): Promise<void> {
    this.#boot(this.host(name));
    await this.#reachable(this.host(name));
  }

  /** Runs a command on a host, as root, over ssh. */
  async ssh(name: string, command: string, options: RunOptions = {}): Promise<Ran> {
    return run(
      this.network.inControl(['ssh', ...this.sshOptions, `root@${this.host(name).address}`, command]),
      options,
    );
  }

  get sshOptions(): string[] {
    const options = {
      StrictHostKeyChecking: 'no',
      UserKnownHostsFile: '/dev/null',
      LogLevel: 'ERROR',
      ControlMaster: 'auto',
      ControlPersist: '120',
      ControlPath: join(this.directory, 'ssh-%C'),
    };
    return ['-i', this.key, ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])];
  }

  /** Ends them and removes everything. */
  async down(): Promise<void> {
    await run(['sh', DOWN, this.directory, this.#prefix], {});
    this.#callOff();
  }

  async #furnish({ name, index }: Host): Promise<void> {
    const of = (path: string): string => join(this.directory, name, path);
    for (const path of ['upper', 'work', 'root']) mkdirSync(of(path), { recursive: true });
    const layers = `lowerdir=${this.image.root},upperdir=${of('upper')},workdir=${of('work')}`;
    await run(['mount', '-t', 'overlay', 'overlay', '-o', layers, of('root')], { log: this.log });
    mkdirSync(of('root/root/.ssh'), { recursive: true, mode: 0o700 });
    copyFileSync(`${this.key}.pub`, of('root/root/.ssh/authorized_keys'));
    writeFileSync(of('root/etc/hostname'), `${name}\n`);
    const known = [...this.#hosts.values()].map((host) => `${host.address} ${host.name}`);
    writeFileSync(of('root/etc/hosts'), ['127.0.0.1 localhost', ...known, ''].join('\n'));
    await this.network.add(index);
  }

  #boot({ name, index }: Host): void {
    const console = openSync(join(this.directory, name, 'console'), 'w');
    const options = [
      '--quiet',
      '--register=no',
      '--keep-unit',
      '--boot',
      '--console=pipe',
      `--machine=${this.#prefix}-${name}`,
      `--hostname=${name}`,
    ];
    const places = [
      `--directory=${join(this.directory, name, 'root')}`,
      `--network-namespace-path=/run/netns/${this.network.namespace(index)}`,
      `--bind-ro=${this.image.repository}:/srv/repository`,
    ];
    const child = spawn('systemd-nspawn', [...options, ...places], {
      detached: true,
      env: { ...process.env, SYSTEMD_NSPAWN_API_VFS_WRITABLE: 'network' },
      stdio: ['ignore', console, console],
    });
    closeSync(console);
    child.on('error', () => undefined);
    child.unref();
    this.#nspawn.set(name, child);
    writeFileSync(join(this.directory, name, 'pid'), `${child.pid}\n`);
  }

  async #reachable({ name }: Host): Promise<void> {
    for (const deadline = Date.now() + BOOT_MS; ; await sleep(200)) {
      try {
        await this.ssh(name, 'true');
        return;
      } catch (error) {
        if (!(error instanceof CommandFailed) || Date.now() > deadline) throw error;
      }
    }
  }
}

const alive = (child: ChildProcess | undefined): boolean =>
  child !== undefined && child.exitCode === null && child.signalCode === null;

/** Null where the process has ended. */
function processNamespace(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended with its host.
  }
}
