/** Which workloads are suspect as a whole, so that no list names their keys, and why. */
import type { Router, Workload } from '../route/router.js';

interface State {
  why: string | null;
  times: number;
  last: string | null;
}

export class WorkloadSuspicions {
  /** By the workload's index. */
  readonly #states: readonly State[];
  #count = 0;

  constructor({ workloads }: Pick<Router, 'workloads'>) {
    this.#states = workloads.map(() => ({ why: null, times: 0, last: null }));
  }

  /** How many workloads are suspect. */
  get count(): number {
    return this.#count;
  }

  /** Why every key of the workload is suspect; null if they are not. Keys of other shards never are. */
  of({ index }: Workload): string | null {
    return index < this.#states.length ? this.#states[index].why : null;
  }

  /**
   * How many times the workload became suspect. A verification that began before the last time cannot clear the
   * suspicion.
   */
  times({ index }: Workload): number {
    return this.#states[index].times;
  }

  /** The last reason why the workload was suspect, even if that is over; null if it never was. */
  last({ index }: Workload): string | null {
    return this.#states[index].last;
  }

  /** Makes every key of the workload suspect. The first reason is kept until the suspicion is cleared. */
  mark({ index }: Workload, why: string): void {
    if (index >= this.#states.length) return;
    const state = this.#states[index];
    state.times++;
    state.last = why;
    if (state.why !== null) return;
    state.why = why;
    this.#count++;
  }

  clear({ index }: Workload): void {
    if (this.#states[index].why !== null) this.#count--;
    this.#states[index].why = null;
  }
}
