/** One shard with what it stands on: its durable state and its ledger, opened before it and closed after it. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Shard } from './control/status.js';
import { PlanError } from './plan/errors.js';
import type { Plan, ShardPlan } from './plan/plan.js';
import { checkReload, routingOf } from './plan/reload.js';
import { Ledger } from './record/ledger.js';
import { resolveStages, StateStore, type ShardState, type StatePatch } from './record/state.js';
import { startShard } from './shard.js';

export interface Launched {
  readonly shard: Shard;
  readonly ledger: Ledger;
  /** Why this shard cannot take over `next`; empty where it can. */
  checkReload(next: Plan): readonly string[];
  /** Takes over a plan that `checkReload` let pass. */
  reload(next: Plan): Promise<void>;
  /** Closes the shard at once, then the ledger and the state. */
  stop(): Promise<void>;
}

/** A shard does not start; the message names it, its servers, and what to check. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
  constructor(
    /** `listen`: its address cannot be opened; `servers`: a server that it needs cannot be reached, or refuses it. */
    readonly code: 'listen' | 'servers',
    message: string,
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

/**
 * Starts a shard in the stages that its state says, or the plan's where there is no state yet.
 * @throws {PlanError} where the plan moves keys between stages
 * @throws {StateError} where the state cannot be read
 * @throws {LaunchError}
 */
export async function launch(plan: Plan, shardPlan: ShardPlan, logger: Logger): Promise<Launched> {
  const state = await StateStore.open(plan.state, shardPlan.name);
  await takeOver(plan, state, logger.child({ shard: shardPlan.name }));
  const file = join(plan.state, shardPlan.name, 'ledger.jsonl');
  const ledger = new Ledger({
    ...plan.ledger,
    shard: shardPlan.name,
    file,
    onError: (error) => logger.error({ shard: shardPlan.name, file, err: error }, 'the ledger cannot be written: mismatches are counted only'),
  });
  let current = plan;
  let shard: Shard;
  try {
    shard = await startShard({ plan, shard: shardPlan, logger, ledger, state });
  } catch (error) {
    await ledger.close();
    throw explain(error as NodeJS.ErrnoException, shardPlan);
  }
  return {
    shard,
    ledger,
    checkReload: (next) => checkReload(current, next, state.current.workloads),
    async reload(next) {
      await shard.reload(next);
      await takeOver(next, state, logger.child({ shard: shardPlan.name }));
      current = next;
    },
    async stop() {
      await shard.stop();
      await Promise.all([ledger.close(), state.close()]);
    },
  };
}

function explain(error: NodeJS.ErrnoException, { name, listen, source, target }: ShardPlan): LaunchError {
  if (error.syscall === 'listen') {
    const why = error.code === 'EADDRINUSE' ? 'it is taken' : error.message;
    return new LaunchError('listen', `shard ${name} cannot listen at ${listen.label}: ${why}; choose another address`, error);
  }
  const servers = `source ${source.label}, target ${target.label}`;
  return new LaunchError('servers', `shard ${name} cannot start: ${error.message} (${servers}); check that they run, and their user, password and certificates`, error);
}

/** Writes down which stages and patterns hold from now on. */
async function takeOver(plan: Plan, state: StateStore, logger: Logger): Promise<void> {
  const { stages, notices, problems } = resolveStages(plan, state.current);
  if (problems.length > 0) throw new PlanError('the plan', problems.map((message) => ({ path: [], message })));
  for (const notice of notices) logger.warn(notice);
  const patch = (current: ShardState): StatePatch => ({ workloads: { ...resolveStages(plan, current).stages }, routing: routingOf(plan) });
  await state.update(patch, { event: 'plan', plan: plan.name, stages });
}
