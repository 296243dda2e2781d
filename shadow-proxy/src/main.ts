/**
 * The daemon's program: plan → servers → listen → drain.
 *
 *   SIGTERM, SIGINT drain and exit: exit code 0, or 1 if not everything was confirmed in time; a second signal: exit at
 * once
 *   SIGHUP            read the plan again
 *
 * It exits with code 1 if another process has, or takes over, one of its shards.
 */
import { Daemon } from './shard/daemon.js';
import { createLogger } from './telemetry/log.js';
import { exitCode, parseArguments, usage, watchOutput } from './cli/exit.js';
import { proxyProgram, type ProxyOptions } from './cli/proxy-program.js';
import { describeShards } from './plan/cluster-shards.js';
import { descriptorLimit, descriptorProblem } from './plan/descriptors.js';
import { PlanError } from './plan/errors.js';
import { memoryLimit, memoryProblem } from './plan/memory.js';
import type { Plan, ShardPlan } from './plan/plan.js';
import { openPlan } from './upstream/open-plan.js';
import { onStop } from './io/signals.js';
import { stderr, stdout } from './cli/output.js';

const program = proxyProgram().action(async (options: ProxyOptions) => {
  const plan = await openPlan(options.plan, !options.check);
  const shards = options.shard === undefined ? plan.shards.length : 1;
  const problem = memoryProblem(plan, shards, memoryLimit());
  const few = descriptorProblem(plan, shards, descriptorLimit());
  if (!options.check) return serve(plan, options, [problem, few]);
  if (problem !== null) throw new PlanError(options.plan, [{ path: ['limits'], message: problem }]);
  console(describe(plan));
  if (few !== null) console(`On this machine the limits of the plan ${few}.\n`);
});

/** @param problems problems of the plan's limits on this machine; null for each limit without one */
async function serve(plan: Plan, options: ProxyOptions, problems: readonly (string | null)[]): Promise<void> {
  if (options.peer !== undefined && !options.standby)
    throw new PlanError('--peer', [{ path: [], message: 'needs --standby: stages are copied while the proxy waits' }]);
  const logger = createLogger(options.logLevel);
  for (const problem of problems) if (problem !== null) logger.warn(`limits of the plan ${problem}`);
  let daemon: Daemon | undefined;
  process.on('SIGHUP', () => {
    if (daemon === undefined) return logger.warn('not serving yet: the plan is not reloaded');
    // This blocks the event loop only for reading a file of a few kilobytes.
    void (async () => daemon.reload(await openPlan(options.plan)))().catch((error: Error) =>
      logger.error({ problem: error.message }, 'the plan is not reloaded: the old plan stays in use'),
    );
  });
  // Only servers and passwords may change: the shards and their addresses were fixed at the start.
  const reread = async (current: Plan): Promise<Plan> => {
    try {
      const now = await openPlan(options.plan);
      const shards = current.shards.map((shard) => ({
        ...shard,
        ...pick(now.shards.find(({ name }) => name === shard.name)),
      }));
      return { ...current, shards };
    } catch (error) {
      logger.error({ problem: (error as Error).message }, 'the plan file cannot be read: the old plan stays in use');
      return current;
    }
  };
  const serving = (daemon = await Daemon.start(plan, options.shard ?? null, logger, {
    ...options,
    peers: options.peer,
    reread,
  }));
  void serving.lost.then((reason) => {
    logger.fatal({ problem: reason.message }, 'exiting: the lease is lost');
    stderr.write(`${reason.message}\n`);
    process.exit(exitCode.fails);
  });
  onStop(
    (signal) => {
      logger.info({ signal }, 'draining');
      void serving.stop().then((drained) => process.exit(drained ? exitCode.holds : exitCode.fails));
    },
    (signal) => {
      logger.warn({ signal }, 'exiting at once, without waiting');
      process.exit(exitCode.fails);
    },
  );
}

const pick = (shard: ShardPlan | undefined): Partial<ShardPlan> =>
  shard === undefined ? {} : { source: shard.source, target: shard.target };

const console = (text: string): void => void stdout.write(`${text}\n`);

const describe = ({ name, cluster, shards, workloads }: Plan): string =>
  [
    `${name}: the plan is valid (${shards.length} ${shards.length === 1 ? 'shard' : 'shards'}, ${workloads.length} ${workloads.length === 1 ? 'workload' : 'workloads'})`,
    ...(cluster === null ? [] : describeShards(shards)),
  ].join('\n');

watchOutput();
await parseArguments(usage(program));
