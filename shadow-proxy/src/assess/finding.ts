/** One line of an assessment, and what it is found from. */
import type { InstanceFacts } from './facts.js';

/**
 * `go` speaks for a migration, `no-go` against it; `first` has to be done before it; `note` should be known;
 * `unknown` could not be found out.
 */
export type Weight = 'go' | 'no-go' | 'first' | 'note' | 'unknown';

export interface Finding {
  readonly about: string;
  readonly weight: Weight;
  readonly what: string;
  readonly means: string;
}

/** What only a managed Redis gives, which the operator may say that they need. */
export const MANAGED_ONLY: Readonly<Record<string, string>> = {
  sla: 'an availability contract (SLA)',
  patching: 'security patches installed by a provider',
  'global-datastore': 'replication between regions, run by a provider',
  serverless: 'automatic scaling with the load',
};

export interface Question {
  readonly sources: readonly InstanceFacts[];
  readonly target: InstanceFacts | null;
  /** Keys of `MANAGED_ONLY`. */
  readonly requires: readonly string[];
  /** Commands a second that one proxy was measured to take (docs/capacity.md). */
  readonly proxyOps: number;
}
