/** What a shard's job has come to, on the disk: a process that is started again goes on from there. */
import { join } from 'node:path';
import { z } from 'zod';
import { SIDES } from '../route/stage.js';
import { readSealed, writeSealed, type Author, type Read } from './sealed.js';

const optionalNumber = z.number().positive().optional();

export const jobRequest = z.strictObject({
  /** `restore`: what a restarted authority has lost is given back to it from its mirror. */
  kind: z.enum(['backfill', 'verify', 'restore']),
  /** Names; null for all that are written twice. */
  workloads: z.array(z.string()).nullable(),
  /** Copy what differs, and delete what only the mirror has, as far as that is allowed (`deletes`). */
  repair: z.boolean(),
  /** Only count the keys. */
  dryRun: z.boolean(),
  /** Copy all of it once more, though it was copied and nothing became suspect since. */
  again: z.boolean(),
  /** How many keys that only the mirror has may be deleted: an operator has confirmed that number. */
  deletes: z.int().min(0).default(0),
  /** Percent of the keys that are looked at. */
  sample: z.number().min(0).max(100),
  limits: z.strictObject({ keysPerSecond: optionalNumber, bytesPerSecond: optionalNumber, maxP99Ms: optionalNumber }),
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
 * In keys. `scanned`: those of every workload that the scan has passed, of the servers that `total` counts. `seen`:
 * those of the job's workloads. `verifiedBy`: those that were compared, by workload. `overwritten`: copied over keys of
 * the mirror that the kit is not known to have written. `deleted`: from the mirror, for the authority does not have
 * them. `keptForeign`: likewise, but left alone. A dry run counts what would be.
 */
export type JobCounts = z.infer<typeof counts>;

const jobRecord = z.object({
  version: z.literal(1),
  request: jobRequest,
  state: z.enum(['running', 'done', 'stopped', 'failed']),
  reason: z.string().nullable(),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  /** The place at which the scan continues; null at its beginning. */
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
  /**
   * Keys that may have been deleted from the mirror so far, of those that an operator confirmed: for this job, and of
   * each workload before its dual write. After a crash it may be more than were.
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

/** The last job of the process that served last: `served`, as the state names it. */
export const readJob = (directory: string, served: string | null): Read<JobRecord> =>
  readSealed(join(directory, FILE), served, jobRecord);

/** Writes the record: it outlives the process, not the host. @throws {Error} when the disk does not take it */
export const writeJob = (directory: string, author: Author, record: JobRecord): void =>
  writeSealed(join(directory, FILE), author, record);
