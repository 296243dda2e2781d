/** The shadow proxy as its users run it: a process of its own, with a plan file and the admin HTTP. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  type Dirent,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../../shadow-proxy/src/local/port.js';
import { stringify } from 'yaml';
import { afterDeath } from '../../../shadow-proxy/src/local/guard.js';
import type { ShardEvidence } from '../../../shadow-proxy/src/stages/next-stage.js';
import type { LedgerEntry } from '../../../shadow-proxy/src/telemetry/ledger.js';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import { ConformanceError } from './error.js';
import type { Proxied } from './result.js';

const MAIN = fileURLToPath(new URL('../../../shadow-proxy/src/main.js', import.meta.url));
const SHARD = 'conformance';
const READY_MS = 20_000;
const STOP_MS = 15_000;

export interface ProxyProcess {
  readonly port: number;
  /** Undefined once it has ended. */
  readonly pid: number | undefined;
  /** What it printed. */
  log(): string;
  /** Of each shard. */
  snapshots(): Promise<readonly ShardSnapshot[]>;
  /** Gates of each shard. */
  evidence(): Promise<readonly ShardEvidence[]>;
  /** Every mismatch that it wrote down, not redacted. */
  ledger(): LedgerEntry[];
  stop(): Promise<void>;
}

interface Address {
  readonly url: string;
}

/**
 * Starts the proxy with everything in one stage, and waits until it is ready.
 * @param port of the first shard; further ones have the next
 * @throws {ConformanceError}
 */
export async function startProxy(
  servers: { source: Address; target: Address },
  stage: Proxied,
  port: number,
  cluster: boolean,
): Promise<ProxyProcess> {
  const dir = mkdtempSync(join(tmpdir(), 'redis-to-keydb-conformance-'));
  const admin = `127.0.0.1:${await freePort()}`;
  const state = join(dir, 'state');
  const { source, target } = servers;
  const sides = { listen: `redis://127.0.0.1:${port}`, source: source.url, target: target.url };
  const plan = {
    version: 1,
    name: SHARD,
    ...(cluster ? { cluster: sides } : { shards: [{ name: SHARD, ...sides }] }),
    default: { stage },
    ...(process.env.TEST_THREADS && { threads: Number(process.env.TEST_THREADS) }),
    ...(process.env.TEST_SOCKETS && { sockets: process.env.TEST_SOCKETS }),
    admin: { listen: admin },
    state,
    ledger: { redact: false },
  };
  writeFileSync(join(dir, 'migration.yaml'), stringify(plan));
  const log = join(dir, 'log');
  const output = openSync(log, 'a');
  const child = spawn(process.execPath, [MAIN, '--first-start', '--plan', join(dir, 'migration.yaml')], {
    stdio: ['ignore', output, output],
    detached: true,
  });
  closeSync(output);
  const callOff = afterDeath(`kill -KILL ${child.pid}; rm -rf -- "$1"`, dir);
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const stop = async (): Promise<void> => {
    if (!hasEnded()) {
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      const impatient = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await exit;
      clearTimeout(impatient);
    }
    callOff();
    rmSync(dir, { recursive: true, force: true });
  };
  for (const deadline = Date.now() + READY_MS; ; await sleep(50)) {
    const ready = await fetch(`http://${admin}/readyz`).catch(() => null);
    if (ready?.ok) break;
    if (!hasEnded() && Date.now() < deadline) continue;
    const said = readFileSync(log, 'utf8').trim();
    await stop();
    throw new ConformanceError('NOT_READY', `the proxy does not become ready:\n${said}`);
  }
  const shardsOf = async <T>(page: string): Promise<readonly T[]> => {
    const { shards } = (await (await fetch(`http://${admin}${page}`)).json()) as { shards: T[] };
    return shards;
  };
  return {
    port,
    get pid() {
      return hasEnded() ? undefined : child.pid;
    },
    log: () => readFileSync(log, 'utf8'),
    snapshots: () => shardsOf('/api/status'),
    evidence: () => shardsOf('/api/evidence'),
    ledger: () => readdirSync(state, { withFileTypes: true }).flatMap(ledgerOf),
    stop,
  };
}

/** What the ledger in the folder of a shard says. */
function ledgerOf(shard: Dirent): LedgerEntry[] {
  if (!shard.isDirectory()) return [];
  const dir = join(shard.parentPath, shard.name);
  const files = readdirSync(dir).filter((name) => name.startsWith('ledger.jsonl'));
  const lines = files
    .sort()
    .reverse()
    .flatMap((name) => readFileSync(join(dir, name), 'utf8').split('\n').filter(Boolean));
  return lines.map((line) => JSON.parse(line) as LedgerEntry);
}
