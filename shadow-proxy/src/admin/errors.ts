/** The reasons for which the admin HTTP refuses a request, and their statuses. */
import { JobError, type JobErrorCode } from '../copy/job/jobs.js';
import { TrustError, type TrustErrorCode } from '../health/trust.js';
import { StageError, type StageErrorCode } from '../stages/stage-change.js';
import type { Refusal } from './admission.js';

export type AdminErrorCode =
  | 'listen'
  | Refusal['code']
  | 'not-found'
  | 'method'
  | 'bad-request'
  | 'too-large'
  | 'unknown-shard'
  | 'internal'
  | StageErrorCode
  | TrustErrorCode
  | JobErrorCode;

/** The admin HTTP cannot be opened, or a request is refused. The message says what to do. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
  constructor(
    readonly code: AdminErrorCode,
    message: string,
    readonly status = 500,
    readonly details?: object,
  ) {
    super(message);
  }
}

const STATUS_OF: Record<StageErrorCode | TrustErrorCode | JobErrorCode, number> = {
  'unknown-workload': 404,
  'not-adjacent': 409,
  'no-return': 409,
  'point-of-no-return': 400,
  'not-clean': 409,
  'gates-closed': 409,
  deadline: 504,
  busy: 409,
  refused: 409,
  'nothing-to-do': 409,
  frozen: 409,
  none: 409,
  'not-frozen': 409,
  changed: 409,
  'server-unreachable': 409,
  replica: 409,
};

export function asAdminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof TrustError) return new AdminError(error.code, error.message, STATUS_OF[error.code]);
  if (!(error instanceof StageError || error instanceof JobError))
    return new AdminError('internal', (error as Error).message);
  const { code, message, next } = error;
  const details = error instanceof StageError ? error.details : undefined;
  return new AdminError(code, message, STATUS_OF[code], {
    ...(details !== undefined && { details }),
    ...(next !== undefined && { next: [next] }),
  });
}
