/** The present plan: a reload replaces it. */
import type { Plan, ShardPlan } from '../plan/plan.js';

export class Settings {
  #plan: Plan;

  constructor(
    readonly name: string,
    plan: Plan,
  ) {
    this.#plan = plan;
  }

  get plan(): Plan {
    return this.#plan;
  }

  get shard(): ShardPlan {
    return this.#plan.shards.find(({ name }) => name === this.name)!;
  }

  reload(plan: Plan): void {
    this.#plan = plan;
  }

  /** The size from which a key is copied in chunks. */
  readonly large = largeOf(() => this.#plan.limits);
}

const largeOf = (limits: () => Plan['limits']): { readonly bytes: number; readonly elements: number } => ({
  get bytes() {
    return limits().largeKeyBytes;
  },
  get elements() {
    return limits().largeKeyElements;
  },
});
