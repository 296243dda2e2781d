/** `shadow-compare stage`: moves a workload one stage on or back, on a running proxy. */
import { Argument, type Command } from 'commander';
import { STAGES, type Stage } from '../route/stage.js';
import { formatPoint } from '../storage/state.js';
import { AdminClient, addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { CliError, exitCode, percentage } from './exit.js';
import { NO_PROXY, withManual } from './manual.js';

interface StageOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly percent?: number;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function addStage(program: Command): void {
  const command = program
    .command('stage')
    .description('Move a workload to its next or previous stage, without gates')
    .argument('<workload>', 'name of the workload, or default')
    .addArgument(new Argument('<stage>', 'the next or the previous stage').choices(STAGES))
    .option('--shard <name>', 'only on this shard (default: all shards of the proxy, one after the other)')
    .option('--percent <number>', 'share of the hash slots, with stage live', percentage)
    .option('--force', 'continue although the mirror has suspects, and lose the writes that the refusal lists')
    .option('--json', 'print JSON');
  withManual(command, 'shadow-compare stage sessions shadow', {
    0: 'the workload was moved',
    1: 'refused; shards that were moved before stay moved',
    3: NO_PROXY,
  });
  addAdminOptions(command).action(async (workload: string, stage: Stage, options: StageOptions) => {
    const { shard, percent, force, json } = options;
    if (percent !== undefined && stage !== 'live') {
      throw new CliError(
        'option',
        `--percent is allowed with stage live only, not with ${stage}: leave it out`,
        exitCode.usage,
      );
    }
    const changes = await new AdminClient(options).changeStage({ shard, workload, stage, percent, force });
    const lines = changes.map(
      (c) =>
        `${c.shard}: ${c.workload} ${formatPoint(c.from)} → ${formatPoint(c.to)} (commands held for ${c.heldMs.toFixed(1)} ms)`,
    );
    process.stdout.write(`${json ? JSON.stringify(changes, null, 2) : lines.join('\n')}\n`);
  });
}
