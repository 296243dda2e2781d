/** The applications: both client libraries, on the load host. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Hosts } from './hosts/hosts.js';
import { run } from './run.js';
import { LOAD, NAMES, namesOf, PORTS, SOURCES, type Scene } from './scene.js';
import type { Comparison, Order } from './traffic/main.js';
import type { Report } from './traffic/drive.js';

const PROGRAM = 'node /opt/redis-to-keydb/current/dist/verification/rehearsal/traffic/main.js';
/** On the load host: what every key has to hold in the end. */
const EXPECTED = '/root/expected.json';
const START_MS = 30_000;
const STOP_MS = 30_000;
const NAMES_UP = `apt-get install -y -qq haproxy >/dev/null 2>&1 && systemctl disable -q --now haproxy &&
  cat > /run/names.cfg && systemd-run --quiet --unit=names haproxy -W -f /run/names.cfg`;

export class Load {
  #child: ChildProcess | null = null;
  /** The last word of the applications; null before the first. */
  report: Report | null = null;

  constructor(
    private readonly hosts: Hosts,
    private readonly scene: Scene,
    private readonly log: string,
  ) {}

  /** Fills the sources. @returns how many keys there are */
  async seed(): Promise<number> {
    const shards = SOURCES.map((name) => ({ host: this.hosts.host(name).address, port: 6379 }));
    return ((await this.#once({ what: 'seed', shards, login: this.#login })) as { keys: number }).keys;
  }

  /** Through the proxies, from now on. */
  async start(): Promise<void> {
    const names = namesOf((name) => this.hosts.host(name).address);
    await this.hosts.ssh(LOAD, NAMES_UP, { input: names, log: this.log });
    const shards = NAMES.map((port) => ({ host: '127.0.0.1', port }));
    const child = spawn('ip', this.#command().slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    child.stdin.on('error', () => undefined);
    child.stdin.write(
      `${JSON.stringify({ what: 'drive', shards, login: this.#login, expected: EXPECTED } satisfies Order)}\n`,
    );
    createInterface({ input: child.stdout }).on('line', (line) => (this.report = JSON.parse(line) as Report));
    for (const deadline = Date.now() + START_MS; this.report === null; await sleep(100)) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error('the applications did not begin to send');
    }
  }

  /** From now on its report's longest silence is measured. */
  mark(): void {
    this.#child!.stdin!.write('mark\n');
  }

  /** Ends it, and has written down what has to be there. */
  async stop(): Promise<Report> {
    const child = this.#child!;
    const closed = once(child, 'close');
    child.stdin!.end();
    const ended = await Promise.race([closed.then(() => true), sleep(STOP_MS, false, { ref: false })]);
    if (!ended) throw new Error(`the applications do not end: ${this.report!.waiting.join('; ') || 'nothing waits'}`);
    if (child.exitCode !== 0) throw new Error(`the applications ended with ${child.exitCode ?? child.signalCode}`);
    return this.report!;
  }

  kill(): void {
    this.#child?.kill();
  }

  /** Every key of one KeyDB node with what has to be there. */
  async compare(node: string): Promise<Comparison> {
    return (await this.#once({
      what: 'compare',
      shards: [{ host: this.hosts.host(node).address, port: PORTS.keydb }],
      login: this.#login,
      expected: EXPECTED,
    })) as Comparison;
  }

  get #login(): { user: string; password: string } {
    return { user: 'app', password: this.scene.secret('keydb-app') };
  }

  #command(): string[] {
    return this.hosts.network.inControl([
      'ssh',
      ...this.hosts.sshOptions,
      `root@${this.hosts.host(LOAD).address}`,
      PROGRAM,
    ]);
  }

  async #once(order: Order): Promise<unknown> {
    const { stdout } = await run(this.#command(), { input: `${JSON.stringify(order)}\n`, log: this.log });
    return JSON.parse(stdout.trim().split('\n').at(-1)!);
  }
}
