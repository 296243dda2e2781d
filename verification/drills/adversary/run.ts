/**
 * Runs a program: two real servers, a relay before each, the proxy between them, the clients of the program. Then
 * everything is made whole again, and what must hold is looked at: every reply came, to the right client; nothing
 * hangs; both servers hold the same; every acknowledged increment is there, once; no comparison found a difference.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Relay, type Link } from '../../../shadow-proxy/src/local/relay.js';
import { startRedis, type LocalServer, type ServerOptions } from '../../../shadow-proxy/src/local/servers.js';
import type { LedgerEntry } from '../../../shadow-proxy/src/telemetry/ledger.js';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import type { Side, Stage } from '../../../shadow-proxy/src/route/stage.js';
import { loadLibrary } from '../../../shadow-proxy/test/integration/random/commands/functions.js';
import { compareKeyspaces } from '../../../shadow-proxy/test/integration/random/comparer.js';
import { APP_USER } from '../../../shadow-proxy/test/integration/random/driver.js';
import { startTestTarget } from '../../../shadow-proxy/test/support/servers.js';
import { Client, NARROW_USER, type Counted, type Watcher } from './client.js';
import { COUNTERS } from './generate.js';
import { WORKLOADS, type Act, type Fault, type Program, type WorkloadName } from './program.js';
import { ProxyEnded, ProxyProcess } from './proxy.js';

export type FindingKind =
  | 'ended' /* the proxy ended by itself */
  | 'misdelivered'
  | 'closed'
  | 'hangs'
  | 'not settled'
  | 'stage'
  | 'mismatch'
  | 'differs'
  | 'counter';

export interface Finding {
  readonly kind: FindingKind;
  readonly what: string;
}

export interface Outcome {
  readonly findings: readonly Finding[];
  /** Commands that were answered. */
  readonly operations: number;
  readonly unanswered: number;
  readonly faults: number;
  readonly kills: number;
  readonly stageChanges: number;
}

/** How long a reply may take, after every fault is over. */
const REPLY_MS = 15_000;
/** How long repairs may take. A large key that moved all the time is tried again 30 s later. */
const SETTLE_MS = 60_000;
/** How long a connection may be lost after a fault has ended. */
const FAULT_ECHO_MS = 5_000;
const STAGE_TRIES = 20;

/** Both servers, for as many programs as one likes. */
export class Arena {
  private constructor(
    readonly source: LocalServer,
    readonly target: LocalServer,
  ) {}

  static async open(): Promise<Arena> {
    const options: ServerOptions = { config: { user: [APP_USER.acl, NARROW_USER.acl] } };
    const source = await startRedis(options);
    try {
      return new Arena(source, await startTestTarget(options));
    } catch (error) {
      await source.stop();
      throw error;
    }
  }

  /** Nothing of an earlier program is left. */
  async clear(): Promise<void> {
    for (const server of [this.source, this.target]) {
      if (server.pid === undefined) await server.start();
      const client = new Redis({ port: server.port });
      await client.flushall();
      await client.script('FLUSH');
      if (server === this.source) await client.call('FUNCTION', 'FLUSH');
      client.disconnect();
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.source.stop(), this.target.stop()]);
  }
}

export async function runProgram(arena: Arena, program: Program): Promise<Outcome> {
  await arena.clear();
  const relays = { source: await Relay.start(arena.source), target: await Relay.start(arena.target) };
  let run: Run | null = null;
  try {
    run = new Run(arena, relays, program, await ProxyProcess.start(program, relays.source.url, relays.target.url));
    return await run.outcome();
  } catch (error) {
    if (run !== null || !(error instanceof ProxyEnded)) throw error;
    return {
      findings: [{ kind: 'ended', what: error.message }],
      operations: 0,
      unanswered: 0,
      faults: 0,
      kills: 0,
      stageChanges: 0,
    };
  } finally {
    await run?.close();
    await Promise.all([relays.source.close(), relays.target.close()]);
  }
}

