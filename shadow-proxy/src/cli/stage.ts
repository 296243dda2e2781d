/** `shadow-compare stage`: moves a workload one stage on or back, on a running proxy. */
import { Argument, type Command } from 'commander';
import { STAGES, type Stage } from '../route/stage.js';
import { formatPoint } from '../storage/state.js';
import { AdminClient, addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { confirmEnd, endOf, POINT_OF_NO_RETURN } from './confirm.js';
import { CliError, exitCode, percentage } from './exit.js';
import { NO_PROXY, withManual } from './manual.js';

interface StageOptions extends AdminClientOptions {
  readonly shard?: string;
  readonly percent?: number;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly pointOfNoReturn?: string;
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
    .option('--dry-run', 'only check that nothing refuses the change')
    .option(...POINT_OF_NO_RETURN)
    .option('--json', 'print JSON');
  withManual(command, 'shadow-compare stage sessions shadow', {
    0: 'the workload was moved; with --dry-run: it would be',
    1: 'refused; shards that were moved before stay moved',
    3: NO_PROXY,
  });
  addAdminOptions(command).action(async (workload: string, stage: Stage, options: StageOptions) => {
    const { shard, percent, force, dryRun, json } = options;
    if (percent !== undefined && stage !== 'live') {
      throw new CliError(
        'option',
        `--percent is allowed with stage live only, not with ${stage}: leave it out`,
        exitCode.usage,
      );
    }
    const client = new AdminClient(options);
    const asked = { shard, workload, stage, percent, force };
    let pointOfNoReturn: string | undefined;
    if (stage === 'complete' && !dryRun) {
      await client.changeStage({ ...asked, dryRun: true });
      pointOfNoReturn = await client.migration();
      await confirmEnd(pointOfNoReturn, { what: endOf([workload]), json }, options.pointOfNoReturn);
    }
    const changes = await client.changeStage({ ...asked, dryRun, pointOfNoReturn });
    const lines = changes.map(
      (c) =>
        `${c.shard}: ${c.workload} ${formatPoint(c.from)} → ${formatPoint(c.to)} (${dryRun ? 'dry run: nothing was changed' : `commands held for ${c.heldMs.toFixed(1)} ms`})`,
    );
    process.stdout.write(`${json ? JSON.stringify(changes, null, 2) : lines.join('\n')}\n`);
  });
}
