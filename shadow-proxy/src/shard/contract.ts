/** The options of a shard, and what its process knows about it. */
import type { Logger } from 'pino';
import type { ShardControl } from '../admin/shard-control.js';
import type { Ownership } from '../lease/ownership.js';
import type { Observer } from '../pipeline/observer.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import type { Consent } from '../stages/gate-facts.js';
import type { JournalRecords } from '../storage/journal-reader.js';
import type { StateStore } from '../storage/state.js';
import type { Ledger } from '../telemetry/ledger.js';

/** A running shard. */
export interface Shard extends ShardControl {
  /**
   * Waits until the mirrors have confirmed what they were sent so far. Returns those keys of the database that are not
   * suspects then.
   */
  settled<T extends { readonly key: Buffer }>(db: number, keys: readonly T[]): Promise<readonly T[]>;
  /** The port on which the shard listens. */
  readonly port: number;
  /**
   * Takes no new clients, answers the commands in flight, and waits for the mirror. False if `timeoutMs` is over first.
   */
  drain(timeoutMs: number): Promise<boolean>;
  /** Closes everything at once. It may be called after `drain`, and twice. */
  stop(): Promise<void>;
  /** Takes over the parts of a plan that may change in a running process. The plan has passed `checkReload`. */
  reload(plan: Plan): void;
}

export interface ShardOptions {
  readonly plan: Plan;
  readonly shard: ShardPlan;
  readonly logger: Logger;
  readonly ledger: Ledger;
  /** The key of the hashes that replace keys in reports. */
  readonly hashKey: Buffer;
  /** Has the stages in effect: `state.current.workloads`. */
  readonly state: StateStore;
  /** The suspects that the last process left. */
  readonly left: JournalRecords;
  /** The shard belongs to this process as long as `ownership` holds it. */
  readonly ownership: Ownership;
  /**
   * Why the suspects of the last process are not known here: then every mirrored workload is suspect. Null if they are
   * known.
   */
  readonly unknownBecause: string | null;
  /** Whether both servers are assumed to hold the same data if there is no state yet. */
  readonly alike: boolean;
  /** What may happen to keys of the target that the shard did not write, if the first stage is beyond off. */
  readonly consent: Consent;
  /** The shards of this process that are running. */
  readonly shards: () => readonly Shard[];
  /** Observes single commands; null if nothing does. */
  readonly observer: Observer | null;
  /** How many shards this process will run. */
  readonly shardCount: number;
  /** How long to retry, in ms, if the address is in use: the process before may still have it. */
  readonly listenMs: number;
}