class Run implements Watcher {
  readonly counted: readonly Counted[] = COUNTERS.map(() => ({ acknowledged: 0, open: 0 }));
  readonly #findings: Finding[] = [];
  readonly #clients: readonly Client[];
  readonly #underWay = new Set<Promise<void>>();
  /** Until when a connection may be lost, by `performance.now`. */
  #mayLoseUntil = 0;
  #faults = 0;
  #kills = 0;
  #stageChanges = 0;

  constructor(
    private readonly arena: Arena,
    private readonly relays: Readonly<Record<Side, Relay>>,
    private readonly program: Program,
    private readonly proxy: ProxyProcess,
  ) {
    this.#clients = program.clients.map((login, number) => new Client(number, login, proxy.port, this));
  }

  violation(kind: FindingKind, what: string): void {
    if (this.#findings.length < 20) this.#findings.push({ kind, what });
  }

  mayLose(): boolean {
    return performance.now() < this.#mayLoseUntil || this.#underWay.size > 0;
  }

  async outcome(): Promise<Outcome> {
    try {
      await loadLibrary(this.arena.source.port);
      for (const act of this.program.acts) await this.#supervised(() => this.#perform(act));
      await this.#supervised(() => this.#judge());
    } catch (error) {
      if (!(error instanceof ProxyEnded)) throw error;
      this.violation('ended', error.message);
    }
    const sum = (of: (client: Client) => number): number =>
      this.#clients.reduce((total, client) => total + of(client), 0);
    return {
      findings: this.#findings,
      operations: sum(({ answered }) => answered),
      unanswered: sum(({ unanswered }) => unanswered),
      faults: this.#faults,
      kills: this.#kills,
      stageChanges: this.#stageChanges,
    };
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    for (const relay of Object.values(this.relays)) relay.release();
    await this.proxy.stop();
  }

  /** A proxy that could not reach a server for long releases its lease and exits; its supervisor starts it again. */
  async #supervised(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ProxyEnded) || !(await this.#lostLease())) throw error;
      // A server that cannot be reached ends a start, too.
      await Promise.all(this.#underWay);
      this.#mayLoseUntil = performance.now() + FAULT_ECHO_MS;
      await this.proxy.begin();
      await work();
    }
  }

  /** Whether the proxy has ended because it could not hold its lease while a server was out of reach. */
  async #lostLease(): Promise<boolean> {
    if (this.#faults === 0 || !this.proxy.log().includes('has lost its lease')) return false;
    for (const deadline = performance.now() + 2_000; !this.proxy.hasEnded && performance.now() < deadline;)
      await sleep(20);
    return this.proxy.hasEnded;
  }

  async #perform(act: Act): Promise<void> {
    if (this.proxy.hasEnded) throw new ProxyEnded(`the proxy has ended by itself: ${this.proxy.log()}`);
    switch (act.do) {
      case 'send':
        return this.#clients[act.client].send(act.commands, act.pieces);
      case 'await':
        // A fault may hold the reply until an act to come.
        return void (await this.#clients[act.client].idle(200));
      case 'leave':
        return this.#clients[act.client].leave(act.how);
      case 'stop-reading':
        this.#clients[act.client].stopReading();
        return this.#later(
          sleep(act.ms).then(() => this.#clients[act.client].read()),
          0,
        );
      case 'fault':
        return this.#fault(act);
      case 'stage':
        // As an operator, beside the clients. A refusal is an answer, too.
        return this.#later(
          this.#change(act.workload, act.to)
            .catch((error: Error) => this.#unlessKilled(error))
            .then(() => undefined),
          0,
        );
      case 'kill':
        return this.#kill(act.what);
      case 'pause':
        return void (await sleep(act.ms));
    }
  }

