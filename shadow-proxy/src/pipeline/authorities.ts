/**
 * Which of the two servers are authorities, and whether they are trusted. While one is not, nothing is copied from it,
 * and no stage changes that would make it clean (rule 1): everything is frozen. `health/trust.ts` decides that.
 */
import type { Router } from '../route/router.js';
import { authoritiesOf, type Side } from '../route/stage.js';

export class Authorities {
  /** Servers that restarted or were replaced since their keys were last clean. Changed by `Trust` alone. */
  readonly distrusted = new Set<Side>();
  #frozen: string | null = null;

  constructor(
    private readonly router: Router,
    /** Called when nothing is frozen any more. */
    private readonly unfrozen: () => void,
  ) {}

  /** Why nothing may be copied, or deleted, now; null where it may. */
  get frozen(): string | null {
    return this.#frozen;
  }

  freeze(reason: string): void {
    this.#frozen = reason;
  }

  unfreeze(): void {
    this.#frozen = null;
    this.unfrozen();
  }

  distrusts(side: Side): boolean {
    return this.distrusted.has(side);
  }

  /** Whether clients are sent to it. */
  isNeeded(side: Side): boolean {
    return authoritiesOf(this.router.workloads).includes(side);
  }

  /** Whether the mirror of any workload follows it. */
  isFollowed(side: Side): boolean {
    return this.router.workloads.some(
      ({ keylessRule, whole }) => keylessRule.mirrorsWrites && (keylessRule.authority === side || !whole),
    );
  }
}
