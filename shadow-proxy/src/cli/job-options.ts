/** The common parts of `backfill` and `verify`. */
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import type { JobRequest } from '../storage/job-file.js';
import { sum, type JobLimits } from '../telemetry/snapshot.js';
import { SIDES } from '../route/stage.js';
import { evictionNote } from '../telemetry/server-notes.js';
import { addAdminOptions, type AdminClientOptions, type StartJobRequest } from './admin-client.js';
import { CliError, exitCode, positive } from './exit.js';
import { Fleet } from './fleet.js';
import { follow, renderJob, shardsOf, type EndedJob } from './job-progress.js';
import { stderr, stdout } from './output.js';

export interface LimitOptions {
  readonly keysPerSecond?: number | 'none';
  readonly bytesPerSecond?: number | 'none';
  readonly maxP99Ms?: number | 'none';
  readonly maxMirrorP99Ms?: number | 'none';
  readonly maxReplicaLagBytes?: number | 'none';
}

export interface JobOptions extends AdminClientOptions, LimitOptions {
  readonly workload?: readonly string[];
  readonly shard?: string;
  readonly stop?: boolean;
  readonly json?: boolean;
}

export const addJobOptions = (command: Command): Command =>
  addAdminOptions(command)
    .option('--workload <names...>', 'only these workloads (default: all workloads written to both servers)')
    .option('--shard <name>', 'only this shard (default: all shards of the proxy)')
    .option('--keys-per-second <n>', 'at most this many keys per second', positive)
    .option('--bytes-per-second <n>', 'at most this many bytes per second', positive)
    .option('--max-p99-ms <n>', "slow down while the authority's p99 is above this, in ms", positive)
    .option('--max-mirror-p99-ms <n>', "slow down while the mirror's p99 is above this, in ms", positive)
    .option('--max-replica-lag-bytes <n>', 'wait while a replica of the mirror is behind by more than this', positive)
    .option('--stop', 'stop the running job; the same command without --stop continues it')
    .option('--json', 'print JSON; progress as JSON lines on standard error');

export type WantedJob = Pick<JobRequest, 'kind'> & Partial<Omit<JobRequest, 'deletes'>>;

/**
 * Starts the job at the proxy, and waits for its end. A job that is already running is followed to its end.
 * @param deletes how many keys that only the mirror has may be deleted, by shard; only these shards run the job. Null:
 * no deletions, and all shards
 */
export async function runJob(
  request: WantedJob,
  options: JobOptions,
  deletes: ReadonlyMap<string, number> | null = null,
): Promise<readonly EndedJob[]> {
  const client = await Fleet.open(options);
  const { workload: workloads, shard } = options;
  let shards: readonly string[] = [];
  if (options.stop === true) {
    shards = shardsOf(await client.stopJobs());
    if (shards.length === 0)
      throw new CliError('none', 'no backfill or verify job is running: nothing was stopped', exitCode.fails);
  } else {
    const wanted: StartJobRequest = {
      ...request,
      shard,
      by: userInfo().username,
      workloads: workloads === undefined ? undefined : [...workloads],
      limits: limitsOf(options),
    };
    if (deletes === null) shards = await begin(client, wanted);
    else
      for (const [name, keys] of deletes)
        shards = [...shards, ...(await begin(client, { ...wanted, shard: name, deletes: keys }))];
  }
  const ended = await follow(client, shards, request.kind, options);
  const lost = shards.filter((name) => !ended.some(({ shard }) => shard === name));
  if (lost.length === 0 && shards.length > 0) return ended;
  throw new CliError(
    'no-result',
    `the result of the ${request.kind} of ${lost.join(', ') || 'any shard'} is lost: the proxy restarted, or its state is new. Run ${request.kind} again`,
    exitCode.inconclusive,
  );
}

export const printJobs = (ended: readonly EndedJob[], { json = false }: JobOptions): void =>
  void stdout.write(json ? `${JSON.stringify(ended, null, 2)}\n` : ended.map((job) => `${renderJob(job)}\n`).join(''));

/** The number of keys that only the mirror has, for each shard that kept such keys. */
export const keptBy = (ended: readonly EndedJob[]): ReadonlyMap<string, number> =>
  new Map(ended.flatMap(({ shard, job }) => (job.keptForeign > 0 ? [[shard, job.keptForeign]] : [])));

/** If keys differ, and a server has evicted some: a line that explains the consequence. */
export async function evictionNotes(ended: readonly EndedJob[], options: JobOptions): Promise<string> {
  const differing = ended.filter(({ job }) => sum(job.differences) > 0).map(({ shard }) => shard);
  if (differing.length === 0) return '';
  const { shards: status } = await (await Fleet.open(options)).status();
  const notes = status
    .filter(({ name }) => differing.includes(name))
    .flatMap((shard) => SIDES.map((side) => ({ name: shard.name, note: evictionNote(side, shard[side], Date.now()) })));
  return notes
    .filter(({ note }) => note !== '')
    .map(({ name, note }) => `${name}: ${note}\n`)
    .join('');
}

/** The limits that options name; null ends one. */
export const limitsOf = ({
  keysPerSecond,
  bytesPerSecond,
  maxP99Ms,
  maxMirrorP99Ms,
  maxReplicaLagBytes,
}: LimitOptions): JobLimits =>
  Object.fromEntries(
    Object.entries({ keysPerSecond, bytesPerSecond, maxP99Ms, maxMirrorP99Ms, maxReplicaLagBytes })
      .filter(([, limit]) => limit !== undefined)
      .map(([name, limit]) => [name, limit === 'none' ? null : limit]),
  );

async function begin(client: Fleet, request: StartJobRequest): Promise<readonly string[]> {
  try {
    return shardsOf(await client.startJob(request));
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'busy') throw error;
    const running = (await client.jobs()).filter(({ job }) => job?.state === 'running' && job.kind === request.kind);
    // The running job has ended meanwhile.
    if (running.length === 0) return shardsOf(await client.startJob(request));
    const kept = Object.keys(request.limits ?? {}).length > 0 ? ' Its limits stay; change them with job' : '';
    stderr.write(`A ${request.kind} job is running already: following it.${kept}\n`);
    return shardsOf(running);
  }
}