  /** Goes on beside the acts that follow; connections may be lost until some time after it. */
  #later(work: Promise<void>, echoMs: number): void {
    const done = work
      .catch((error: Error) => this.violation(error instanceof ProxyEnded ? 'ended' : 'stage', error.message))
      .finally(() => {
        this.#underWay.delete(done);
        if (echoMs > 0) this.#mayLoseUntil = performance.now() + echoMs;
      });
    this.#underWay.add(done);
  }

  async #change(workload: WorkloadName, to: Stage): Promise<string | null> {
    const refusal = await this.proxy.change(workload, to);
    if (refusal === null) this.#stageChanges++;
    return refusal;
  }

  /** What asked a proxy that was killed meanwhile has no answer. */
  async #unlessKilled(error: Error): Promise<void> {
    if (!(error instanceof ProxyEnded) || (this.#kills === 0 && !(await this.#lostLease()))) throw error;
  }

  #fault({ side, direction, bytes, kind, all, ms }: Fault): void {
    this.#faults++;
    const relay = this.relays[side];
    const links = [...relay.links].sort((a, b) => b.passed[direction] - a.passed[direction]);
    const busiest = links[0] as Link | undefined;
    const strike = async (): Promise<void> => {
      if (kind === 'silence') {
        if (all) relay.hold('up', 'down');
        else busiest?.hold('up', 'down');
        await sleep(ms);
        if (all) relay.release();
      } else if (kind === 'abandon') {
        if (all) await relay.cutClients();
        else await busiest?.abandon();
      } else if (all) relay.cut();
      else busiest?.cut();
    };
    // Where nothing more passes, it fails all the same.
    const counted = busiest?.holdAfter(direction, bytes) ?? Promise.resolve();
    this.#later(
      Promise.race([counted, sleep(200)])
        .then(strike)
        .finally(() => busiest?.release()),
      FAULT_ECHO_MS,
    );
  }

  async #kill(what: 'proxy' | 'target'): Promise<void> {
    // An authority that restarts empty has lost what it acknowledged: nothing to hold the proxy to.
    await Promise.all(this.#underWay);
    if (what === 'target' && (await this.proxy.snapshot()).workloads.some(({ stage }) => stage === 'live')) return;
    this.#kills++;
    this.#mayLoseUntil = Infinity;
    if (what === 'proxy') {
      await this.proxy.kill();
      await this.proxy.begin();
    } else {
      await this.arena.target.kill('SIGKILL');
      await this.arena.target.start();
    }
    this.#mayLoseUntil = performance.now() + FAULT_ECHO_MS;
  }

  async #judge(): Promise<void> {
    await Promise.all(this.#underWay);
    for (const relay of Object.values(this.relays)) relay.release();
    const idle = await Promise.all(this.#clients.map((client) => client.idle(REPLY_MS)));
    for (const [number, is] of idle.entries())
      if (!is) this.violation('hangs', `client ${number} has no reply to ${this.#clients[number].waitsFor}`);
    await this.#recovers();
    await this.#touchAll();
    if (!(await this.#settles())) return;
    await this.#moveAll();
    if (!(await this.#settles())) return;
    this.#lookAtLedger();
    await this.#compare();
    await this.#countAgain();
  }

  /** Waits until no server is taken for down any more: links that were silent work again. */
  async #recovers(): Promise<void> {
    for (const deadline = performance.now() + REPLY_MS; performance.now() < deadline; await sleep(50)) {
      const { source, target } = await this.proxy.snapshot();
      if (source.silentMs === 0 && target.silentMs === 0 && source.up && target.up) return;
    }
  }

  /** Sends a write to every key there is: no key may be held back forever. */
  async #touchAll(): Promise<void> {
    const client = new Redis({ port: this.proxy.port, retryStrategy: null, commandTimeout: REPLY_MS });
    client.on('error', () => undefined);
    const failures: string[] = [];
    const noting = (what: string) => (error: Error) => void failures.push(`${what}: ${error.message}`);
    try {
      for (const db of [0, 1, 2, 3]) {
        await client.select(db);
        const keys = await client.keysBuffer('*');
        await Promise.all(
          keys.map((key) => client.call('PERSIST', key).catch(noting(`PERSIST ${key.toString('latin1')} in ${db}`))),
        );
      }
      // Refused while workloads have different authorities.
      await client
        .swapdb(2, 3)
        .catch((error: Error) => (error.message.startsWith('ERR ') ? undefined : noting('SWAPDB 2 3')(error)));
    } catch (error) {
      noting('a new client')(error as Error);
    } finally {
      client.disconnect();
    }
    // Where its connection was closed, the process may be about to end.
    if (failures.length > 0) await sleep(500);
    if (this.proxy.hasEnded) throw new ProxyEnded(`the proxy has ended by itself: ${this.proxy.log()}`);
    for (const failure of failures) this.violation('hangs', failure);
  }

  /** Waits until nothing is suspect; false, with a finding, where that takes too long. */
  async #settles(): Promise<boolean> {
    let last: ShardSnapshot = await this.proxy.snapshot();
    let calm = 0;
    for (const deadline = performance.now() + SETTLE_MS; performance.now() < deadline; await sleep(50)) {
      last = await this.proxy.snapshot();
      calm = isSettled(last) ? calm + 1 : 0;
      if (calm === 3) return true;
    }
    const { mirror, suspects, undecided, workloads, frozen, job } = last;
    this.violation(
      'not settled',
      JSON.stringify({
        frozen,
        mirror,
        suspects,
        undecided,
        job: job?.state,
        unclean: workloads.filter(({ clean }) => !clean).map(({ name, suspect }) => [name, suspect]),
      }),
    );
    return false;
  }

  /** Moves every workload there and back: a stage change must not hang, whatever happened before. */
  async #moveAll(): Promise<void> {
    for (const to of ['live', 'shadow'] as const) {
      for (const workload of WORKLOADS) {
        let refusal: string | null = '';
        for (let tries = 0; refusal !== null && tries < STAGE_TRIES; tries++) {
          const is = (await this.proxy.snapshot()).workloads.find(({ name }) => name === workload);
          refusal = is?.stage === to ? null : await this.#change(workload, to);
          if (refusal !== null) await sleep(100);
        }
        if (refusal !== null) this.violation('stage', `${workload} → ${to}: ${refusal}`);
      }
    }
  }

  #lookAtLedger(): void {
    const entries = this.proxy
      .ledger()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as LedgerEntry);
    for (const { kind, command, key, db, authority, source, target } of entries) {
      if (kind === 'unsupported') continue;
      this.violation(
        'mismatch',
        `${command} ${kind}, authority ${authority}: ${key?.text ?? 'no key'} in ${db}: ${source.reply?.slice(0, 200)} ≠ ${target.reply?.slice(0, 200)}`,
      );
    }
  }

  async #compare(): Promise<void> {
    const { differences } = await compareKeyspaces(this.arena.source, this.arena.target);
    for (const { db, key, what, a, b } of differences) {
      const [source, target] = await Promise.all(
        [this.arena.source, this.arena.target].map((server) => lookAt(server, db, key)),
      );
      this.violation('differs', `${key} in ${db}, ${what}: ${a} ≠ ${b}; source ${source}, target ${target}`);
    }
  }

  async #countAgain(): Promise<void> {
    const client = new Redis({ port: this.arena.source.port });
    for (const [at, { acknowledged, open }] of this.counted.entries()) {
      const value = Number((await client.get(COUNTERS[at])) ?? 0);
      if (value < acknowledged || value > acknowledged + open)
        this.violation(
          'counter',
          `${COUNTERS[at]} is ${value}; ${acknowledged} increments were acknowledged, ${open} were not answered`,
        );
    }
    client.disconnect();
  }
}

function isSettled({ mirror, suspects, undecided, workloads, frozen, job }: ShardSnapshot): boolean {
  const rest = suspects.total === 0 && undecided === 0 && job?.state !== 'running';
  return (
    frozen === null && mirror.connected && mirror.queuedEffects === 0 && rest && workloads.every(({ clean }) => clean)
  );
}

/** What the server has of the key, as text: its value where that is a string, and its time to live in ms. */
async function lookAt({ port }: LocalServer, db: number, key: string): Promise<string> {
  const client = new Redis({ port, db });
  try {
    const [value, pttl] = [await client.get(key).catch((error: Error) => error.message), await client.pttl(key)];
    return `${value?.slice(0, 100) ?? 'nothing'} (PTTL ${pttl})`;
  } finally {
    client.disconnect();
  }
}
