/**
 * A rehearsal: both servers, the daemon between them as a process of its own, 16 connections that write all types, a
 * fault in the middle; and in the end, by a comparison that knows nothing of the proxy, not one difference.
 *
 * The witnesses are four clients more. Each adds numbers of its own and notes which were acknowledged, so that what was
 * lost can be counted on either server.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LocalServer, ServerConfig } from '../../../src/local/servers.js';
import { sum, type ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import type { Stage } from '../../../src/route/stage.js';
import { planFor, start, status, type Running } from '../cli/running.js';
import type { PlanObject } from '../../support/plans.js';
import { compareKeyspaces, type Difference } from '../random/comparer.js';
import { LIBRARY } from '../random/commands/functions.js';
import { APP_USER, drive, type DriverOptions, type DriverReport } from '../random/driver.js';
import { withServers, type Pair } from '../../support/servers.js';
import { moveRequest } from '../../support/move.js';
import { until } from '../../support/shard.js';

const CONNECTIONS = 16;
/** Traffic before the fault, and after it. */
const BEFORE_MS = 4_000;
const AFTER_MS = 5_000;
const REPAIR_MS = 90_000;
/** Keys that nobody touches: what a fault takes of them, only a look at everything finds. */
const COLD_KEYS = 3_000;
const WITNESSES = 4;

export interface Scene {
  readonly t: TestContext;
  readonly source: LocalServer;
  readonly target: LocalServer;
  /** By the stage of the rehearsal; a failover or the operator may change them. */
  authority: LocalServer;
  mirror: LocalServer;
  proxy: Running;
  readonly plan: PlanObject;
  readonly rest: Rest;
  readonly witness: Witness;
  status(): Promise<ShardSnapshot>;
  /** Starts the daemon again on what the last one left. */
  startProxy(): Promise<void>;
  /** Moves all keys to a stage, whatever it may cost. */
  force(stage: Stage): Promise<void>;
}

export interface Rehearsal extends Pick<DriverOptions, 'reconnects' | 'errorCodes'> {
  readonly stage?: Stage;
  readonly source?: ServerConfig;
  readonly target?: ServerConfig;
  /** How long the fault is expected to last. */
  readonly faultMs?: number;
  /** Of the daemon, and of the two servers. */
  readonly env?: NodeJS.ProcessEnv;
  readonly sourceEnv?: NodeJS.ProcessEnv;
  readonly targetEnv?: NodeJS.ProcessEnv;
  readonly plan?: (plan: PlanObject, servers: Pair) => void | Promise<void>;
  /** Before the first client comes. */
  readonly before?: (scene: Scene) => Promise<void>;
  readonly fault: (scene: Scene) => Promise<void>;
  /** Runs when the clients have disconnected, before everything must be repaired. */
  readonly decide?: (scene: Scene) => Promise<void>;
  /** Violations that the fault explains: what Redis itself has lost. */
  readonly allowed?: RegExp;
  /** More operations than this must have been answered; 2,000 by default. */
  readonly moreThan?: number;
}

export async function rehearse(t: TestContext, rehearsal: Rehearsal): Promise<void> {
  const config = { user: [APP_USER.acl] };
  await withServers(async (servers) => perform(await setScene(t, servers, rehearsal), rehearsal), {
    source: { config: { ...config, ...rehearsal.source }, env: rehearsal.sourceEnv },
    target: { config: { ...config, ...rehearsal.target }, env: rehearsal.targetEnv },
  });
}

async function setScene(
  t: TestContext,
  { source, target }: Pair,
  { stage = 'shadow', env, plan: change, before }: Rehearsal,
): Promise<Scene> {
  const plan = await planFor({ source, target }, (plan) =>
    Object.assign(plan, {
      workloads: [{ name: 'cold', keys: ['cold:*'], stage }],
      default: { stage },
      ledger: { redact: false },
    }),
  );
  await change?.(plan, { source, target });
  const [authority, mirror] = stage === 'live' ? [target, source] : [source, target];
  const proxy = await start(t, plan, undefined, [], env);
  const scene: Scene = {
    ...{ t, source, target, authority, mirror, proxy, plan, rest: new Rest(), witness: new Witness(proxy.port) },
    status: async () => {
      const [snapshot] = await status(scene.proxy.admin);
      assert.ok(snapshot, 'the shard is not served yet');
      return snapshot;
    },
    startProxy: async () => void (scene.proxy = await start(t, plan, proxy.directory, [], env)),
    force: async (to) => {
      const { workloads } = await scene.status();
      for (const { name, stage: from } of workloads) {
        const [path, body] = moveRequest(name, from, to, { lose: true });
        await order(scene, path, [body]);
      }
    },
  };
  await fill(proxy.port);
  await before?.(scene);
  return scene;
}

