/** A Redis Cluster, a KeyDB cluster or one KeyDB, and the proxies of all shards between them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster } from 'ioredis';
import { pino } from 'pino';
import {
  askNode,
  askRaw,
  startCluster,
  type ClusterOptions,
  type LocalCluster,
} from '../../src/local/start-cluster.js';
import { freePorts } from '../../src/local/port.js';
import type { LocalServer } from '../../src/local/servers.js';
import { planFrom } from '../../src/plan/load.js';
import type { Plan } from '../../src/plan/plan.js';
import { text, type Reply } from '../../src/resp/decode.js';
import type { Stage } from '../../src/route/stage.js';
import type { JobRequest } from '../../src/storage/job-file.js';
import type { JobSnapshot } from '../../src/telemetry/snapshot.js';
import { launch, type LaunchedShard } from '../../src/shard/launch.js';
import type { Shard } from '../../src/shard/contract.js';
import { derive } from '../../src/upstream/open-plan.js';
import { nodesOf } from '../../src/upstream/slots.js';
import { startTestTarget, type Certificates } from './servers.js';
import { WHOLE } from './jobs.js';
import { differencesOfAll } from './keyspace.js';
import { isSettled, until } from './shard.js';

export interface ClusterRigOptions {
  readonly source?: Partial<ClusterOptions>;
  /** `standalone` is one KeyDB. Default: as many masters as the source has, with the same ranges. */
  readonly target?: Partial<ClusterOptions> | 'standalone';
  readonly cuts?: readonly number[];
  /** The address that is announced to clients. Default: 127.0.0.1 */
  readonly announced?: string;
  /** Whether clients may read from replicas: the shards' replicas listen from `replicaPort` on. */
  readonly replicas?: boolean;
  /** The certificates of all servers, the proxy and clients, on every connection. */
  readonly tls?: Certificates;
  /** Whether both sides are believed to hold the same at the first start. Default: true. */
  readonly alike?: boolean;
  /** Over the rest of the plan. */
  readonly plan?: Readonly<Record<string, unknown>>;
}

export class ClusterRig {
  launched: LaunchedShard[] = [];
  plan!: Plan;
  readonly #clients: Cluster[] = [];

  private constructor(
    readonly source: LocalCluster,
    /** Null where it is one KeyDB. */
    readonly targetCluster: LocalCluster | null,
    /** The target's masters, or the one KeyDB. */
    readonly targets: readonly LocalServer[],
    private readonly options: ClusterRigOptions,
    readonly state: string,
    readonly port: number,
  ) {}

  static async start(options: ClusterRigOptions = {}): Promise<ClusterRig> {
    const masters = options.source?.masters ?? 3;
    const { target, tls } = options;
    const [source, targetCluster, standalone] = await Promise.all([
      startCluster({ program: 'redis', masters, ...options.source, ...(tls && { tls }) }),
      target === 'standalone' ? null : startCluster({ program: 'target', masters, ...target, ...(tls && { tls }) }),
      target === 'standalone' ? startTestTarget({ ...(tls && { tls }) }) : null,
    ]);
    const state = mkdtempSync(join(tmpdir(), 'cluster-'));
    const targets = targetCluster?.masters ?? [standalone!];
    const rig = new ClusterRig(source, targetCluster, targets, options, state, await freePorts(40));
    try {
      await rig.serve();
      return rig;
    } catch (problem) {
      await rig.stop();
      throw problem;
    }
  }

  get replicaPort(): number {
    return this.port + 20;
  }

  /** Starts the proxies of all shards, as the slots are now. */
  async serve(): Promise<void> {
    const { announced, cuts, plan, replicas, tls } = this.options;
    const scheme = tls ? 'rediss' : 'redis';
    const target = this.targetCluster?.seeds ?? `127.0.0.1:${this.targets[0].port}`;
    const file = {
      version: 1,
      name: 'cluster',
      cluster: {
        source: `${scheme}://${this.source.seeds}`,
        target: `${scheme}://${target}`,
        listen: `${scheme}://127.0.0.1:${this.port}`,
        ...(announced && { announce: `${announced}:${this.port}` }),
        ...(tls && {
          tls: { listen: { cert: tls.cert, key: tls.key }, source: { ca: tls.ca }, target: { ca: tls.ca } },
        }),
        ...(cuts === undefined ? {} : { cuts }),
        ...(replicas && { replicas: { port: this.replicaPort } }),
      },
      admin: { listen: '127.0.0.1:0' },
      state: this.state,
      onAuthorityChange: 'accept',
      limits: { drainMs: 5_000 },
      ...plan,
    };
    this.plan = await derive(planFrom(file, 'the test', { directory: this.state, env: {} }), 'the test');
    const logger = pino({ level: process.env.TEST_LOG ?? 'silent' }, pino.destination({ fd: 2, sync: true }));
    for (const shard of this.plan.shards)
      this.launched.push(
        await launch(this.plan, shard, logger, {
          alike: this.options.alike ?? true,
          shards: () => this.shards,
          shardCount: this.plan.shards.length,
        }),
      );
  }

