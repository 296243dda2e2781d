/** The bodies that the admin HTTP accepts. An unknown field is refused by its name. */
import * as z from 'zod';
import { redactSecrets } from '../plan/endpoint.js';
import { STAGES } from '../route/stage.js';
import { jobLimits, jobRequest } from '../storage/job-file.js';

/** For a change to `complete`: the migration's name. */
const pointOfNoReturn = z.string().optional();

export const acceptRequest = z.strictObject({ shard: z.string().optional(), runIds: z.array(z.string()).optional() });

/** A text by a person, for the history. */
const words = (most: number): z.ZodType<string | undefined> => z.string().max(most).transform(redactSecrets).optional();
const by = words(200);
const consent = z.strictObject({
  overwrite: z.boolean().default(false),
  deleteForeign: z.boolean().default(false),
  confirm: z.int().min(0),
});
export const promoteRequest = z.strictObject({
  shard: z.string().optional(),
  workload: z.string(),
  to: z.enum(STAGES).optional(),
  percent: z.number().gt(0).max(100).optional(),
  consent: consent.optional(),
  dryRun: z.boolean().optional(),
  pointOfNoReturn,
  force: z.boolean().optional(),
  forceSuspects: z.boolean().optional(),
  forceUsers: z.boolean().optional(),
  acceptVersion: z.boolean().optional(),
  reason: words(1000),
  by,
});
export const rollbackRequest = z.strictObject({
  shard: z.string().optional(),
  workload: z.string().optional(),
  to: z.enum(STAGES).optional(),
  force: z.boolean().optional(),
  reason: words(1000),
  by,
  drill: z.boolean().optional(),
  dryRun: z.boolean().optional(),
});

export const fenceRequest = z.strictObject({
  shard: z.string().optional(),
  action: z.enum(['apply', 'lift']),
  reason: words(1000),
  by,
});

export const takeBackRequest = z.strictObject({
  shard: z.string(),
  workload: z.string(),
  from: z.strictObject({ stage: z.enum(STAGES), percent: z.number().gt(0).max(100) }),
  why: z.string().min(1).max(1000).transform(redactSecrets),
});

const word = z.string().min(1).max(200).transform(redactSecrets);
export const noteRequest = z.strictObject({
  runbook: word,
  step: word,
  kind: z.enum(['run', 'undo']),
  command: z.string().max(1000).transform(redactSecrets),
  exit: z.int().nullable(),
  held: z.boolean(),
  by,
});

/** A promotion that waits on an operator's machine. */
export const waitRequest = z.strictObject({
  workload: word,
  state: z.enum(['waits', 'ended', 'cancelled']),
  /** What the promotion waits for, or why the wait ended, in words. */
  what: word,
  by,
});

/** Whether a workload may be promoted automatically. */
export const automationRequest = z.strictObject({
  shard: z.string().optional(),
  workload: z.string(),
  state: z.enum(['pause', 'resume']),
  reason: z.string().min(1).max(1000).transform(redactSecrets),
  by,
});

export const startJobRequest = jobRequest
  .omit({ automatic: true })
  .partial({ workloads: true, repair: true, dryRun: true, again: true, deletes: true, sample: true, limits: true })
  // A sample of 0 % would check no key.
  .extend({ shard: z.string().optional(), by, sample: z.number().gt(0).max(100).optional() });

/** What changes of a job that runs: at least one limit, or its state. */
export const changeJobRequest = z
  .strictObject({
    shard: z.string().optional(),
    limits: jobLimits.optional(),
    state: z.enum(['pause', 'resume']).optional(),
    reason: words(1000),
    by,
  })
  .refine(({ limits = {}, state }) => state !== undefined || Object.keys(limits).length > 0, {
    message: `give state (pause or resume), or limits with at least one of ${Object.keys(jobLimits.shape).join(', ')}`,
  });
