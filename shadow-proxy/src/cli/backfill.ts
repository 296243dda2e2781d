/** `shadow-compare backfill`: copies the existing keys to the mirror, through a running proxy. */
import type { Command } from 'commander';
import { sum, type JobSnapshot } from '../telemetry/snapshot.js';
import { confirmKeys, keysConfirmed, YES } from './confirm.js';
import { exitCode } from './exit.js';
import { addJobOptions, printJobs, runJob, type JobOptions } from './job-options.js';
import type { EndedJob } from './job-progress.js';
import { NO_PROXY, withManual } from './manual.js';

interface BackfillOptions extends JobOptions {
  readonly dryRun?: boolean;
  readonly again?: boolean;
  readonly deleteForeign?: boolean;
  readonly yes?: number;
}

export function addBackfill(program: Command): void {
  const command = program
    .command('backfill')
    .description('Copy the existing keys while clients work; after an interruption, the same command continues')
    .option('--again', 'copy every key again, even where the last copy is complete and no key is suspect')
    .option(
      '--dry-run',
      'only count the keys that would be copied, overwritten, deleted or kept, and check the memory of the target',
    )
    .option(
      '--delete-foreign',
      'delete foreign keys: keys on the target that the source does not have and the kit did not write; asks for their number',
    )
    .option(...YES, keysConfirmed);
  withManual(command, 'shadow-compare backfill --workload sessions --max-p99-ms 2', {
    0: 'all keys are copied; with --dry-run: counted',
    1: 'keys were not copied, the job was stopped, or it was refused',
    3: `no key was found, or the result is lost; ${NO_PROXY}`,
  });
  addJobOptions(command).action(async (options: BackfillOptions) => {
    const ended = await backfill(options);
    printJobs(ended, options);
    process.exitCode = ended.reduce((worst, { job }) => Math.max(worst, exitOf(job)), exitCode.holds as number);
  });
}

async function backfill(options: BackfillOptions): Promise<readonly EndedJob[]> {
  const { dryRun = false, again = false, deleteForeign, stop } = options;
  const request = { kind: 'backfill', dryRun, again } as const;
  if (deleteForeign !== true || stop === true) return runJob(request, options);
  const counted = await runJob({ ...request, dryRun: true }, options);
  if (dryRun) return counted.map(confirmed);
  const foreign = new Map(counted.map(({ shard, job }) => [shard, job.keptForeign]));
  const keys = [...foreign.values()].reduce((a, b) => a + b, 0);
  const what = 'Foreign keys (on the target, not on the source) will be deleted';
  if (keys > 0) await confirmKeys(keys, { what, json: options.json }, options.yes);
  return runJob(request, options, foreign);
}

/** The counts of a dry run, if the deletions were confirmed. */
const confirmed = ({ shard, job }: EndedJob): EndedJob => ({
  shard,
  job: { ...job, deleted: job.deleted + job.keptForeign, keptForeign: 0 },
});

/**
 * Keys that were not copied count; keys that only the target has do not. Without any key, the result is inconclusive.
 */
function exitOf({ state, failed, differences, seen }: JobSnapshot): number {
  if (state !== 'done' || failed > 0 || sum(differences) > (differences.unowned ?? 0)) return exitCode.fails;
  return seen === 0 ? exitCode.inconclusive : exitCode.holds;
}
