/**
 * What the kit may do with the keys that it finds on the target, by workload. `Admitted` sets it from the durable
 * state.
 */
import type { Router, Workload } from '../../route/router.js';

export interface Permission {
  /**
   * How many keys that only the mirror has may be deleted without asking. Infinity if the kit wrote all keys there,
   * else the number that an operator confirmed.
   */
  readonly deletable: number;
  /** Whether the mirror may hold keys that the kit did not write, and that a copy would overwrite. */
  readonly mayOverwrite: boolean;
}

const NONE: Permission = { deletable: 0, mayOverwrite: true };

export class Permissions {
  /** By the workload's index. */
  readonly #all: Permission[] = [];

  constructor(private readonly router: Pick<Router, 'workloads'>) {}

  of({ index }: Workload): Permission {
    return this.#all[index] ?? NONE;
  }

  /** Whether the kit wrote every key of the workload on the mirror. */
  isOurs(workload: Workload): boolean {
    return this.of(workload).deletable === Infinity;
  }

  set({ index }: Workload, permission: Permission): void {
    this.#all[index] = permission;
  }

  /** Whether commands reach the target, which may have keys that the kit did not write. */
  get mayHoldForeignKeys(): boolean {
    const { workloads } = this.router;
    const reached = workloads.some(
      ({ position: { keylessRule, whole } }) =>
        keylessRule.mirrorsWrites || keylessRule.authority === 'target' || !whole,
    );
    return reached && !workloads.every((workload) => this.isOurs(workload));
  }
}
