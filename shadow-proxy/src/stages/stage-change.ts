/** A stage change: the request, the result, or the refusal. */
import type { Router, Workload } from '../route/router.js';
import type { Stage, StagePoint } from '../route/stage.js';
import { didYouMean } from '../text/near.js';
import type { Consent } from './gate-facts.js';

export interface StageRequest {
  readonly workload: string;
  readonly stage: Stage;
  /** 0 to 100, only with stage `live`; absent: 100. */
  readonly percent?: number;
  /** Continue although the mirror is not clean, and lose what the refusal lists. */
  readonly force?: boolean;
  /** From off to dualwrite: what may happen to keys of the target that the shard did not write. */
  readonly consent?: Consent;
  /** Whether the old authority is lost: then it need not be trusted. Never set by a request. */
  readonly failover?: boolean;
  /** For the history: the person, the reason, the evidence. */
  readonly note?: Readonly<Record<string, unknown>>;
}

/** One run of a hook. */
export interface HookRun {
  readonly name: string;
  readonly when: 'before' | 'after';
  readonly ms: number;
  /** Why the hook failed; null if it did not. */
  readonly problem: string | null;
}

export interface StageChange {
  readonly workload: string;
  readonly from: StagePoint;
  readonly to: StagePoint;
  /** Milliseconds for which the workload's new commands were held. */
  readonly heldMs: number;
  /** Hooks that have run; absent if the plan has none for the workload. */
  readonly hooks?: readonly HookRun[];
}

export type StageErrorCode =
  | 'unknown-workload'
  /** Stages change one step at a time. */
  | 'not-adjacent'
  /** The way back from `complete` is a backfill in the other direction. */
  | 'no-return'
  /** The mirror lacks effects; `details` says which. */
  | 'not-clean'
  /** The flip did not finish in time; nothing changed. */
  | 'deadline'
  /** Another stage change is under way. */
  | 'busy'
  /** The change cannot be undone, and was not confirmed with the migration's name. */
  | 'point-of-no-return'
  /** Not all gates are open; `details` says which. */
  | 'gates-closed'
  /** Something forbids the change: percent, a shared target, commands that the target lacks, a frozen authority. */
  | 'refused';

/** Maximum number of keys that are named when they cause a refusal, or are lost. */
export const LISTED = 20;

/** A stage was not changed. The message says why and what to do next. */
export class StageError extends Error {
  override readonly name = 'StageError';
  constructor(
    readonly code: StageErrorCode,
    message: string,
    readonly details?: unknown,
    /** The next command for `shadow-compare`, valid in the present state. */
    readonly next?: string,
  ) {
    super(message);
  }
}

export const unknownWorkload = (name: string, names: readonly string[]): StageError =>
  new StageError(
    'unknown-workload',
    `there is no workload "${name}"${didYouMean(name, names)}: the plan has ${names.join(', ')}`,
  );

/** @throws {StageError} code `unknown-workload` */
export function namedWorkload(router: Router, name: string): Workload {
  const workload = router.named(name);
  if (workload !== undefined) return workload;
  throw unknownWorkload(
    name,
    router.workloads.map((each) => each.name),
  );
}
