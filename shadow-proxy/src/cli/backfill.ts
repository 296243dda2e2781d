/** `shadow-compare backfill`: copies what was there before the dual write, through a running proxy. */
import type { Command } from 'commander';
import { sum, type JobSnapshot } from '../record/snapshot.js';
import { exitCode } from './exit.js';
import { addJobOptions, runJob, type JobOptions } from './job-options.js';

export function addBackfill(program: Command): void {
  const command = program
    .command('backfill')
    .description('Copy the keys that were there before the dual write, while clients go on; again after an interruption, it goes on')
    .option('--again', 'copy everything once more, though it was copied and nothing came in doubt since')
    .option('--dry-run', 'only count the keys, and check the memory of the target');
  addJobOptions(command).action(async (options: JobOptions & { readonly dryRun?: boolean; readonly again?: boolean }) => {
    const ended = await runJob({ kind: 'backfill', dryRun: options.dryRun ?? false, again: options.again ?? false }, options);
    if (ended.some(({ job }) => job.state !== 'done' || job.failed > 0 || leftOut(job) > 0)) process.exitCode = exitCode.fails;
  });
}

/** Keys that it did not copy; what only the target has was not its to copy. */
const leftOut = ({ differences }: JobSnapshot): number => sum(differences) - (differences.unowned ?? 0);
