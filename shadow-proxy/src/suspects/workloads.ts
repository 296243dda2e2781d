/** Makes workloads suspect as a whole. The journal notes each before anything else happens. */
import type { Router, Workload } from '../route/router.js';
import type { Journal } from '../storage/journal.js';
import type { WorkloadSuspicions } from './workload-suspicions.js';

export class SuspectWorkloads {
  constructor(
    private readonly router: Router,
    private readonly suspicions: WorkloadSuspicions,
    private readonly journal: Pick<Journal, 'noteWorkload' | 'flush'>,
  ) {}

  /** Every key of the workload is suspect from now on. */
  mark(workload: Workload, reason: string): void {
    this.suspicions.mark(workload, reason);
    this.journal.noteWorkload(workload.name, this.suspicions.of(workload)!);
    this.journal.flush();
  }

  /** Every key of each workload that is written twice, and that `which` selects, becomes a suspect. */
  markAll(reason: string, which: (workload: Workload) => boolean = () => true): void {
    for (const workload of this.router.workloads)
      if (workload.position.keylessRule.mirrorsWrites && which(workload)) this.mark(workload, reason);
  }
}
