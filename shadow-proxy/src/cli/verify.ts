/** `shadow-compare verify`: compares both servers key by key at one place in the order, through a running proxy. */
import type { Command } from 'commander';
import { sum, type JobSnapshot } from '../record/snapshot.js';
import { exitCode, percentage } from './exit.js';
import { addJobOptions, runJob, type JobOptions } from './job-options.js';

interface VerifyOptions extends JobOptions {
  readonly sample?: number;
  readonly repair?: boolean;
}

export function addVerify(program: Command): void {
  const command = program
    .command('verify')
    .description('Compare every key on both servers: value, type, time to live, in both directions; no false alarm under load')
    .option('--sample <percent>', 'only this share of the keys, other ones each time', percentage)
    .option('--repair', 'copy what differs from the authority, and delete what it does not have');
  addJobOptions(command).action(async (options: VerifyOptions) => {
    const ended = await runJob({ kind: 'verify', sample: options.sample ?? 100, repair: options.repair ?? false }, options);
    process.exitCode = ended.reduce((worst, { job }) => Math.max(worst, exitOf(job, options.repair === true)), exitCode.holds as number);
  });
}

function exitOf(job: JobSnapshot, repair: boolean): number {
  if (sum(job.differences) > (repair ? job.repaired : 0)) return exitCode.fails;
  return job.state !== 'done' || job.failed > 0 || job.unsure > 0 ? exitCode.inconclusive : exitCode.holds;
}
