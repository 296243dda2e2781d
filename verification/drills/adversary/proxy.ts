/** The proxy of a program: a process of its own, which may be killed and started on what it left. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../../shadow-proxy/src/local/port.js';
import { stringify } from 'yaml';
import { afterDeath } from '../../../shadow-proxy/src/local/guard.js';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import type { Stage } from '../../../shadow-proxy/src/route/stage.js';
import { moveRequest } from '../../../shadow-proxy/test/support/move.js';
import type { Program, WorkloadName } from './program.js';

const MAIN = fileURLToPath(new URL('../../../shadow-proxy/src/main.js', import.meta.url));
const START_MS = 20_000;

/** The proxy did not start, or ended by itself. */
export class ProxyEnded extends Error {
  override readonly name = 'ProxyEnded';
}

export class ProxyProcess {
  readonly #dir = mkdtempSync(join(tmpdir(), 'adversary-'));
  #child: ChildProcess | null = null;
  readonly #callOff = [afterDeath('rm -rf -- "$1"', this.#dir)];

  private constructor(
    readonly port: number,
    private readonly adminPort: number,
  ) {}

  /** Starts it between the two URLs, with the workloads in the program's stages. @throws {ProxyEnded} */
  static async start(program: Program, source: string, target: string): Promise<ProxyProcess> {
    const [port, adminPort] = [await freePort(), await freePort()];
    const proxy = new ProxyProcess(port, adminPort);
    const plan = {
      version: 1,
      name: 'adversary',
      shards: [{ name: 'adversary', listen: `redis://127.0.0.1:${port}`, source, target }],
      workloads: [
        { name: 'a', keys: ['a:*'], stage: program.stages.a },
        { name: 'b', keys: ['b:*'], stage: program.stages.b },
      ],
      default: { stage: program.stages.default },
      admin: { listen: `127.0.0.1:${adminPort}` },
      state: join(proxy.#dir, 'state'),
      ledger: { redact: false },
    };
    writeFileSync(join(proxy.#dir, 'plan.yaml'), stringify(plan));
    await proxy.begin();
    return proxy;
  }

  /** Starts the process, and waits until it is ready. @throws {ProxyEnded} */
  async begin(tries = 5): Promise<void> {
    const log = openSync(join(this.#dir, 'log'), 'a');
    const child = spawn(process.execPath, [MAIN, '--plan', join(this.#dir, 'plan.yaml')], {
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child = child;
    child.once('error', () => undefined);
    if (child.pid !== undefined) this.#callOff.push(afterDeath(`kill -KILL ${child.pid}`));
    for (const deadline = performance.now() + START_MS; performance.now() < deadline; await sleep(20)) {
      // Another process may have the port for a moment, as the near end of a connection.
      if (this.hasEnded && tries > 1 && this.log().includes('is taken'))
        return sleep(500).then(() => this.begin(tries - 1));
      if (this.hasEnded) break;
      const ready = await fetch(this.#url('/readyz')).catch(() => null);
      if (ready?.ok) return;
    }
    throw new ProxyEnded(`the proxy is not ready: ${this.log()}`);
  }

  get hasEnded(): boolean {
    return this.#child === null || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** The last lines that it logged. */
  log(): string {
    return readFileSync(join(this.#dir, 'log'), 'utf8').trim().split('\n').slice(-6).join('\n');
  }

  /** What it wrote of mismatches, as JSON lines. */
  ledger(): string {
    try {
      return readFileSync(join(this.#dir, 'state', 'adversary', 'ledger.jsonl'), 'utf8');
    } catch {
      return '';
    }
  }

  /** @throws {ProxyEnded} */
  async snapshot(): Promise<ShardSnapshot> {
    const { shards } = (await this.#ask('/api/status')) as { shards: ShardSnapshot[] };
    if (shards[0] === undefined) throw new ProxyEnded('the proxy has no shard');
    return shards[0];
  }

  /** Null where it was done; otherwise why not. @throws {ProxyEnded} */
  async change(workload: WorkloadName, stage: Stage): Promise<string | null> {
    const now = (await this.snapshot()).workloads.find(({ name }) => name === workload)!;
    if (now.stage === stage) return null;
    const answer = (await this.#ask(...moveRequest(workload, now.stage, stage))) as { error?: unknown };
    return answer.error === undefined ? null : JSON.stringify(answer.error);
  }

  /** Ends it at once. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
    for (const callOff of this.#callOff) callOff();
  }

  #url(path: string): string {
    return `http://127.0.0.1:${this.adminPort}${path}`;
  }

  async #ask(path: string, body?: object): Promise<unknown> {
    const init = body && {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    };
    try {
      return await (await fetch(this.#url(path), { ...init, signal: AbortSignal.timeout(30_000) })).json();
    } catch (error) {
      throw new ProxyEnded(`${path} was not answered (${(error as Error).message}): ${this.log()}`);
    }
  }
}
