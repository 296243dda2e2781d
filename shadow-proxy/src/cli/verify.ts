/** `shadow-compare verify`: compares every key of both servers through a running proxy. */
import type { Command } from 'commander';
import { sum, type JobSnapshot } from '../telemetry/snapshot.js';
import { confirmKeys, keysConfirmed, YES } from './confirm.js';
import { CliError, exitCode, share } from './exit.js';
import { addJobOptions, evictionNotes, keptBy, printJobs, runJob, type JobOptions } from './job-options.js';
import type { EndedJob } from './job-progress.js';
import { NO_PROXY, withManual } from './manual.js';
import { stdout } from './output.js';

interface VerifyOptions extends JobOptions {
  readonly sample?: number;
  readonly repair?: boolean;
  readonly yes?: number;
}

export function addVerify(program: Command): void {
  const command = program
    .command('verify')
    .description('Compare every key on both servers (value, type, TTL, in both directions) while clients work')
    .option('--sample <percent>', 'only this share of the keys; each run chooses other keys', share)
    .option(
      '--repair',
      'repair the differences from the authority; asks before it deletes keys that only the mirror has',
    )
    .option(...YES, keysConfirmed);
  withManual(command, 'shadow-compare verify --workload sessions', {
    0: 'all keys are equal; with --repair: all differences are repaired',
    1: 'keys differ, or the job was refused',
    3: `not every key was compared, or the result is lost; ${NO_PROXY}`,
  });
  addJobOptions(command).action(async (options: VerifyOptions) => {
    const ended = await verify(options);
    printJobs(ended, options);
    if (options.json !== true) stdout.write(await evictionNotes(ended, options));
    process.exitCode = ended.reduce((worst, { job }) => Math.max(worst, exitOf(job)), exitCode.holds as number);
  });
}

async function verify(options: VerifyOptions): Promise<readonly EndedJob[]> {
  const { sample = 100, repair = false, yes, stop } = options;
  if (yes !== undefined && !repair)
    throw new CliError('option', '--yes confirms the deletions of --repair: add --repair', exitCode.usage);
  const request = { kind: 'verify', sample, repair } as const;
  const ended = await runJob(request, options);
  const kept = keptBy(ended);
  if (!repair || stop === true || kept.size === 0) return ended;
  if (options.json !== true) printJobs(ended, options);
  const keys = [...kept.values()].reduce((a, b) => a + b, 0);
  const question = { what: 'Keys that only the mirror has will be deleted', json: options.json };
  await confirmKeys(keys, question, yes).catch((refused: Error) => {
    if (options.json === true) printJobs(ended, options);
    throw refused;
  });
  const repaired = await runJob(request, options, kept);
  return [...ended.filter(({ shard }) => !kept.has(shard)), ...repaired];
}

/** Keys that were not compared do not count as equal: the result is inconclusive. */
function exitOf({ differences, repair, repaired, state, failed, unsure, verified }: JobSnapshot): number {
  if (sum(differences) > (repair ? repaired : 0)) return exitCode.fails;
  return state !== 'done' || failed > 0 || unsure > 0 || verified === 0 ? exitCode.inconclusive : exitCode.holds;
}
