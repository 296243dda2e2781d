/**
 * The property of crashes: at a random moment the proxy is killed, and a file of its state folder is cut, emptied,
 * removed, or has one byte changed, at a random place. Then either the next proxy refuses to start; or what it calls
 * clean is equal on both servers, read by a comparison that shares no code with the proxy.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../../src/local/port.js';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { Relay } from '../../../../src/local/relay.js';
import type { ShardSnapshot } from '../../../../src/telemetry/snapshot.js';
import type { Stage } from '../../../../src/route/stage.js';
import { Random } from '../../random/random.js';
import { differences } from '../../../support/keyspace.js';
import { moveRequest } from '../../../support/move.js';
import { PROGRAMS } from '../../../support/programs.js';
import type { Pair } from '../../../support/servers.js';

const CLIENTS = 4;
const KEYS = 400;
const START_MS = 180_000;
const SETTLE_MS = 300_000;

const STAGES = ['dualwrite', 'shadow', 'live', 'rampdown'] as const;
const KINDS = ['cut', 'empty', 'flip', 'remove'] as const;

/** What was done to a file, in words; null where nothing was. */
export interface Crash {
  readonly seed: number;
  readonly stage: Stage;
  /** A backfill of 3,000 keys was under way. */
  readonly copying: boolean;
  readonly damage: string | null;
  /** Keys that differed between the servers when the proxy was dead. */
  readonly differed: number;
  /**
   * `refused`: the next proxy did not start. Else what it said first: some keys, or all of a workload, are suspect; or
   * none.
   */
  readonly outcome: 'refused' | 'all suspect' | 'keys suspect' | 'clean';
  /** Why it refused, or why all are suspect. */
  readonly why: string | null;
  /** Keys that differ though nothing was suspect any more: none, if the property holds. */
  readonly silent: readonly string[];
}

/** @param program the compiled daemon; another build's, to see that the test can fail */
export async function crash(servers: Pair, seed: number, program = PROGRAMS['shadow-proxy']): Promise<Crash> {
  const random = new Random(seed, 17);
  await Promise.all([servers.source, servers.target].map(flush));
  const directory = mkdtempSync(join(tmpdir(), 'crash-'));
  const relays = { source: await Relay.start(servers.source), target: await Relay.start(servers.target) };
  const stage = random.pick(STAGES);
  const copying = random.chance(0.25);
  const port = await freePort();
  const admin = await freePort();
  const plan = {
    version: 1,
    name: 'crash',
    shards: [{ name: 'a', listen: `redis://127.0.0.1:${port}`, source: relays.source.url, target: relays.target.url }],
    // Two, so that what is said of one is not taken for the other.
    workloads: [{ name: 'w', keys: ['w:*'], stage: copying ? 'off' : stage }],
    default: { stage: copying ? 'off' : 'shadow' },
    admin: { listen: `127.0.0.1:${admin}` },
    state: join(directory, 'state'),
  };
  writeFileSync(join(directory, 'plan.yaml'), stringify(plan));
  const start = (): Daemon => new Daemon(program, join(directory, 'plan.yaml'), `http://127.0.0.1:${admin}`);
  let daemon = start();
  try {
    await daemon.listening();
    if (copying) await beginCopy(servers, daemon);
    const traffic = startTraffic(port, seed);
    await sleep(random.between(20, 600));
    const mirror = relays[stage === 'live' || stage === 'rampdown' ? 'source' : 'target'];
    if (random.chance(0.8)) {
      mirror.hold('up');
      await sleep(random.between(0, 100));
    }
    await daemon.kill();
    traffic.stop();
    for (const relay of Object.values(relays)) {
      relay.cut();
      relay.release();
    }
    if (random.chance(0.1)) {
      // One that ends in its start, wherever that is.
      daemon = start();
      await sleep(random.between(0, 700));
      await daemon.kill();
    }
    const differed = (await differences(servers.source, servers.target)).length;
    const damage = damageIn(join(directory, 'state', 'a'), random);
    daemon = start();
    const said = { seed, stage: copying ? ('dualwrite' as const) : stage, copying, damage, differed };
    if (!(await daemon.listening())) return { ...said, outcome: 'refused', why: daemon.problem(), silent: [] };
    const first = await daemon.status();
    const whole = first.workloads.find(({ suspect }) => suspect !== null);
    const outcome = whole !== undefined ? 'all suspect' : first.suspects.total > 0 ? 'keys suspect' : 'clean';
    await settled(daemon);
    return { ...said, outcome, why: whole?.suspect ?? null, silent: await differences(servers.source, servers.target) };
  } finally {
    await daemon.kill();
    await Promise.all(Object.values(relays).map((relay) => relay.close()));
    rmSync(directory, { recursive: true, force: true });
  }
}

class Daemon {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #out = '';
  #errors = '';

  constructor(
    program: string,
    plan: string,
    private readonly admin: string,
  ) {
    this.#child = spawn(process.execPath, [program, '--plan', plan], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout!.on('data', (chunk: Buffer) => (this.#out += chunk.toString()));
    this.#child.stderr!.on('data', (chunk: Buffer) => (this.#errors += chunk.toString()));
    this.#ended = once(this.#child, 'close');
  }