  get shards(): readonly Shard[] {
    return this.launched.map(({ shard }) => shard);
  }

  /** A command at the first proxy, or at that of the shard. */
  ask(args: readonly (string | number)[], shard = 0): Promise<Reply> {
    const { tls } = this.options;
    return askRaw({ host: '127.0.0.1', port: this.plan.shards[shard].listen.port, ...(tls && { tls }) }, ...args);
  }

  async changeStage(stage: Stage): Promise<void> {
    for (const shard of this.shards) await shard.changeStage({ workload: 'default', stage });
  }

  /** Runs a job on every shard to its end. */
  async run(request: Pick<JobRequest, 'kind'> & Partial<JobRequest>, ms = 30_000): Promise<JobSnapshot[]> {
    for (const shard of this.shards) shard.startJob({ ...WHOLE, ...request });
    const jobs = (): JobSnapshot[] => this.shards.map((shard) => shard.snapshot().job!);
    await until(
      () => jobs().every(({ state }) => state !== 'running'),
      ms,
      () => JSON.stringify(jobs()),
    );
    return jobs();
  }

  /** Ends the proxies of all shards, everything confirmed. */
  async drain(): Promise<void> {
    this.#count();
    for (const { shard } of this.launched) await shard.drain(5_000);
    for (const each of this.launched.splice(0)) await each.stop();
  }

  /** An ioredis client of the whole cluster. */
  client(): Cluster {
    const client = new Cluster([{ host: '127.0.0.1', port: this.port }], {
      lazyConnect: false,
      ...(this.options.tls && { redisOptions: { tls: { rejectUnauthorized: false } } }),
    });
    client.on('error', () => undefined);
    this.#clients.push(client);
    return client;
  }

  /** Resolves when every shard's mirror has confirmed all, and nothing is suspect. */
  async settled(ms = 20_000): Promise<void> {
    const left = (): string =>
      JSON.stringify(
        this.shards.map((shard) => {
          const { mirror, suspects, undecided, workloads, frozen } = shard.snapshot();
          const unclean = workloads.flatMap(({ name, clean, suspect }) => (clean ? [] : [[name, suspect]]));
          return { mirror, suspects, undecided, frozen, unclean };
        }),
      );
    await until(() => this.shards.every((shard) => isSettled(shard.snapshot())), ms, left);
  }

  /** How the keys of the source's masters and of the target's differ: a line for each key. */
  async differences(): Promise<string[]> {
    return differencesOfAll(await this.mastersOf('source'), await this.mastersOf('target'));
  }

  /** The nodes that are masters now. */
  async mastersOf(side: 'source' | 'target'): Promise<readonly LocalServer[]> {
    const cluster = side === 'source' ? this.source : this.targetCluster;
    if (cluster === null) return this.targets;
    const found: LocalServer[] = [];
    for (const node of cluster.nodes) {
      if (node.pid === undefined) continue;
      const role = await askNode(node, 'ROLE').catch(() => null);
      if (role?.items && text(role.items[0]) === 'master') found.push(node);
    }
    return found;
  }

  /** The node that serves the slot now. */
  async masterOfSlot(side: 'source' | 'target', slot: number): Promise<LocalServer> {
    for (const node of await this.mastersOf(side)) {
      const own = nodesOf(text(await askNode(node, 'CLUSTER', 'NODES'))).find(({ isAsked }) => isAsked)!;
      if (own.slots.some(([first, last]) => first <= slot && slot <= last)) return node;
    }
    throw new Error(`no master of the ${side} has slot ${slot}`);
  }

  /** What the shards of the proxies that were drained have compared; without what KeyDB has not. */
  readonly #earlier = { pairs: 0, mismatches: {} as Record<string, number>, found: [] as unknown[] };

  #count(): void {
    for (const { shard, ledger } of this.launched) {
      const { mismatches, compared } = shard.snapshot();
      this.#earlier.pairs += compared;
      for (const [kind, count] of Object.entries(mismatches))
        if (kind !== 'unsupported') this.#earlier.mismatches[kind] = (this.#earlier.mismatches[kind] ?? 0) + count;
      this.#earlier.found.push(...ledger.latest().filter(({ kind }) => kind !== 'unsupported'));
    }
  }

  /** Pairs of replies that were compared since the start, and mismatches by kind. Call it once, at the end. */
  compared(): {
    readonly pairs: number;
    readonly mismatches: Readonly<Record<string, number>>;
    readonly found: unknown[];
  } {
    this.#count();
    return this.#earlier;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    for (const each of this.launched.splice(0)) await each.stop();
    await Promise.all([this.source.stop(), this.targetCluster?.stop(), ...this.targets.map((server) => server.stop())]);
    rmSync(this.state, { recursive: true, force: true });
  }
}
