/** `shadow-compare job`: shows the backfill or verify that runs, changes its limits, pauses it, and lets it go on. */
import { userInfo } from 'node:os';
import { Option, type Command } from 'commander';
import { describeLimits } from '../storage/history.js';
import type { JobSnapshot } from '../telemetry/snapshot.js';
import { addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { CliError, exitCode, positiveOrNone } from './exit.js';
import { Fleet, reportSilent } from './fleet.js';
import { limitsOf, type LimitOptions } from './job-options.js';
import { renderProgress } from './job-progress.js';
import { NO_PROXY, withManual } from './manual.js';
import { print, stdout } from './output.js';

interface ChangeOptions extends AdminClientOptions, LimitOptions {
  readonly shard?: string;
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly reason?: string;
  readonly json?: boolean;
}

export function addJob(program: Command): void {
  const command = program
    .command('job')
    .description('Show the backfill or verify that runs, change its limits, pause it, or let it go on')
    .option('--shard <name>', 'only this shard (default: every shard that has one)')
    .option('--keys-per-second <n>', 'at most this many keys per second; none: no limit', positiveOrNone)
    .option('--bytes-per-second <n>', 'at most this many bytes per second; none: no limit', positiveOrNone)
    .option('--max-p99-ms <n>', "slow down while the authority's p99 is above this, in ms; none: never", positiveOrNone)
    .option(
      '--max-mirror-p99-ms <n>',
      "slow down while the mirror's p99 is above this, in ms; none: never",
      positiveOrNone,
    )
    .option(
      '--max-replica-lag-bytes <n>',
      'wait while a replica of the mirror is behind by more than this; none: never',
      positiveOrNone,
    )
    .addOption(
      new Option('--pause', 'let it wait where it is; a restart of the proxy does not end that').conflicts('resume'),
    )
    .option('--resume', 'let it go on')
    .option('--reason <text>', 'reason, kept in the history')
    .option('--json', 'print JSON');
  withManual(command, 'shadow-compare job --keys-per-second 500 --plan migration.yaml', {
    0: 'shown, or changed; without a change to make: no job runs, or all are shown',
    1: 'no backfill and no verify runs: nothing was changed',
    3: `${NO_PROXY}, or not each: done on the others`,
  });
  addAdminOptions(command).action(async (options: ChangeOptions) => {
    const fleet = await Fleet.open(options);
    const limits = limitsOf(options);
    const state = options.pause ? 'pause' : options.resume ? 'resume' : undefined;
    const changes = state !== undefined || Object.keys(limits).length > 0;
    if (!changes && options.reason !== undefined)
      throw new CliError('option', '--reason goes with a change: add --pause, --resume, or a limit', exitCode.usage);
    const { shard, reason } = options;
    const jobs = changes
      ? await fleet.changeJobs({ shard, limits, state, reason, by: userInfo().username })
      : (await fleet.jobs()).filter((each) => shard === undefined || each.shard === shard);
    const running = jobs.flatMap((each) =>
      each.job?.state === 'running' ? [{ shard: each.shard, job: each.job }] : [],
    );
    if (options.json) stdout.write(`${JSON.stringify(running, null, 2)}\n`);
    else print(running.length === 0 ? 'No backfill and no verify runs' : running.map(render).join('\n'));
    process.exitCode = reportSilent(fleet);
  });
}

function render({ shard, job }: { readonly shard: string; readonly job: JobSnapshot }): string {
  return `${renderProgress({ shard, job })}\n  limits: ${describeLimits({ ...job.limits }) || 'none'}`;
}