  /** False where it ended instead. */
  async listening(): Promise<boolean> {
    for (const deadline = Date.now() + START_MS; Date.now() < deadline; await sleep(10)) {
      if (this.#out.includes('"msg":"listening"')) return true;
      if (this.#child.exitCode !== null) return false;
    }
    throw new Error(`the proxy neither serves nor ends: ${this.#out}${this.#errors}`);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGKILL');
    await this.#ended;
  }

  problem(): string {
    return this.#errors.trim();
  }

  async ask(path: string, body?: object): Promise<unknown> {
    const response = await fetch(
      `${this.admin}${path}`,
      body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
    );
    const answer: unknown = await response.json();
    if (!response.ok) throw new Error(JSON.stringify(answer));
    return answer;
  }

  async status(): Promise<ShardSnapshot> {
    return ((await this.ask('/api/status')) as { shards: ShardSnapshot[] }).shards[0];
  }
}

async function beginCopy({ source }: Pair, daemon: Daemon): Promise<void> {
  const client = new Redis({ host: '127.0.0.1', port: source.port });
  await client.mset(
    Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`${i % 2 === 0 ? 'w' : 'x'}:cold:${i}`, i])),
  );
  client.disconnect();
  for (const workload of ['w', 'default']) await daemon.ask(...moveRequest(workload, 'off', 'dualwrite'));
  await daemon.ask('/api/jobs', { kind: 'backfill', limits: { keysPerSecond: 6_000 } });
}

/** Until nothing is suspect: what an operator has to begin is begun. */
async function settled(daemon: Daemon): Promise<void> {
  let begun = false;
  for (const deadline = Date.now() + SETTLE_MS; ; await sleep(50)) {
    const { workloads, suspects, undecided, mirror, job } = await daemon.status();
    const running = job?.state === 'running';
    if (
      !running &&
      suspects.total === 0 &&
      undecided === 0 &&
      mirror.connected &&
      mirror.queuedEffects === 0 &&
      workloads.every(({ clean }) => clean)
    )
      return;
    if (!running && !begun && workloads.some(({ suspect }) => /not copied/.test(suspect ?? ''))) {
      begun = true;
      await daemon.ask('/api/jobs', { kind: 'backfill' });
    }
    if (Date.now() > deadline) throw new Error(`not settled: ${JSON.stringify({ workloads, suspects, job, mirror })}`);
  }
}

async function flush({ port }: { readonly port: number }): Promise<void> {
  const client = new Redis({ host: '127.0.0.1', port });
  await client.flushall();
  client.disconnect();
}

/** Clients that write keys of all simple types, as fast as they are answered, and do not reconnect. */
function startTraffic(port: number, seed: number): { stop(): void } {
  let ended = false;
  const clients = Array.from({ length: CLIENTS }, (_, i) => {
    const client = new Redis({ host: '127.0.0.1', port, retryStrategy: null, maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    const random = new Random(seed, 100 + i);
    void (async () => {
      await once(client, 'ready').catch(() => undefined);
      while (!ended && client.status === 'ready')
        await client.pipeline(random.times(random.between(1, 20), () => write(random))).exec();
    })();
    return client;
  });
  return {
    stop() {
      ended = true;
      for (const client of clients) client.disconnect();
    },
  };
}

function write(random: Random): (string | number)[] {
  const key = `${random.pick(['w', 'x'])}:${random.between(1, KEYS)}`;
  const value = random.between(1, 1e9);
  return random.pick([
    ['set', `${key}:s`, value],
    ['incr', `${key}:n`],
    ['rpush', `${key}:l`, value],
    ['hset', `${key}:h`, random.between(1, 5), value],
    ['sadd', `${key}:m`, value],
    ['del', `${key}:${random.pick(['s', 'n', 'l', 'h', 'm'])}`],
  ]);
}

function damageIn(directory: string, random: Random): string | null {
  if (random.chance(0.1)) return null;
  const files = readdirSync(directory).filter((name) => name !== 'reserve' && !name.endsWith('.tmp'));
  const journals = files.filter((name) => name.startsWith('journal'));
  const name = random.pick(random.chance(0.6) && journals.length > 0 ? journals : files);
  const path = join(directory, name);
  const bytes = readFileSync(path);
  const kind = bytes.length === 0 ? 'remove' : random.pick(KINDS);
  if (kind === 'remove') rmSync(path);
  else if (kind === 'empty') truncateSync(path, 0);
  else {
    // Most of a journal is zeros: as a rule, what was written is hit.
    const used = bytes.findLastIndex((byte) => byte !== 0) + 1;
    const at = Math.floor(random.next() * (random.chance(0.8) && used > 0 ? used : bytes.length));
    if (kind === 'cut') truncateSync(path, at);
    else {
      bytes[at] ^= 1 << random.between(0, 7);
      writeFileSync(path, bytes);
    }
    return `${kind} ${name} at ${at} of ${bytes.length}`;
  }
  return `${kind} ${name}`;
}
