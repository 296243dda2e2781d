/** A shard in this process, as the daemon would start it: from a plan, with its durable state and its ledger. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import type { Observer } from '../../src/pipeline/observer.js';
import type { Shard } from '../../src/shard/contract.js';
import type { Parts } from '../../src/shard/parts.js';
import type { ShardSnapshot } from '../../src/telemetry/snapshot.js';
import { freePort } from '../../src/local/port.js';
import { launch } from '../../src/shard/launch.js';
import { planFrom } from '../../src/plan/load.js';
import type { CounterLayout } from '../../src/plan/plan.js';
import type { Plan, WorkloadClass } from '../../src/plan/plan.js';
import type { Ledger, LedgerEntry } from '../../src/telemetry/ledger.js';
import { StateStore, type HistoryEvent, type ShardState } from '../../src/storage/state.js';
import type { Stage } from '../../src/route/stage.js';
import type { StageError } from '../../src/stages/stage-change.js';
import { patienceMs } from './patience.js';
import type { Certificates } from './servers.js';

export interface TestWorkload {
  readonly name: string;
  readonly keys: readonly string[];
  readonly channels?: readonly string[];
  readonly class?: WorkloadClass;
  readonly writer?: string;
  readonly counterLayout?: CounterLayout;
  readonly stage?: Stage;
  readonly percent?: number;
}

export interface TestShardOptions {
  /** A URL, or whatever has one. */
  readonly source: string | { readonly url: string };
  readonly target: string | { readonly url: string };
  /** Of the source, where it wants one. */
  readonly sourcePassword?: string;
  readonly workloads?: readonly TestWorkload[];
  /** Default: `{ stage: 'shadow' }`. */
  readonly default?: { readonly stage?: Stage; readonly percent?: number };
  /** As in a plan. */
  readonly onAuthorityChange?: Plan['onAuthorityChange'];
  /** Front threads; absent: as many as `TEST_THREADS` says, or none. */
  readonly threads?: number;
  /** As in a plan; absent: as `TEST_SOCKETS` says, or `auto`. */
  readonly sockets?: Plan['sockets'];
  /** As in a plan. */
  readonly topology?: Readonly<Record<string, unknown>>;
  readonly failover?: Plan['failover'];
  /** As in `launch`. */
  readonly alike?: boolean;
  /** As in `launch`; true by default. */
  readonly firstStart?: boolean;
  /** As in a plan: `flipMs`, `queueBytes`, `clients`, `clientOutputBytes`, `connectMs`, `drainMs`. */
  readonly limits?: Readonly<Record<string, number>>;
  readonly name?: string;
  /** Where clients connect to; a free port when absent. */
  readonly port?: number;
  /** Kept by `stop`; when absent, a temporary directory that `stop` removes. */
  readonly stateDir?: string;
  /** Clients then speak TLS only. */
  readonly listenTls?: Certificates & { readonly requireClientCert?: boolean };
  /** For `rediss://` servers. */
  readonly sourceTls?: Partial<Certificates>;
  readonly targetTls?: Partial<Certificates>;
  /** More fields of the plan, such as `hashFieldTtl`. */
  readonly plan?: Readonly<Record<string, unknown>>;
  /** More fields of the plan's shard, such as `owns`. */
  readonly shard?: Readonly<Record<string, unknown>>;
  /** Gets each line of the log; without it the log is shown as `TEST_LOG` says. */
  readonly logged?: (line: string) => void;
  /** As in `launch`. */
  readonly observer?: Observer;
  readonly recorded?: (event: HistoryEvent) => void;
}

export interface TestShard {
  readonly plan: Plan;
  readonly shard: Shard;
  readonly port: number;
  readonly ledger: Ledger;
  readonly stateDir: string;
  snapshot(): ShardSnapshot;
  /** The last mismatches, not redacted. */
  findings(): readonly LedgerEntry[];
  /** The durable state as it is on the disk. */
  state(): Promise<ShardState>;
  /** Waits until nothing is queued for the mirror and no key is suspect. @throws after `ms` with what is left */
  settled(ms?: number): Promise<void>;
  /** Closes the shard at once, as the end of its process would. Safe to call twice. */
  stop(): Promise<void>;
}

/** Starts a shard between two servers. `TEST_LOG=info` lets its log be seen. */
/** What the shard is made of, for tests that look inside. */
export const partsOf = (shard: Shard): Parts => (shard as unknown as { readonly parts: Parts }).parts;

