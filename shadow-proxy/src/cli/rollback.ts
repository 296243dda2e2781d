/** `shadow-compare rollback`: back to where clients get the source's replies, in seconds. */
import { userInfo } from 'node:os';
import { Option, type Command } from 'commander';
import { STAGES, type Stage } from '../route/stage.js';
import { AdminClient, addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { CliError, exitCode } from './exit.js';
import { point } from './promote.js';

interface RollbackOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly all?: boolean;
  readonly to?: Stage;
  readonly drill?: boolean;
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
    .option('--force', 'go on where the mirror is not clean, and lose what the refusal lists')
    .option('--reason <text>', 'why, for the history')
    .option('--json', 'print JSON');
  addAdminOptions(command).action(async (workload: string | undefined, options: RollbackOptions) => {
    process.exitCode = await rollback(workload, options);
  });
}

async function rollback(workload: string | undefined, options: RollbackOptions): Promise<number> {
  const { shard, all, to, drill, force, reason, json } = options;
  if ((workload === undefined) === (all !== true)) throw new CliError('option', 'name a workload, or say --all', exitCode.usage);
  const done = await new AdminClient(options).rollback({ shard, workload, to, drill, force, reason, by: userInfo().username });
  const lines = done.flatMap(({ shard: name, workload: each, changes }) => changes.map(({ from, to: then, heldMs }) => `${name}: ${each} ${point(from)} → ${point(then)} (held its commands for ${heldMs.toFixed(1)} ms)`));
  process.stdout.write(`${json ? JSON.stringify(done, null, 2) : lines.length === 0 ? 'The target answers no workload: there is nothing to roll back.' : lines.join('\n')}\n`);
  return exitCode.holds;
}
