/** Several shards of one plan, a Redis each, that keep their keys on one KeyDB, or on few. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { launch, type LaunchedShard } from '../../src/shard/launch.js';
import { startRedis, type LocalServer } from '../../src/local/servers.js';
import { planFrom } from '../../src/plan/load.js';
import type { JobRequest } from '../../src/storage/job-file.js';
import type { JobSnapshot } from '../../src/telemetry/snapshot.js';
import type { Stage } from '../../src/route/stage.js';
import { keyspace } from './keyspace.js';
import { startTestTarget, withServers } from './servers.js';
import { until, type TestWorkload } from './shard.js';
import { Wire } from './wire.js';

/** As in a plan; undefined says nothing. */
export type OwnsOfPlan = readonly string[] | { readonly slots: string } | undefined;

export interface SharedOptions {
  /** Of each shard: as many shards as there are entries. */
  readonly owns: readonly OwnsOfPlan[];
  /** Of the rest. Default: shadow. */
  readonly stage?: Stage;
  readonly workloads?: readonly TestWorkload[];
  /** How many there are; the shards take them in turn. Default: 1. */
  readonly targets?: number;
  /** How many databases the sources have, but the first. */
  readonly databases?: number;
}

/** A line of a job's report. */
export interface Reported {
  readonly kind: string;
  readonly workload: string;
  readonly db: number;
  readonly key: string;
  readonly holders?: Readonly<
    Record<
      string,
      { readonly type: string; readonly bytes: number; readonly pttl: number; readonly digest: string } | null
    >
  >;
}

export class Shared {
  shards: LaunchedShard[] = [];
  #wires: Wire[] = [];

  constructor(
    readonly sources: readonly LocalServer[],
    readonly targets: readonly LocalServer[],
    private readonly options: SharedOptions,
    private readonly state: string,
  ) {}

  /** The first one. */
  get target(): LocalServer {
    return this.targets[0];
  }

  /** Starts them, in place of those that run; what is durable stays. */
  async start(owns: readonly OwnsOfPlan[] = this.options.owns): Promise<void> {
    await this.stop();
    const { stage = 'shadow', workloads = [] } = this.options;
    const shards = this.sources.map(({ url }, i) => ({
      name: `s${i}`,
      listen: 'redis://127.0.0.1:0',
      source: url,
      target: this.targets[i % this.targets.length].url,
      ...(owns[i] && { owns: owns[i] }),
    }));
    const plan = planFrom(
      {
        version: 1,
        name: 'shared',
        shards,
        workloads,
        default: { stage },
        admin: { listen: '127.0.0.1:0' },
        state: this.state,
      },
      'the test',
      { directory: this.state, env: {} },
    );
    for (const shard of plan.shards)
      this.shards.push(
        await launch(plan, shard, pino({ level: 'silent' }), {
          firstStart: true,
          shards: () => this.shards.map((each) => each.shard),
        }),
      );
    this.#wires = await Promise.all(this.shards.map(({ shard }) => Wire.open({ port: shard.port })));
  }

  async stop(): Promise<void> {
    for (const wire of this.#wires) wire.destroy();
    for (const each of this.shards.splice(0)) await each.stop();
  }

  /** A client of that shard. */
  wire(of: number): Wire {
    return this.#wires[of];
  }

  settled(): Promise<void> {
    return until(() =>
      this.shards.every(
        ({ shard }) =>
          shard.snapshot().mirror.queuedEffects === 0 &&
          shard.snapshot().undecided === 0 &&
          shard.snapshot().suspects.total === 0,
      ),
    );
  }

  /** `<database>:<key>` of all that the server has, sorted. */
  async keysOf(server: LocalServer): Promise<string[]> {
    return [...(await keyspace(server)).keys()].sort();
  }

  async keys(): Promise<{ sources: string[][]; target: string[] }> {
    return {
      sources: await Promise.all(this.sources.map((source) => this.keysOf(source))),
      target: await this.keysOf(this.target),
    };
  }

  async moveAll(stage: Stage, workload = 'default'): Promise<void> {
    for (const { shard } of this.shards) await shard.changeStage({ workload, stage });
  }

  /** Runs a job of one shard to its end. */
  async job(of: number, request: Pick<JobRequest, 'kind'> & Partial<JobRequest>): Promise<JobSnapshot> {
    const { shard } = this.shards[of];
    shard.startJob({
      workloads: null,
      repair: false,
      dryRun: false,
      again: false,
      deletes: 0,
      sample: 100,
      limits: {},
      automatic: false,
      ...request,
    });
    await until(
      () => shard.snapshot().job!.state !== 'running',
      20_000,
      () => JSON.stringify(shard.snapshot().job),
    );
    return shard.snapshot().job!;
  }

  /** What the shard's last job has reported. */
  report(of: number): Reported[] {
    const lines = readFileSync(join(this.state, `s${of}`, 'differences.jsonl'), 'utf8')
      .split('\n')
      .filter(Boolean);
    return lines.map((line) => JSON.parse(line) as Reported);
  }
}

/** Starts servers and shards, and stops them after `body`, however it ends. */
export async function withSharedTarget(options: SharedOptions, body: (shared: Shared) => Promise<void>): Promise<void> {
  await withServers(async ({ source, target }) => {
    const more = await Promise.all(
      options.owns.slice(1).map(() => startRedis({ config: { databases: options.databases ?? 16 } })),
    );
    const moreTargets = await Promise.all(Array.from({ length: (options.targets ?? 1) - 1 }, () => startTestTarget()));
    const state = mkdtempSync(join(tmpdir(), 'shared-'));
    const shared = new Shared([source, ...more], [target, ...moreTargets], options, state);
    try {
      await shared.start();
      await body(shared);
    } finally {
      await shared.stop();
      await Promise.all([...more, ...moreTargets].map((server) => server.stop()));
      rmSync(state, { recursive: true });
    }
  });
}

/** Asks a server itself. */
export async function direct(
  server: LocalServer,
  ...commands: readonly (readonly (string | number)[])[]
): Promise<string[]> {
  const wire = await Wire.open({ port: server.port });
  try {
    return await wire.pipeline(commands);
  } finally {
    wire.destroy();
  }
}
