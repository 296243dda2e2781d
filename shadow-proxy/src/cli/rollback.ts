/** `shadow-compare rollback`: back to where clients get the source's replies, in seconds. */
import { userInfo } from 'node:os';
import { Option, type Command } from 'commander';
import { STAGES, type Stage } from '../route/stage.js';
import { formatPoint } from '../storage/state.js';
import { AdminClient, addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { rollBackOffline, type OfflineRollback } from '../stages/offline-rollback.js';
import { redactSecrets } from '../plan/endpoint.js';
import { loadPlan } from '../plan/load.js';
import { noReturn } from '../stages/promotion.js';
import { StageError } from '../stages/stage-change.js';
import { CliError, exitCode } from './exit.js';

interface RollbackOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly all?: boolean;
  readonly to?: Stage;
  readonly drill?: boolean;
  readonly offline?: boolean;
  readonly force?: boolean;
  readonly reason?: string;
  readonly json?: boolean;
}

export function addRollback(program: Command): void {
  const command = program
    .command('rollback')
    .description('Take a workload back: from live and rampdown to shadow, from the others to the stage before')
    .argument('[workload]', 'name of the workload, or default')
    .option('--all', 'every workload that the target answers: the red button')
    .option('--shard <name>', 'on this shard only (default: on all shards of the proxy)')
    .addOption(new Option('--to <stage>', 'back to this stage').choices(STAGES))
    .option('--drill', 'rehearse it from shadow: a share of the keys to the target and back, on record')
    .option(
      '--offline',
      'where the proxy does not answer: ends it, copies what it had on its way, and has the next one start in shadow; needs --plan',
    )
    .option('--force', 'go on where the mirror is not clean, and lose what the refusal lists')
    .option('--reason <text>', 'why, for the history')
    .option('--json', 'print JSON');
  addAdminOptions(command).action(async (workload: string | undefined, options: RollbackOptions) => {
    process.exitCode = await rollback(workload, options);
  });
}

async function rollback(workload: string | undefined, options: RollbackOptions): Promise<number> {
  const { shard, all, to, drill, force, reason, json } = options;
  if ((workload === undefined) === (all !== true))
    throw new CliError('option', 'name a workload, or say --all', exitCode.usage);
  if (options.offline) return rollBackWithoutProxy(workload ?? null, options);
  const done = await new AdminClient(options).rollback({
    shard,
    workload,
    to,
    drill,
    force,
    reason,
    by: userInfo().username,
  });
  const lines = done.flatMap(({ shard: name, workload: each, changes }) =>
    changes.map(
      ({ from, to: then, heldMs }) =>
        `${name}: ${each} ${formatPoint(from)} → ${formatPoint(then)} (held its commands for ${heldMs.toFixed(1)} ms)`,
    ),
  );
  process.stdout.write(
    `${json ? JSON.stringify(done, null, 2) : lines.length === 0 ? 'The target answers no workload: there is nothing to roll back.' : lines.join('\n')}\n`,
  );
  return exitCode.holds;
}

async function rollBackWithoutProxy(
  workload: string | null,
  { plan: file, shard: only, force = false, reason, json }: RollbackOptions,
): Promise<number> {
  if (file === undefined)
    throw new CliError(
      'option',
      '--offline needs --plan: the shards, their servers and the folder of their state',
      exitCode.usage,
    );
  const plan = loadPlan(file);
  const shards = plan.shards.filter(({ name }) => only === undefined || name === only);
  if (shards.length === 0)
    throw new CliError(
      'option',
      `there is no shard ${only} in the plan: ${plan.shards.map(({ name }) => name).join(', ')}`,
      exitCode.usage,
    );
  const done: OfflineRollback[] = [];
  for (const shard of shards) {
    done.push(
      await rollBackOffline(plan, shard, {
        workload,
        force,
        note: { by: userInfo().username, reason: reason && redactSecrets(reason) },
      }).catch((error: Error) => {
        throw new CliError(
          error instanceof StageError ? error.code : 'offline',
          `${shard.name}: ${error.message}`,
          error instanceof StageError ? exitCode.fails : exitCode.inconclusive,
        );
      }),
    );
  }
  process.stdout.write(`${json ? JSON.stringify(done, null, 2) : done.map(told).join('\n')}\n`);
  const stuck = done.flatMap((each) => each.stuck.map((name) => `${each.shard}: ${noReturn(name)}\n`));
  process.stderr.write(stuck.join(''));
  return stuck.length > 0 ? exitCode.fails : exitCode.holds;
}

function told({ shard, fenced, changes, healed, lost }: OfflineRollback): string {
  const lines = changes.map(
    ({ workload, from, to }) => `${shard}: ${workload} ${formatPoint(from)} → ${formatPoint(to)}`,
  );
  const ended = fenced === null ? 'no process had it' : `the process that had it was ended (${fenced})`;
  return [
    ...lines,
    `${shard}: ${ended}; ${healed} keys that were on their way were copied to the source${lost.length > 0 ? `; LOST: ${lost.join('; ')}` : ''}`,
    `${shard}: start the proxy again: clients get the source's replies`,
  ].join('\n');
}
