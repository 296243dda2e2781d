/** A notice: an event, or a condition that begins, changes or ends. */
import type { NotifyEvent } from '../plan/plan.js';

export type Severity = 'info' | 'warning' | 'critical';

/** Something that happens in a shard, before it is addressed to receivers. */
export interface Happening {
  /** `test` is sent by an operator, to see whether a receiver accepts it. */
  readonly event: NotifyEvent | 'test';
  /** `once`: an event. `firing`: a condition begins, or its details change. `resolved`: the condition has ended. */
  readonly state: 'once' | 'firing' | 'resolved';
  readonly severity: Severity;
  /** The same for all notices of one condition, such as `cache-0/sessions/gate/suspects`. */
  readonly key: string;
  /** When it began, in ms since 1970. */
  readonly since: number;
  readonly shard: string;
  /** Null if it concerns the whole shard. */
  readonly workload: string | null;
  /** One sentence, without keys or values of clients, and without secrets. */
  readonly summary: string;
  readonly details: Readonly<Record<string, string | number>>;
}

export interface Notice extends Happening {
  /** Unique to this notice: a receiver that gets it twice can drop the second. */
  readonly id: string;
  /** The plan's name. */
  readonly migration: string;
  /** When the notice was made, in ms since 1970. */
  readonly at: number;
}
