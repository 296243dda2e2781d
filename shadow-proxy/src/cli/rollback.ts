/** `shadow-compare rollback`: moves workloads back to a stage in which clients get the source's replies. */
import { userInfo } from 'node:os';
import { Option, type Command } from 'commander';
import { STAGES, type Stage } from '../route/stage.js';
import { noReturn } from '../route/transitions.js';
import { formatPoint } from '../storage/state.js';
import { addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { rollBackOffline, type OfflineRollback } from '../stages/offline-rollback.js';
import { redactSecrets } from '../plan/endpoint.js';
import { openPlan } from '../upstream/open-plan.js';
import { count } from '../text/figures.js';
import type { Gate } from '../stages/gates.js';
import type { RollbackRequest } from '../stages/promotion.js';
import { StageError } from '../stages/stage-change.js';
import { CliError, exitCode } from './exit.js';
import { Fleet } from './fleet.js';
import { hooksRun, hooksToRun } from './hooks.js';
import { withManual } from './manual.js';
import { withStages } from './stages-help.js';
import { addWaitOptions, awaitGates, type WaitOptions } from './wait.js';
import { stderr, stdout } from './output.js';

interface RollbackOptions extends AdminClientOptions, WaitOptions {
  readonly shard?: string;
  readonly all?: boolean;
  readonly to?: Stage;
  readonly drill?: boolean;
  readonly offline?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly reason?: string;
}

export function addRollback(program: Command): void {
  const command = program
    .command('rollback')
    .description('Roll a workload back: from live and rampdown to shadow, from other stages to the stage before')
    .argument('[workload]', 'name of the workload, or default')
    .option('--all', 'emergency rollback: every workload that the target answers')
    .option('--shard <name>', 'only on this shard (default: all shards of the plan)')
    .addOption(new Option('--to <stage>', 'roll back to this stage').choices(STAGES))
    .option('--drill', 'rehearse a rollback from shadow: move 1 % of the keys to the target and back, and record it')
    .option(
      '--offline',
      'if the proxy does not answer: stop it, copy its unconfirmed writes to the source, start the next one in shadow; needs --plan',
    )
    .option('--dry-run', 'only check that nothing refuses it')
    .option('--force', 'continue although the mirror has suspects, and lose the writes that the refusal lists')
    .option('--reason <text>', 'reason, kept in the history')
    .option('--json', 'print JSON');
  withStages(command, false);
  withManual(command, 'shadow-compare rollback sessions --reason "slow replies"', {
    0: 'rolled back, or nothing to roll back; with --dry-run: it would be',
    1: 'refused, or not every workload could be rolled back',
    3: 'no proxy answers; with --offline: a server does not answer',
  });
  addAdminOptions(addWaitOptions(command)).action(async (workload: string | undefined, options: RollbackOptions) => {
    process.exitCode = await rollback(workload, options);
  });
}

async function rollback(workload: string | undefined, options: RollbackOptions): Promise<number> {
  const { shard, all, to, drill, dryRun, force, reason, json } = options;
  if ((workload === undefined) === (all !== true))
    throw new CliError('option', 'name a workload, or give --all', exitCode.usage);
  if (options.offline && dryRun)
    throw new CliError('option', '--dry-run asks the proxy, and --offline does without it: give one', exitCode.usage);
  if (options.offline) return rollBackWithoutProxy(workload ?? null, options);
  const client = await Fleet.open(options);
  const asked = { shard, workload, to, drill, force, reason, by: userInfo().username };
  // A drill has gates, and some open by waiting. A rollback has none.
  if (drill && !dryRun)
    await awaitGates(
      () => drillGates(client, asked),
      (closed) => closed,
      options,
    );
  const done = await client.rollback({ ...asked, dryRun });
  const lines = done.flatMap(({ shard: name, workload: each, changes, hooks }) => [
    ...changes.flatMap(({ from, to: then, heldMs, hooks: runs }) => [
      `${name}: ${each} ${formatPoint(from)} → ${formatPoint(then)} (${dryRun ? 'dry run: nothing was changed' : `commands held for ${heldMs.toFixed(1)} ms`})`,
      ...hooksRun(runs),
    ]),
    ...hooksToRun(hooks),
  ]);
  stdout.write(
    `${json ? JSON.stringify(done, null, 2) : lines.length === 0 ? 'The target answers no workload: there is nothing to roll back.' : lines.join('\n')}\n`,
  );
  return exitCode.holds;
}

/** The gates that refuse a drill now. @throws {CliError} if something else refuses it */
async function drillGates(client: Fleet, asked: Partial<RollbackRequest>): Promise<readonly Gate[]> {
  try {
    await client.rollback({ ...asked, dryRun: true });
    return [];
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'gates-closed') throw error;
    return (error.details as { readonly gates: readonly Gate[] }).gates;
  }
}

async function rollBackWithoutProxy(
  workload: string | null,
  { plan: file, shard: only, force = false, reason, json }: RollbackOptions,
): Promise<number> {
  if (file === undefined)
    throw new CliError(
      'option',
      '--offline needs --plan: it names the shards, their servers and the state directory',
      exitCode.usage,
    );
  const plan = await openPlan(file);
  const shards = plan.shards.filter(({ name }) => only === undefined || name === only);
  if (shards.length === 0)
    throw new CliError(
      'option',
      `--shard ${only}: the plan has no such shard. Its shards: ${plan.shards.map(({ name }) => name).join(', ')}`,
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
  stdout.write(`${json ? JSON.stringify(done, null, 2) : done.map(render).join('\n')}\n`);
  const stuck = done.flatMap((each) => each.stuck.map((name) => `${each.shard}: ${noReturn(name)}\n`));
  stderr.write(stuck.join(''));
  return stuck.length > 0 ? exitCode.fails : exitCode.holds;
}

function render({ shard, fenced, changes, repaired, lost }: OfflineRollback): string {
  const lines = changes.map(
    ({ workload, from, to }) => `${shard}: ${workload} ${formatPoint(from)} → ${formatPoint(to)}`,
  );
  const ended = fenced === null ? 'no proxy served it' : `stopped the proxy that served it (${fenced})`;
  return [
    ...lines,
    `${shard}: ${ended}; ${count(repaired, 'key')} with unconfirmed writes copied to the source${lost.length > 0 ? `; LOST: ${lost.join('; ')}` : ''}`,
    `${shard}: now start the proxy again: clients get the source's replies`,
  ].join('\n');
}
