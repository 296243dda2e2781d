/**
 * How many keys that only the mirror has a job may delete, and how many it has deleted, or is about to; in a dry run,
 * that it would. The record is written ahead of the deletes: a process that continues the job after a crash must not
 * delete more than was confirmed.
 */
import type { Workload } from '../../route/router.js';
import type { JobRecord } from '../../storage/job-file.js';
import type { Permissions } from '../foreign/permissions.js';

/** How many deletes are noted at once, before the first of them. */
const DELETES_NOTED = 100;

export interface DeleteBudgetContext {
  readonly permissions: Pick<Permissions, 'of'>;
  readonly request: () => Pick<JobRecord['request'], 'kind' | 'automatic' | 'deletes' | 'dryRun'>;
  /** Writes the job's record, with `record`. */
  readonly save: () => void;
}

export class DeleteBudget {
  /** What was deleted of keys that the kit wrote, or that were confirmed before the dual write. */
  readonly #deleted: Map<Workload, number>;
  /** What was deleted of those that the operator confirmed for this job. */
  #confirmed: number;
  /** How many keys may be deleted before the record says so. */
  #noted = 0;

  constructor(
    private readonly by: DeleteBudgetContext,
    workloads: readonly Workload[],
    resumed: JobRecord['deleting'] | undefined,
  ) {
    this.#confirmed = resumed?.confirmed ?? 0;
    this.#deleted = new Map(workloads.map((workload) => [workload, resumed?.workloads[workload.name] ?? 0]));
  }

  /** Whether one more key of the workload may be deleted. */
  allows(workload: Workload): boolean {
    return this.#isOfWorkload(workload) || this.#confirmed < this.by.request().deletes;
  }

  /** Counts a delete that the budget allows, before it is sent. */
  spend(workload: Workload): void {
    const isOfWorkload = this.#isOfWorkload(workload);
    if (isOfWorkload) this.#deleted.set(workload, this.#deletedOf(workload) + 1);
    else this.#confirmed++;
    const isUnlimited = isOfWorkload && this.by.permissions.of(workload).deletable === Infinity;
    if (!this.by.request().dryRun && !isUnlimited && this.#noted-- === 0) {
      this.#noted = DELETES_NOTED - 1;
      this.by.save();
    }
  }

  /**
   * Whether the workload's own number covers the next delete. In a repair that an operator asked for, only what was
   * confirmed with it counts.
   */
  #isOfWorkload(workload: Workload): boolean {
    const { kind, automatic } = this.by.request();
    const isAsked = kind === 'verify' && !automatic;
    return !isAsked && this.#deletedOf(workload) < this.by.permissions.of(workload).deletable;
  }

  #deletedOf(workload: Workload): number {
    return this.#deleted.get(workload) ?? 0;
  }

  /** Starts again from nothing: for a dry run, which only counts. */
  reset(): void {
    this.#deleted.clear();
    this.#confirmed = 0;
  }

  /** The record will name only what was deleted: nothing is deleted any more. */
  forgetNoted(): void {
    this.#noted = 0;
  }

  /** @param running whether the deletes that were noted ahead may still be made */
  record(running: boolean): JobRecord['deleting'] {
    const ahead = running ? this.#noted : 0;
    return {
      confirmed: this.#confirmed + ahead,
      workloads: Object.fromEntries([...this.#deleted].map(([{ name }, count]) => [name, count + ahead])),
    };
  }
}
