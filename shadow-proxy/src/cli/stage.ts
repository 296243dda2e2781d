/** `shadow-compare stage`: moves a workload one stage on or back, on a running proxy. */
import { Argument, type Command } from 'commander';
import { STAGES, type Stage } from '../route/stage.js';
import { formatPoint } from '../storage/state.js';
import { AdminClient, addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { CliError, exitCode, percentage } from './exit.js';

interface StageOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly percent?: number;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function addStage(program: Command): void {
  const command = program
    .command('stage')
    .description('Move a workload to its next or previous stage')
    .argument('<workload>', 'name of the workload, or default')
    .addArgument(new Argument('<stage>').choices(STAGES))
    .option('--shard <name>', 'on this shard only (default: on all shards of the proxy, one after the other)')
    .option('--percent <number>', 'share of the hash slots, with stage live', percentage)
    .option('--force', 'go on where the mirror is not clean, and lose what the refusal lists')
    .option('--json', 'print JSON');
  addAdminOptions(command).action(async (workload: string, stage: Stage, options: StageOptions) => {
    const { shard, percent, force, json } = options;
    if (percent !== undefined && stage !== 'live') {
      throw new CliError(
        'option',
        `--percent goes with stage live only, not with ${stage}: leave it out`,
        exitCode.usage,
      );
    }
    const changes = await new AdminClient(options).changeStage({ shard, workload, stage, percent, force });
    const lines = changes.map(
      (c) =>
        `${c.shard}: ${c.workload} ${formatPoint(c.from)} → ${formatPoint(c.to)} (held its commands for ${c.heldMs.toFixed(1)} ms)`,
    );
    process.stdout.write(`${json ? JSON.stringify(changes, null, 2) : lines.join('\n')}\n`);
  });
}
