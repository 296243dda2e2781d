/** A side that is loaded: the source, the target or the proxy, with the processes that work for it. */
import type { Address } from '../driver/driver.js';

export const ROLES = ['source', 'target', 'proxy'] as const;
export type Role = (typeof ROLES)[number];

/** A process whose CPU time is read before and after a measurement. */
export interface Worker {
  /** For example `source`, `target`, `proxy`. */
  readonly name: string;
  /** CPU seconds (user and system) since it started. @throws if it cannot be asked */
  readonly cpuSeconds: () => Promise<number>;
}

export interface Side {
  /** The side's role, or role and variant: `target/4`. Unique in a run. */
  readonly id: string;
  readonly role: Role;
  /** For people: `KeyDB 6.3.4, server-threads 2`. */
  readonly title: string;
  /** The address for people, without a password. */
  readonly where: string;
  readonly address: Address;
  readonly workers: readonly Worker[];
  /** Servers on which the counters must be correct: its own, or both behind the proxy. */
  readonly holders: readonly Holder[];
  /** Resolves when all holders have what was written; null if there is no lag. */
  readonly settled: (() => Promise<void>) | null;
}

export interface Holder {
  readonly name: string;
  readonly address: Address;
}
