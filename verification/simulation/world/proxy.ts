/** A process of the proxy with one shard: the product's own code, from `launch` on. */
import { pino, type Logger } from 'pino';
import { derive } from '../../../shadow-proxy/src/upstream/open-plan.js';
import { planFrom } from '../../../shadow-proxy/src/plan/load.js';
import type { Plan } from '../../../shadow-proxy/src/plan/plan.js';
import { Sentinel } from '../../../shadow-proxy/src/sentinel/sentinel.js';
import { launch, type LaunchedShard } from '../../../shadow-proxy/src/shard/launch.js';
import { conditionFactsOf } from '../../../shadow-proxy/src/shard/snapshot-facts.js';
import { conditionOf, type ShardCondition } from '../../../shadow-proxy/src/shard/snapshot.js';
import type { Parts } from '../../../shadow-proxy/src/shard/parts.js';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import type { Host, Process } from './process.js';
import type { SimulatedWorld } from './world.js';

export const PROXY_PORT = 7000;
export const SENTINEL_PORT = 26_379;
export const SENTINEL_PASSWORD = 'watch';
/** The name of the master that is the shard's proxy. */
export const MASTER = 'cache';

/** A process that is asked to end does so within this time, beside that for its mirrors. */
const END_MS = 4_000;

export interface ProxyOptions {
  readonly source: string;
  readonly target: string;
  /** Each of its processes waits for the end of another; with others that do, all but the first. */
  readonly isStandby?: boolean;
  /** How many other processes of the shard there are. Each has a folder of its own. */
  readonly others?: number;
  /** Each process answers as a Sentinel, too. */
  readonly isSentinel?: boolean;
  /** Written into the plan as they are. */
  readonly plan?: Readonly<Record<string, unknown>>;
}

export class Proxy {
  process: Process | null = null;
  launched: LaunchedShard | null = null;
  /** Called where a process ends by itself. */
  onEnd: (problem: Error) => void = () => undefined;
  /** Called when a process is about to end, whatever ends it. */
  onKill: () => void = () => undefined;
  /** Called as soon as a process serves. */
  onServe: () => void = () => undefined;
  /** Why the last process ended by itself. */
  problem: Error | null = null;
  starts = 0;
  startedAt = 0;
  readonly plan: Plan;
  /** Whether its last process had served. */
  lastServed = false;
  /** It was asked to end, and has not ended yet. */
  isEnding = false;
  #askedToEndAt = 0;
  /** For how long it may wait for its mirrors. */
  #drainMs = 0;
  readonly #logger: Logger;

  constructor(
    private readonly world: SimulatedWorld,
    readonly host: Host,
    private readonly options: ProxyOptions,
    logLevel = 'silent',
  ) {
    this.plan = this.planWith({});
    this.#logger = pino({ level: logLevel }, pino.destination({ fd: 2, sync: true }));
  }

  /** Its plan with other settings. */
  planWith(more: Readonly<Record<string, unknown>>): Plan {
    const { source, target, plan = {} } = this.options;
    const { address } = this.host;
    const shard = { name: 's0', listen: `redis://${address}:${PROXY_PORT}`, source, target };
    const sentinel = {
      listen: `redis://${address}:${SENTINEL_PORT}`,
      announce: `${address}:${SENTINEL_PORT}`,
      masters: [{ name: MASTER, shard: 's0', announce: `${address}:${PROXY_PORT}` }],
    };
    const made = planFrom(
      {
        // Those of a cluster are derived from its slots.
        ...(plan.cluster === undefined && { shards: [shard] }),
        ...{ version: 1, name: 'simulated', workloads: [], default: { stage: 'shadow' } },
        ...{ state: '/state', threads: 0, sockets: 'node' },
        ...(this.options.isSentinel === true && { sentinel }),
        ...plan,
        ...more,
      },
      'simulated',
      { directory: '/', env: {} },
    );
    // A password is in a file on the machine of the plan.
    return { ...made, sentinel: made.sentinel && { ...made.sentinel, password: SENTINEL_PASSWORD } };
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: this.host.address, port: PROXY_PORT };
  }

  /** A new process on the disk that is there. */
  start(): void {
    const process = this.world.newProcess(`proxy ${++this.starts}`, this.host);
    this.process = process;
    this.startedAt = this.world.events.now;
    const { others = 0 } = this.options;
    const standby = this.options.isStandby === true || (others > 0 && this.starts > 1);
    this.world.events.after(0, process, () => {
      const launched = derive(this.plan, 'simulated', true).then(async (plan) => {
        const sentinel = plan.sentinel && new Sentinel(plan.sentinel, plan.limits, plan.name);
        await sentinel?.open();
        return launch(plan, plan.shards[0], this.#logger, {
          firstStart: this.starts === 1,
          standby,
          others,
          ownFolder: others > 0,
          masters: sentinel?.masters,
        });
      });
      launched.then(
        (launched) => {
          this.launched = launched;
          this.onServe();
          void launched.lost.then((problem) => this.#end(process, problem));
        },
        (problem: Error) => this.#end(process, problem),
      );
    });
  }

  /** The process ends by itself: it could not start, or its shard was taken over. */
  #end(process: Process, problem: Error): void {
    this.problem = problem;
    if (this.process !== process) return;
    this.kill();
    this.onEnd(problem);
  }

  /** SIGKILL. */
  kill(): void {
    this.onKill();
    this.process?.kill();
    this.process = null;
    this.lastServed = this.launched !== null;
    this.launched = null;
    this.isEnding = false;
  }

  /** SIGTERM: it waits for its mirrors for so long, and ends. */
  end(drainMs: number, ended: () => void): void {
    const { process } = this;
    this.isEnding = true;
    this.#askedToEndAt = this.world.events.now;
    this.#drainMs = drainMs;
    this.within(({ shard, stop }) => {
      void shard
        .drain(drainMs)
        .then(stop)
        .then(() => {
          if (this.process !== process) return;
          this.kill();
          ended();
        });
    });
  }

  /** Whether it should have ended: it was asked to, and was not stopped since, for long enough. */
  get isLateToEnd(): boolean {
    if (!this.isEnding || !this.answers) return false;
    const since = Math.max(this.#askedToEndAt, this.process!.stoppedUntil);
    return this.world.events.now > since + this.#drainMs + END_MS;
  }

  /** Whether its process runs, and is not stopped. */
  get answers(): boolean {
    return this.process !== null && this.process.stoppedUntil <= this.world.events.now;
  }

  /** What it reports of itself; null where it does not run. */
  snapshot(): ShardSnapshot | null {
    const { process, launched } = this;
    if (process === null || launched === null || !this.answers) return null;
    return this.world.events.as(process, () => launched.shard.snapshot());
  }

  /** What it reports of its condition, without what it counts; null where it does not run. */
  condition(): ShardCondition | null {
    const { process, parts } = this;
    if (process === null || parts === null || !this.answers) return null;
    return this.world.events.as(process, () => conditionOf(conditionFactsOf(parts)));
  }

  /** What its shard is made of, for checks that look inside; null where it does not run. */
  get parts(): Parts | null {
    return this.launched === null ? null : (this.launched.shard as unknown as { readonly parts: Parts }).parts;
  }

  /** Runs `run` as code of the process, in an event of its own. */
  within(run: (launched: LaunchedShard) => void): void {
    const { process, launched } = this;
    if (process === null || launched === null) return;
    this.world.events.after(0, process, () => run(launched));
  }
}
