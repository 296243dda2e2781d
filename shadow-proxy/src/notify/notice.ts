/** What people are notified of: one thing that happened, or a condition that begins, changes or ends. */
import type { NotifyEvent } from '../plan/plan.js';

export type Severity = 'info' | 'warning' | 'critical';

/** What happens in a shard, before it is addressed to anybody. */
export interface Happening {
  /** `test` is what an operator sends to see whether a receiver accepts it. */
  readonly event: NotifyEvent | 'test';
  /** `once`: it has happened. `firing`: it holds from now on, or holds with other details. `resolved`: it has ended. */
  readonly state: 'once' | 'firing' | 'resolved';
  readonly severity: Severity;
  /** The same for all notices of one condition, such as `cache-0/sessions/gate/suspects`. */
  readonly key: string;
  /** When it began, in ms since 1970. */
  readonly since: number;
  readonly shard: string;
  /** Null if it concerns the whole shard. */
  readonly workload: string | null;
  /** One sentence. No keys or values of clients, and no secrets. */
  readonly summary: string;
  readonly details: Readonly<Record<string, string | number>>;
}

export interface Notice extends Happening {
  /** Of this notice alone: a receiver that gets it twice can drop the second. */
  readonly id: string;
  /** The plan's name. */
  readonly migration: string;
  /** When it was made, in ms since 1970. */
  readonly at: number;
}
