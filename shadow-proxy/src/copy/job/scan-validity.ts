/**
 * Whether the keys that a scan has passed are still copied: no workload has become suspect since, and each was written
 * to both servers all the time.
 */
import type { Workload } from '../../route/router.js';
import { isMirrored } from '../../route/stage.js';
import type { WorkloadSuspicions } from '../../suspects/workload-suspicions.js';

/** Keys that the scan has passed are suspect again. */
export class RestartScan extends Error {}

export class ScanValidity {
  /** How many times each workload had become suspect when the scan began. */
  readonly #timesSuspect = new Map<Workload, number>();
  /** Workloads that were not written to both servers during a part of the scan: it has passed over their keys. */
  readonly #unmirrored = new Set<Workload>();

  constructor(
    private readonly workloads: readonly Workload[],
    private readonly suspicions: WorkloadSuspicions,
  ) {}

  /** Notes which suspicions the scan that begins now will clear. */
  begin(): void {
    this.#unmirrored.clear();
    for (const workload of this.workloads) this.#timesSuspect.set(workload, this.suspicions.times(workload));
  }

  /** Whether nothing became suspect since the scan began. */
  get isCurrent(): boolean {
    return this.#suspectAgain === undefined;
  }

  get unmirrored(): ReadonlySet<Workload> {
    return this.#unmirrored;
  }

  /** Also notes the workloads that are not written to both servers now. @throws {RestartScan} unless `isCurrent` */
  assertCurrent(): void {
    for (const workload of this.workloads) if (!isMirrored(workload.position.stage)) this.#unmirrored.add(workload);
    const suspect = this.#suspectAgain;
    if (suspect !== undefined)
      throw new RestartScan(
        `every key of "${suspect.name}" became a suspect meanwhile: ${this.suspicions.last(suspect)}`,
      );
  }

  get #suspectAgain(): Workload | undefined {
    return this.workloads.find((workload) => this.suspicions.times(workload) !== this.#timesSuspect.get(workload));
  }
}
