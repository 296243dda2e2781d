/** Backfills and verifications of a test's shard. */
import type { JobSnapshot } from '../../src/telemetry/snapshot.js';
import type { JobRequest } from '../../src/storage/job-file.js';
import { until, type TestShard } from './shard.js';

interface Rig {
  readonly shard: TestShard;
}

/** A job of every key, that changes nothing. */
export const WHOLE = {
  workloads: null,
  repair: false,
  dryRun: false,
  again: false,
  deletes: 0,
  sample: 100,
  limits: {},
  automatic: false,
};

/** Begins one. @throws {JobError} */
export const ask = ({ shard }: Rig, request: Pick<JobRequest, 'kind'> & Partial<JobRequest>): JobSnapshot =>
  shard.shard.startJob({ ...WHOLE, ...request });

/** The one that runs, or the last. */
export const job = ({ shard }: Rig): JobSnapshot => shard.snapshot().job!;

/** Waits for its end. @throws after `ms` with how it stands */
export const ended = (rig: Rig, ms = 30_000): Promise<void> =>
  until(
    () => job(rig).state !== 'running',
    ms,
    () => JSON.stringify(job(rig)),
  );
