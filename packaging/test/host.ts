/** A Debian in a folder, booted: its systemd starts services, on the network of this machine. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../../verification/rehearsal/run.js';
import { afterDeath } from '../../shadow-proxy/src/local/guard.js';

const BOOT_MS = 120_000;
const OPTIONS = ['--quiet', '--register=no', '--keep-unit', '--boot', '--console=pipe'];

export class Host {
  private constructor(
    private readonly nspawn: ChildProcess,
    /** Of its systemd, as this machine counts. */
    private readonly init: number,
    private readonly callOff: () => void,
  ) {}

  /** Resolves when everything that starts at a boot has started. */
  static async boot(root: string, name: string): Promise<Host> {
    const nspawn = spawn('systemd-nspawn', [...OPTIONS, `--machine=${name}`, `--directory=${root}`], {
      env: { ...process.env, SYSTEMD_NSPAWN_API_VFS_WRITABLE: 'network' },
      stdio: 'ignore',
      detached: true,
    });
    const callOff = afterDeath('kill -KILL "$1"', String(nspawn.pid));
    for (const deadline = Date.now() + BOOT_MS; ; await sleep(100)) {
      const init = initOf(nspawn.pid!);
      const host = init === null ? null : new Host(nspawn, init, callOff);
      const state = await host?.run('sh', '-c', 'systemctl is-system-running || :').catch(() => '');
      if (host && /^(running|degraded)$/m.test(state ?? '')) return host;
      if (Date.now() < deadline && nspawn.exitCode === null) continue;
      nspawn.kill('SIGKILL');
      throw new Error(`${root} did not boot: ${state || 'systemd-nspawn ended'}`);
    }
  }

  /** A command on the host, as root. @returns what it printed */
  async run(...command: string[]): Promise<string> {
    const inside = ['nsenter', `--target=${this.init}`, '--mount', '--uts', '--ipc', '--pid', '--cgroup', '--'];
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' };
    return (await run([...inside, ...command], { env })).stdout;
  }

  /** Ends it as a power cut does. */
  async off(): Promise<void> {
    const ended = this.nspawn.exitCode === null ? once(this.nspawn, 'exit') : null;
    process.kill(this.init, 'SIGKILL');
    await ended;
    this.callOff();
  }
}

/** Null where it has not started yet. */
function initOf(nspawn: number): number | null {
  try {
    const own = readlinkSync('/proc/self/ns/pid');
    const children = readFileSync(`/proc/${nspawn}/task/${nspawn}/children`, 'utf8').trim().split(' ').filter(Boolean);
    const inside = children.find((pid) => readlinkSync(`/proc/${pid}/ns/pid`) !== own);
    return inside === undefined ? null : Number(inside);
  } catch {
    return null;
  }
}