/** Asks the daemon for something, as the operator's tool does. */
export async function order({ proxy }: Scene, path: string, bodies: readonly object[]): Promise<void> {
  for (const body of bodies) {
    const response = await fetch(`${proxy.admin}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    });
    assert.ok(response.ok, await response.text());
  }
}

async function fill(port: number): Promise<void> {
  const client = new Redis({ port });
  const pipeline = client.pipeline();
  for (let i = 0; i < COLD_KEYS; i += 3) {
    pipeline
      .set(`cold:${i}`, `value ${i}`, 'EX', 5_000 + i)
      .hset(`cold:${i + 1}`, 'a', i, 'b', 'x'.repeat(i % 90))
      .rpush(`cold:${i + 2}`, 'a', i);
  }
  await pipeline.exec();
  await client.call('FUNCTION', 'LOAD', LIBRARY).catch(() => undefined);
  client.disconnect();
}

async function perform(scene: Scene, rehearsal: Rehearsal): Promise<void> {
  const { t, witness, rest } = scene;
  const {
    stage = 'shadow',
    faultMs = 3_000,
    reconnects,
    errorCodes,
    fault,
    decide,
    allowed = /^$/,
    moreThan = 2_000,
  } = rehearsal;
  const seed = Number(process.env.RANDOM_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const confirmed = countConfirmed(scene);
  witness.begin(rest);
  const driven = drive({
    port: scene.proxy.port,
    seed,
    connections: CONNECTIONS,
    durationMs: BEFORE_MS + faultMs + AFTER_MS,
    reconnects,
    errorCodes,
    between: () => rest.pass(),
    functions: stage === 'live' ? [] : [''],
  });
  // Load before the fault.
  await sleep(BEFORE_MS);
  await fault(scene);
  const over = performance.now();
  const after = await differencesAtRest(scene);
  const suspected = await scene.status();
  const report = await driven;
  await witness.end();
  await decide?.(scene);
  await untilRepaired(scene);
  const repairedMs = performance.now() - over;
  const last = await scene.status();
  const { keys, differences } = await compareKeyspaces(scene.authority, scene.mirror);
  const lost = await witness.lost(scene);
  const violations = report.violations.filter((each) => !allowed.test(each));
  t.diagnostic(
    [
      `attempted ${report.operations + report.unanswered + witness.attempted}, acknowledged ${report.operations + witness.acknowledged.length}, confirmed by the mirror ${confirmed.end(last)}`,
      `lost of ${witness.acknowledged.length} acknowledged by witness: ${lost.authority} on the authority, ${lost.mirror} on the mirror`,
      `differences ${after ?? 'not to be had'} right after the fault (in doubt then: ${describeSuspects(suspected)}), ${differences.length} of ${keys} keys in the end`,
      `healed ${(repairedMs / 1000).toFixed(1)} s after the fault (traffic ended ${AFTER_MS / 1000} s after it)`,
      `longest wait of a witness ${Math.round(witness.longestMs)} ms`,
      `connections lost ${report.lost}, mismatches ${JSON.stringify(last.mismatches)}, violations that the fault explains ${report.violations.length - violations.length}, seed ${seed}`,
    ].join('; '),
  );
  assertWorthwhile(report, moreThan);
  assert.deepEqual(
    { violations, differences: differences.slice(0, 10) },
    { violations: [], differences: [] as Difference[] },
    `seed ${seed}; ledger and journal are in ${scene.proxy.directory}`,
  );
  if (allowed.source === '^$') assert.deepEqual(lost, { authority: 0, mirror: 0 });
}

function assertWorthwhile({ operations, unanswered }: DriverReport, moreThan: number): void {
  assert.ok(operations > moreThan, `only ${operations} operations were answered, ${unanswered} were not`);
}

function describeSuspects({ suspects, workloads, frozen }: ShardSnapshot): string {
  const whole = workloads.filter(({ suspect }) => suspect !== null).length;
  return `${suspects.total} keys and ${whole} of ${workloads.length} workloads as a whole${frozen === null ? '' : ', frozen'}`;
}

/** Counts what the mirrors answered, over all processes of the proxy: for a killed one, its last status counts. */
function countConfirmed({ status: ask }: Scene): { end(last: ShardSnapshot): number } {
  const count = ({ compared, inconclusive }: ShardSnapshot): number => compared + sum(inconclusive);
  let [before, now] = [0, 0];
  const tell = (snapshot: ShardSnapshot): void => {
    if (count(snapshot) < now) before += now;
    now = count(snapshot);
  };
  // A test that fails does not reach `end`.
  const timer = setInterval(() => void ask().then(tell, () => undefined), 250).unref();
  return {
    end(last) {
      clearInterval(timer);
      tell(last);
      return before + now;
    },
  };
}

/**
 * How many keys differ now: the clients rest for a moment, and what is on its way arrives. Null where that cannot be.
 */
async function differencesAtRest({ authority, mirror, rest, status: ask }: Scene): Promise<number | null> {
  try {
    await rest.begin();
    await until(async () => (await ask()).mirror.queuedEffects === 0, 2_000).catch(() => undefined);
    return (await compareKeyspaces(authority, mirror)).differences.length;
  } catch {
    return null;
  } finally {
    rest.end();
  }
}

/** Has all clients wait with nothing under way. */
class Rest {
  #over: Promise<void> | null = null;
  #resting = 0;
  end: () => void = () => undefined;

  async pass(): Promise<void> {
    if (this.#over === null) return;
    this.#resting++;
    await this.#over;
    this.#resting--;
  }

  /** Resolves when nothing is under way. @throws when that takes long */
  async begin(): Promise<void> {
    this.#over = new Promise((resolve) => {
      this.end = () => {
        this.#over = null;
        resolve();
      };
    });
    await until(() => this.#resting === CONNECTIONS + WITNESSES, 3_000);
  }
}

/** @throws with the status, when it is not repaired in time */
export async function untilRepaired({ status: ask, authority }: Scene): Promise<void> {
  let seen: ShardSnapshot | null = null;
  const isRepaired = ({ mirror, suspects, undecided, workloads, job, frozen }: ShardSnapshot): boolean =>
    frozen === null &&
    mirror.connected &&
    mirror.queuedEffects === 0 &&
    suspects.total === 0 &&
    undecided === 0 &&
    job?.state !== 'running' &&
    workloads.every(({ clean }) => clean);
  const look = async (): Promise<boolean> => isRepaired((seen = await ask()));
  await until(
    async () => (await look().catch(() => false)) && (await sleep(200).then(look)),
    REPAIR_MS,
    () =>
      authority.pid === undefined
        ? `the authority itself has ended: ${authority.log().slice(-4_000)}`
        : JSON.stringify(seen && { ...seen, latency: undefined }),
  );
}

/** Clients that record which of their writes were acknowledged. */
class Witness {
  attempted = 0;
  longestMs = 0;
  /** `key/number` */
  readonly acknowledged: string[] = [];
  #stopped = false;
  #loops: Promise<void>[] = [];

  constructor(private readonly port: number) {}

  begin(rest: Rest): void {
    this.#loops = Array.from({ length: WITNESSES }, (_, i) => this.#add(i, rest));
  }

  async end(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  /** Of what was acknowledged, so much is not on a server. */
  async missingOn({ port }: LocalServer, of: readonly string[] = this.acknowledged): Promise<string[]> {
    const client = new Redis({ port });
    const has = await Promise.all(of.map((each) => client.sismember(...(each.split('/') as [string, string]))));
    client.disconnect();
    return of.filter((_, i) => has[i] === 0);
  }

  async lost({ authority, mirror }: Scene): Promise<{ authority: number; mirror: number }> {
    const [a, b] = await Promise.all([this.missingOn(authority), this.missingOn(mirror)]);
    return { authority: a.length, mirror: b.length };
  }

  async #add(i: number, rest: Rest): Promise<void> {
    const client = new Redis({ port: this.port, maxRetriesPerRequest: 0, retryStrategy: () => 20 });
    client.on('error', () => undefined);
    for (let n = 0; !this.#stopped; n++) {
      const key = `witness:${i}:${Math.floor(n / 100)}`;
      await rest.pass();
      this.attempted++;
      const since = performance.now();
      const added = await client.sadd(key, n).catch(() => null);
      this.longestMs = Math.max(this.longestMs, performance.now() - since);
      if (added === 1) this.acknowledged.push(`${key}/${n}`);
      await sleep(added === null ? 20 : 2);
    }
    client.disconnect();
  }
}
