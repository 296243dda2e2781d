/**
 * Which of the two servers are authorities, and whether they are trusted. While an authority is not trusted, nothing is
 * copied from it, and stages that would make it clean cannot change (rule 1): everything is frozen. `health/trust.ts`
 * decides which server is trusted.
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

  /** Why nothing may be copied or deleted now; null if it may. */
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

  /** Whether the server gets commands of clients. */
  isNeeded(side: Side): boolean {
    return authoritiesOf(this.router.positions).includes(side);
  }

  /** Whether a workload has its mirror on the other side of this server. */
  isFollowed(side: Side): boolean {
    return this.router.workloads.some(
      ({ position: { keylessRule, whole } }) => keylessRule.mirrorsWrites && (keylessRule.authority === side || !whole),
    );
  }
}
