/** What a shard is started with, and what its process knows of it. */
import type { Logger } from 'pino';
import type { ShardControl } from '../admin/shard-control.js';
import type { Ownership } from '../lease/ownership.js';
import type { Observer } from '../pipeline/observer.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import type { Consent } from '../stages/gate-facts.js';
import type { StateStore } from '../storage/state.js';
import type { Ledger } from '../telemetry/ledger.js';

/** A running shard. */
export interface Shard extends ShardControl {
  /**
   * Waits until the mirrors have confirmed what they were sent up to now; the keys of the database that are
   * no suspects then.
   */
  settled<T extends { readonly key: Buffer }>(db: number, keys: readonly T[]): Promise<readonly T[]>;
  /** The port it listens on. */
  readonly port: number;
  /** Takes no new clients, answers what is in flight, waits for the mirror; false if `timeoutMs` ran out. */
  drain(timeoutMs: number): Promise<boolean>;
  /** Closes everything at once; safe after `drain` and twice. */
  stop(): Promise<void>;
  /** Takes over what a plan that passed `checkReload` may change in a running process. */
  reload(plan: Plan): void;
}

export interface ShardOptions {
  readonly plan: Plan;
  readonly shard: ShardPlan;
  readonly logger: Logger;
  readonly ledger: Ledger;
  /** Under which keys are hashed where they are redacted. */
  readonly hashKey: Buffer;
  /** Holds the effective stages: `state.current.workloads`. */
  readonly state: StateStore;
  /** The shard is this process's as long as it says so. */
  readonly ownership: Ownership;
  /**
   * Why what the last owner left suspect is not known here: every workload that writes twice is suspect; null if it
   * is known.
   */
  readonly unknownBecause: string | null;
  /** Whether both servers are believed to hold the same where there is no state yet. */
  readonly alike: boolean;
  /** What may happen to keys of the target that the shard did not write, where the first stage is beyond off. */
  readonly consent: Consent;
  /** The shards of this process, once they run. */
  readonly shards: () => readonly Shard[];
  /** Looks at single commands; null if nobody does. */
  readonly observer: Observer | null;
  /** How many this process is to run. */
  readonly shardCount: number;
  /** Milliseconds for which an address that is taken is tried again: who handed over may still have it. */
  readonly listenMs: number;
}
