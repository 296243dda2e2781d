/** The clients of one shard, and what they share. */
import { Intake } from '../io/intake.js';
import type { ReplicaLanes } from '../pipeline/replica-lanes.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { Server } from '../upstream/server.js';
import type { Regional } from '../regional/regional.js';
import type { Matcher } from '../route/glob.js';
import type { Workload } from '../route/router.js';
import { SIDES, type Side } from '../route/stage.js';
import { ClientErrors } from './client-errors.js';
import { ClientLimits, type ClientBounds, type ClientUsage } from './client-limits.js';
import type { BlockedCommand, ClientState } from './client-state.js';
import type { ClusterFace } from './cluster-face.js';
import { BlockQueue } from './block-queue.js';
import { CounterWatch } from './counter-watch.js';
import { LargeReplies, type Taker } from './large-replies.js';
import { TurnBudget } from './turn-budget.js';
import { type ReadShares } from './read-shares.js';
import { SeenLogins } from './seen-logins.js';
import { Support } from './support.js';
import { CommandCounts } from './command-counts.js';
import { Subscribers } from './subscribers.js';
import { TEXT_LIMITS, type TextLimits } from './text-limit.js';
import { WaitingRoom } from './waiting-room.js';
import type { Lane } from '../pipeline/lane.js';

/** One connected client, as others see it. */
export interface ConnectedClient extends ClientUsage, Taker {
  readonly client: ClientState;
  /** Whether the client's command at hand may still send something, though none is in flight. */
  readonly isWorking: boolean;
  /** The lanes that the client uses. */
  readonly usedLanes: readonly (Lane | null)[];
  /** Applies the limits again: whether the client must log in may have changed. */
  checkLimits(): void;
  /** Closes the client once all its commands in flight are answered. */
  end(): void;
  /** Closes the client at once. Replies that are ready are still sent. */
  destroy(): void;
}

/** Keys of the target that the kit did not write. */
export interface ForeignKeys {
  /** Whether commands reach the target, which may have such keys. */
  readonly mayHoldForeignKeys: boolean;
}

export interface ClientsOptions {
  readonly sequencer: Sequencer;
  /** Whether other shards have keys on the same target: FLUSHALL and the like would delete those. */
  readonly sharedTarget: boolean;
  /** Whether the source also has keys of other shards. */
  readonly sharedSource: boolean;
  /** Matches this shard's keys on the target; null if all are, or if the plan does not say. */
  readonly owned: Matcher | null;
  readonly foreignKeys: ForeignKeys;
  readonly bounds: ClientBounds;
  readonly readShares: ReadShares;
  /** Null if no workload has the layout `per-region`. */
  readonly regional: Regional | null;
  /** The cluster as clients see it; null if the source is none. */
  readonly face: ClusterFace | null;
  /** Null if clients may not read from replicas. */
  readonly replicas: ReplicaLanes | null;
  /** Called when the proxy has thrown at a command of a client. */
  readonly onFailure: (problem: Error, client: ClientState) => void;
}

export class Clients {
  readonly sequencer: Sequencer;
  readonly sharedTarget: boolean;
  readonly owned: Matcher | null;
  readonly foreignKeys: ForeignKeys;
  readonly readShares: ReadShares;
  readonly regional: Regional | null;
  readonly face: ClusterFace | null;
  readonly replicas: ReplicaLanes | null;
  readonly sessions = new Map<number, ConnectedClient>();
  readonly intake = new Intake();
  /** Commands that block, or are about to block. */
  readonly blocked = new Set<BlockedCommand>();
  readonly blockQueue = new BlockQueue();
  readonly largeReplies = new LargeReplies();
  readonly turnBudget = new TurnBudget();
  readonly subscribers = new Subscribers();
  readonly counterWatch = new CounterWatch();
  readonly counts: CommandCounts;
  readonly limits: ClientLimits;
  /** The logins that clients have used. */
  readonly logins = new SeenLogins();
  /** The errors that clients have got. */
  readonly errors = new ClientErrors();
  readonly support: Support;
  /** Commands that wait for a stage change or an exclusive command to end. */
  readonly waitingRoom = new WaitingRoom();
  /** Tests lower these. */
  textLimits: TextLimits = TEXT_LIMITS;
  readonly #sharedSource: boolean;
  /** Tests replace it. */
  readonly onFailure: ClientsOptions['onFailure'];
  #nextId = 1;

  constructor({ bounds, sharedSource, ...options }: ClientsOptions) {
    const { sequencer } = options;
    this.sequencer = sequencer;
    this.sharedTarget = options.sharedTarget;
    this.owned = options.owned;
    this.regional = options.regional;
    this.face = options.face;
    this.replicas = options.replicas;
    this.readShares = options.readShares;
    this.foreignKeys = options.foreignKeys;
    this.#sharedSource = sharedSource;
    this.onFailure = options.onFailure;
    this.support = new Support(sequencer);
    this.limits = new ClientLimits(this.sessions, bounds);
    for (const side of SIDES) {
      sequencer.lanes[side].usedBy(
        () =>
          new Set([...this.sessions.values()].flatMap(({ usedLanes }) => usedLanes.filter((lane) => lane !== null))),
      );
    }
    this.counts = new CommandCounts(sequencer.table, sequencer.counters, sequencer.router);
  }

  /**
   * The proxy has thrown at a command of this client. Only this client is closed, and gets no replies to what is in
   * flight.
   */
  failed(session: ConnectedClient, problem: unknown): void {
    this.onFailure(problem instanceof Error ? problem : new Error(String(problem)), session.client);
    this.limits.close(session, 'failure');
  }

  entered(session: ConnectedClient): void {
    this.sessions.set(session.client.id, session);
  }

  left(session: ConnectedClient): void {
    this.sessions.delete(session.client.id);
    this.subscribers.ended(session);
    this.largeReplies.left(session);
  }

  /** Matches this shard's keys on a server; null if all are, or if the plan does not say. */
  ownedAt(side: Side): Matcher | null {
    return side === 'target' || this.#sharedSource ? this.owned : null;
  }

  /** The authority of `default`: it decides who may log in, and answers commands without keys. */
  get side(): Side {
    return this.sequencer.router.default.position.keylessRule.authority;
  }

  /** Whether the authority demands a password. */
  get needsPassword(): boolean {
    return this.sequencer.servers[this.side].needsPassword;
  }

  /** A server has begun, or ceased, to demand a password. */
  passwordNeeded({ side, needsPassword }: Server): void {
    for (const session of this.sessions.values()) {
      session.checkLimits();
      // A client without login that subscribed while no password was demanded would stay subscribed: it is closed.
      if (
        needsPassword &&
        session.client.login.states[side] === 'unauthenticated' &&
        session.client.subscriptions?.links[side]
      )
        session.destroy();
    }
  }

  nextId(): number {
    return this.#nextId++;
  }

  /**
   * Takes the blocking commands on the workload's keys back from the server. They are sent again after the stage
   * change.
   */
  async interrupt(workload: Workload): Promise<void> {
    await Promise.all([...this.blocked].filter((each) => each.concerns(workload)).map((each) => each.interrupt()));
  }
}