export async function startTestShard(options: TestShardOptions): Promise<TestShard> {
  const stateDir = options.stateDir ?? (await mkdtemp(join(tmpdir(), 'shard-')));
  const plan = planFrom(asPlan(options, stateDir, options.port ?? (await freePort())), 'the test', {
    directory: stateDir,
    env: {},
  });
  const [shardPlan] = plan.shards;
  const { logged } = options;
  const logger =
    logged === undefined
      ? pino({ level: process.env.TEST_LOG ?? 'silent' }, pino.destination({ fd: 2, sync: true }))
      : pino({ level: 'info' }, { write: logged });
  const discard = async (): Promise<void> => {
    if (options.stateDir === undefined) await rm(stateDir, { recursive: true, force: true });
  };
  const launched = await launch(plan, shardPlan, logger, {
    alike: options.alike,
    firstStart: options.firstStart ?? true,
    observer: options.observer,
    recorded: options.recorded,
  }).catch(async (error: unknown) => {
    await discard();
    throw error;
  });
  const { shard, ledger } = launched;
  let stopped: Promise<void> | undefined;
  return {
    plan,
    shard,
    port: shard.port,
    ledger,
    stateDir,
    snapshot: () => shard.snapshot(),
    findings: () => ledger.latest(),
    state: async () => (await StateStore.open(stateDir, shardPlan.name)).current,
    settled: (ms = 30_000) => {
      const left = (): string => {
        const { mirror, suspects, undecided, workloads, frozen } = shard.snapshot();
        return JSON.stringify({
          mirror,
          suspects,
          undecided,
          frozen,
          unclean: workloads.filter(({ clean }) => !clean).map(({ name }) => name),
        });
      };
      return until(() => isSettled(shard.snapshot()), ms, left);
    },
    stop: () => (stopped ??= launched.stop().then(discard)),
  };
}

function asPlan(options: TestShardOptions, stateDir: string, port: number): unknown {
  const { source, target, listenTls, sourceTls, targetTls } = options;
  const url = (server: string | { readonly url: string }): string => (typeof server === 'string' ? server : server.url);
  const tls = {
    ...(listenTls && { listen: listenTls }),
    ...(sourceTls && { source: sourceTls }),
    ...(targetTls && { target: targetTls }),
  };
  return {
    version: 1,
    name: 'test',
    shards: [
      {
        name: options.name ?? 'test',
        listen: `${listenTls ? 'rediss' : 'redis'}://127.0.0.1:${port}`,
        source: url(source).replace(
          '://',
          options.sourcePassword === undefined ? '://' : `://:${options.sourcePassword}@`,
        ),
        target: url(target),
        ...(Object.keys(tls).length > 0 && { tls }),
        ...options.shard,
      },
    ],
    workloads: options.workloads ?? [],
    default: options.default ?? { stage: 'shadow' },
    threads: options.threads ?? Number(process.env.TEST_THREADS ?? 0),
    sockets: options.sockets ?? process.env.TEST_SOCKETS ?? 'auto',
    ...(options.onAuthorityChange && { onAuthorityChange: options.onAuthorityChange }),
    ...(options.topology && { topology: options.topology }),
    ...(options.failover && { failover: options.failover }),
    ...(options.limits && { limits: options.limits }),
    admin: { listen: '127.0.0.1:0' },
    state: stateDir,
    ledger: { redact: false },
    ...options.plan,
  };
}

export const isSettled = ({ mirror, suspects, undecided }: ShardSnapshot): boolean =>
  mirror.connected && mirror.queuedEffects === 0 && undecided === 0 && suspects.total === 0;

/**
 * Waits until the condition holds.
 * @param ms as long as it may take on a quiet machine
 * @throws when it hangs, with what `left` says of how things stand
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  ms = 30_000,
  left: () => string = () => condition.toString(),
): Promise<void> {
  const since = performance.now();
  while (!(await condition())) {
    if (performance.now() - since > patienceMs(ms)) throw new Error(`not so within ${ms} ms: ${left()}`);
    await sleep(5);
  }
}

/** Changes a stage. On a busy machine a change may run out of time, which changes nothing: it is asked for again. */
export async function changeStage(shard: Shard, request: Parameters<Shard['changeStage']>[0]): Promise<void> {
  const isChanged = (): Promise<boolean> =>
    shard.changeStage(request).then(
      () => true,
      (error: StageError) => {
        if (error.code === 'deadline') return false;
        throw error;
      },
    );
  await until(isChanged);
}
