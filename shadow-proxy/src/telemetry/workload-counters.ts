/** What the hot path counts for each workload. Plain fields: the snapshot reads them. */
import type { Router, Workload } from '../route/router.js';
import type { Side } from '../route/stage.js';

/** The numbers of one workload. */
export class WorkloadCounters {
  reads = 0;
  writes = 0;
  /** Replies of the target to clients, and how many of them are errors. */
  answeredByTarget = 0;
  errorsOfTarget = 0;
  compared = 0;
  matched = 0;
  /** Writes that the authority refused. They are not replicated. */
  refused = 0;
  /** Commands that spanned slots or hid their keys. While there are any, a percentage is not offered. */
  spanning = 0;
  /** Calls of forms that only one of the two servers supports, by form (`lmpop`, `expire GT`). */
  readonly unsupported = new Map<string, UnsupportedCalls>();
  /** Errors that clients got and that the other server would not have given, by command or form. */
  readonly newErrors = new Map<string, number>();
  readonly allowed = new Map<string, number>();
  readonly mismatches = new Map<string, number>();
  readonly inconclusive = new Map<string, number>();
  /** Inconclusive pairs on keys that a script has changed, by script. */
  readonly inconclusiveByScript = new Map<string, number>();
}

/** Calls of a form that only one of the two servers supports. */
export interface UnsupportedCalls {
  readonly lacks: Side;
  calls: number;
}

/** The counters of all workloads of a shard. */
export class Counters {
  readonly #all: readonly WorkloadCounters[];
  /** The number of workloads without the one for keys of other shards. */
  readonly #own: number;

  constructor({ workloads }: Pick<Router, 'workloads'>) {
    this.#own = workloads.length;
    this.#all = Array.from({ length: workloads.length + 1 }, () => new WorkloadCounters());
  }

  of(workload: Workload): WorkloadCounters {
    return this.#all[workload.index];
  }

  /** Counts a command that spans slots, or hides keys, once for each entry. */
  addSpanning(workloads: readonly Workload[]): void {
    for (const workload of workloads) this.of(workload).spanning++;
  }

  /** Counts a command that hid its keys: they may belong to any workload. */
  addHidden(): void {
    for (let i = 0; i < this.#own; i++) this.#all[i].spanning++;
  }
}

/** Maximum number of forms that are counted separately for a workload. */
const MAX_FORMS = 500;
/** Maximum number of scripts that are counted separately for a workload. */
const MAX_SCRIPTS = 50;

/** Counts inconclusive pairs on a key that the script has changed. */
export function countInconclusive({ inconclusiveByScript }: WorkloadCounters, script: string, pairs: number): void {
  const isRoom = inconclusiveByScript.has(script) || inconclusiveByScript.size < MAX_SCRIPTS;
  increment(inconclusiveByScript, isRoom ? script : 'other scripts', pairs);
}

/**
 * Counts a call of a form that the server `lacks` does not support.
 * @param isAnsweredThere whether `lacks` answers the client: then the client gets an error that the other server would
 * not give
 */
export function countUnsupported(
  { unsupported, newErrors }: WorkloadCounters,
  form: string,
  lacks: Side,
  isAnsweredThere: boolean,
): void {
  const known = unsupported.get(form);
  if (known !== undefined) known.calls++;
  else if (unsupported.size < MAX_FORMS) unsupported.set(form, { lacks, calls: 1 });
  else return;
  if (isAnsweredThere) increment(newErrors, form);
}

export const increment = (counts: Map<string, number>, name: string, by = 1): void => {
  counts.set(name, (counts.get(name) ?? 0) + by);
};
