/** The parts of a shard, as `compose.ts` builds them, in the order of building. */
import type { Logger } from 'pino';
import type { Permissions } from '../copy/foreign/permissions.js';
import type { SharedTargetContext } from '../copy/foreign/shared-target.js';
import type { Jobs } from '../copy/job/jobs.js';
import type { Repairer } from '../copy/repair/repairer.js';
import type { Clocks } from '../health/clocks.js';
import type { Failover } from '../health/failover.js';
import type { Logins } from '../health/logins.js';
import type { HealthMonitor } from '../health/monitor.js';
import type { SlotWatch } from '../health/slot-watch.js';
import type { Trust } from '../health/trust.js';
import type { Turn } from '../io/turn.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { Regional } from '../regional/regional.js';
import type { Owners } from '../route/owner.js';
import type { Router } from '../route/router.js';
import type { Side } from '../route/stage.js';
import type { Clients } from '../session/clients.js';
import type { LaneNames } from '../session/lane-names.js';
import type { Admitted } from '../stages/admitted.js';
import type { Automatic } from '../stages/automatic.js';
import type { EvidenceCollector } from '../stages/evidence-collector.js';
import type { Fence } from '../stages/fence.js';
import type { Flipper } from '../stages/flip.js';
import type { Journal } from '../storage/journal.js';
import type { Author } from '../storage/sealed.js';
import type { StateStore } from '../storage/state.js';
import type { Adjudicator } from '../suspects/adjudicator.js';
import type { DeferredPairs } from '../suspects/deferred.js';
import type { FieldTtlTracker } from '../suspects/field-ttls.js';
import type { Suspects } from '../suspects/suspects.js';
import type { SuspectWorkloads } from '../suspects/workloads.js';
import type { Series } from '../telemetry/series.js';
import type { ShardSnapshot } from '../telemetry/snapshot.js';
import type { Counters } from '../telemetry/workload-counters.js';
import type { Dialer } from '../upstream/dialer.js';
import type { Liveness } from '../upstream/liveness.js';
import type { Server } from '../upstream/server.js';
import type { Events } from './events.js';
import type { Listener } from './listener.js';
import type { Replica } from './replica.js';
import type { Settings } from './settings.js';
import type { StateKeeper } from './state-keeper.js';

/** What all parts use. */
export interface Core {
  readonly name: string;
  /** When the shard was built, in ms of the monotonic clock. */
  readonly since: number;
  readonly settings: Settings;
  readonly events: Events;
  readonly logger: Logger;
  readonly state: StateStore;
  /** The directory of the shard's durable state. */
  readonly directory: string;
  readonly author: Author;
  /** The key's name as it may be shown. */
  readonly redact: (key: Buffer) => string;
  /** The sources of the other shards that share the target, by shard. */
  readonly neighbourSources: ReadonlyMap<string, Dialer>;
  /** Null if all keys of the target belong to this shard. */
  readonly owners: Owners | null;
}

/** The parts that order operations and record them. */
export interface OrderParts {
  readonly turn: Turn;
  readonly servers: Readonly<Record<Side, Server>>;
  readonly router: Router;
  readonly counters: Counters;
  readonly permissions: Permissions;
  readonly journal: Journal;
  readonly suspects: Suspects;
  readonly deferred: DeferredPairs;
  readonly suspectWorkloads: SuspectWorkloads;
  readonly authorities: Authorities;
  readonly adjudicator: Adjudicator;
  readonly sequencer: Sequencer;
  /** Null unless the plan says `hashFieldTtl: strip`. */
  readonly fieldTtls: FieldTtlTracker | null;
  /** A reload changes `queueBytes`. */
  readonly mirrorLimits: { queueBytes: number; readonly batchMs: number };
  readonly keeper: StateKeeper;
}

/** The parts that serve clients. */
export interface ClientParts {
  /** Null if no workload has the layout `per-region`. */
  readonly regional: Regional | null;
  readonly clients: Clients;
  readonly laneNames: LaneNames;
  readonly listener: Listener;
  /** Null if clients may not read from replicas; so is the listener for such clients. */
  readonly replica: Replica | null;
  readonly replicaListener: Listener | null;
  readonly sharing: SharedTargetContext;
  readonly repairer: Repairer;
  readonly admitted: Admitted;
}

/** The parts that watch the servers. */
export interface Health {
  readonly monitor: HealthMonitor;
  readonly trust: Trust;
  readonly clocks: Clocks;
  readonly logins: Logins;
  readonly slotWatch: SlotWatch;
  readonly liveness: readonly Liveness[];
  /** Connections that were closed because they were silent. */
  readonly silenced: Readonly<Record<Side, number>>;
}

/** The parts that change stages, and those that collect evidence for gates. */
export interface Staging {
  readonly jobs: Jobs;
  readonly flipper: Flipper;
  readonly fence: Fence;
  readonly series: Series;
  readonly collector: EvidenceCollector;
  readonly automatic: Automatic;
  readonly failover: Failover;
  readonly snapshot: () => ShardSnapshot;
}

export type Parts = Core & OrderParts & ClientParts & Health & Staging;
