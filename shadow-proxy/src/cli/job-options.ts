/** What `backfill` and `verify` have in common. */
import type { Command } from 'commander';
import type { JobRequest } from '../record/job-file.js';
import { sum } from '../record/snapshot.js';
import { SIDES } from '../route/stage.js';
import { evictionNote } from '../record/evictions.js';
import { AdminClient, addAdminOptions, type AdminClientOptions, type JobOrder } from './admin-client.js';
import { CliError, positive } from './exit.js';
import { follow, renderJob, shardsOf, type EndedJob } from './job-progress.js';

export interface JobOptions extends AdminClientOptions {
  readonly workload?: readonly string[];
  readonly shard?: string;
  readonly keysPerSecond?: number;
  readonly bytesPerSecond?: number;
  readonly maxP99Ms?: number;
  readonly stop?: boolean;
  readonly json?: boolean;
}

export const addJobOptions = (command: Command): Command =>
  addAdminOptions(command)
    .option('--workload <names...>', 'only these workloads (default: all that are written to both servers)')
    .option('--shard <name>', 'this shard only (default: all shards of the proxy)')
    .option('--keys-per-second <n>', 'no more keys than this', positive)
    .option('--bytes-per-second <n>', 'no more bytes than this', positive)
    .option('--max-p99-ms <n>', "slow down where the authority's p99 is above this", positive)
    .option('--stop', 'stop the one that is under way; the same command goes on from there')
    .option('--json', 'print JSON; progress as JSON lines on standard error');

/** Has the proxy do it, and waits for the end. One that is under way already is followed to its end. */
export async function runJob(order: Pick<JobRequest, 'kind'> & Partial<JobRequest>, options: JobOptions): Promise<readonly EndedJob[]> {
  const client = new AdminClient(options);
  const { workload: workloads, shard, keysPerSecond, bytesPerSecond, maxP99Ms, json = false } = options;
  let shards: readonly string[];
  if (options.stop === true) {
    shards = shardsOf(await client.stopJobs());
  } else {
    const wanted: JobOrder = { ...order, shard, workloads: workloads === undefined ? undefined : [...workloads], limits: { keysPerSecond, bytesPerSecond, maxP99Ms } };
    shards = await begin(client, wanted);
  }
  const ended = await follow(client, shards, json);
  process.stdout.write(json ? `${JSON.stringify(ended, null, 2)}\n` : ended.map((job) => `${renderJob(job)}\n`).join(''));
  if (!json && order.kind === 'verify') process.stdout.write(await evictionNotes(client, ended));
  return ended;
}

/** Where keys differ, and a server has evicted some: a line that says what that means. */
async function evictionNotes(client: AdminClient, ended: readonly EndedJob[]): Promise<string> {
  const differing = ended.filter(({ job }) => sum(job.differences) > 0).map(({ shard }) => shard);
  if (differing.length === 0) return '';
  const status = await client.status();
  const notes = status.filter(({ name }) => differing.includes(name)).flatMap((shard) => SIDES.map((side) => ({ name: shard.name, note: evictionNote(side, shard[side], Date.now()) })));
  return notes.filter(({ note }) => note !== '').map(({ name, note }) => `${name}: ${note}\n`).join('');
}

async function begin(client: AdminClient, order: JobOrder): Promise<readonly string[]> {
  try {
    return shardsOf(await client.startJob(order));
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'busy') throw error;
    const running = (await client.jobs()).filter(({ job }) => job?.state === 'running' && job.kind === order.kind);
    if (running.length === 0) throw error;
    process.stderr.write(`A ${order.kind} is under way already: following that one.\n`);
    return shardsOf(running);
  }
}
