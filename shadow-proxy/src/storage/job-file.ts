/** The progress of a shard's job on the disk: a restarted process continues from there. */
import { join } from 'node:path';
import * as z from 'zod';
import { SIDES } from '../route/stage.js';
import { readSealed, writeSealed, type Author, type ReadResult } from './sealed.js';

/** Null: not limited, whatever the plan says; absent: as the plan says. */
const limit = z.number().positive().nullable().optional();

/** The `JobLimits` of a snapshot. */
export const jobLimits = z.strictObject({
  keysPerSecond: limit,
  bytesPerSecond: limit,
  maxP99Ms: limit,
  maxMirrorP99Ms: limit,
  maxReplicaLagBytes: limit,
});

export const jobRequest = z.strictObject({
  /** `restore` copies data that a restarted authority has lost back from its mirror. */
  kind: z.enum(['backfill', 'verify', 'restore']),
  /** Names of workloads; null: all that are written to both servers. */
  workloads: z.array(z.string()).nullable(),
  /**
   * Whether differing keys are copied, and keys that only the mirror has are deleted, up to the number in `deletes`.
   */
  repair: z.boolean(),
  /** Only count the keys. */
  dryRun: z.boolean(),
  /** Whether all keys are copied once more, although they were copied and nothing became suspect since. */
  again: z.boolean(),
  /** Maximum number of keys that only the mirror has and that may be deleted: the number that an operator confirmed. */
  deletes: z.int().min(0).default(0),
  /** Percent of the keys that are checked. */
  sample: z.number().min(0).max(100),
  limits: jobLimits,
  /** Started by the proxy itself, because a whole workload is suspect. */
  automatic: z.boolean(),
});
export type JobRequest = z.infer<typeof jobRequest>;

const counts = z.strictObject({
  scanned: z.number().default(0),
  seen: z.number(),
  copied: z.number(),
  verified: z.number(),
  repaired: z.number(),
  overwritten: z.number().default(0),
  deleted: z.number().default(0),
  keptForeign: z.number().default(0),
  failed: z.number(),
  unsure: z.number(),
  bytes: z.number(),
  differences: z.record(z.string(), z.number()),
  listed: z.record(z.string(), z.number()).default({}),
  verifiedBy: z.record(z.string(), z.number()).default({}),
});
/**
 * Numbers of keys. `scanned`: all keys that the scan has passed, of the servers that `total` counts. `seen`: keys of
 * the job's workloads. `verifiedBy`: compared keys by workload. `overwritten`: copies over keys of the mirror that the
 * kit is not known to have written. `deleted`: keys deleted from the mirror because the authority lacks them.
 * `keptForeign`: such keys that were kept. A dry run counts what would happen.
 */
export type JobCounts = z.infer<typeof counts>;

const pause = z.object({ since: z.string(), by: z.string().nullable(), reason: z.string().nullable() });

const jobRecord = z.object({
  version: z.literal(1),
  request: jobRequest,
  state: z.enum(['running', 'done', 'stopped', 'failed']),
  reason: z.string().nullable(),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  /** The position at which the scan continues; null at its beginning. */
  at: z
    .object({
      side: z.enum(SIDES),
      checkpoint: z
        .object({
          runId: z.string(),
          db: z.number(),
          cursor: z.string(),
          left: z.array(z.number()).readonly().optional(),
        })
        .nullable(),
    })
    .nullable(),
  counts,
  /** Null: it is not paused. */
  paused: pause.nullable().default(null),
  /**
   * Keys that may have been deleted from the mirror so far, of those that an operator confirmed: for this job, and for
   * each workload before its dual write. After a crash the number may be too high.
   */
  deleting: z
    .object({ confirmed: z.number(), workloads: z.record(z.string(), z.number()) })
    .default({ confirmed: 0, workloads: {} }),
});
export type JobRecord = z.infer<typeof jobRecord>;

export const noCounts = (): JobCounts => ({
  scanned: 0,
  seen: 0,
  copied: 0,
  verified: 0,
  repaired: 0,
  overwritten: 0,
  deleted: 0,
  keptForeign: 0,
  failed: 0,
  unsure: 0,
  bytes: 0,
  differences: {},
  listed: {},
  verifiedBy: {},
});

const FILE = 'job.json';

/** The last job of the process that served last. @param served the process's name in the state */
export const readJob = (directory: string, served: string | null): ReadResult<JobRecord> =>
  readSealed(join(directory, FILE), served, jobRecord);

/**
 * Writes the record. It survives the process, but not a crash of the host. @throws {Error} if the disk does not take it
 */
export const writeJob = (directory: string, author: Author, record: JobRecord): void =>
  writeSealed(join(directory, FILE), author, record);
