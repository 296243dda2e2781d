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
import { ClientLimits, type ClientBounds, type Weighed } from './client-limits.js';
import type { BlockedCommand, ClientState } from './client-state.js';
import type { ClusterFace } from './cluster-face.js';
import { BlockQueue } from './block-queue.js';
import { CounterWatch } from './counting.js';
import { LargeReplies, type Taker } from './large-replies.js';
import { TurnBudget } from './turn-budget.js';
import { SeenLogins } from './seen-logins.js';
import { Support } from './support.js';
import { CommandCounts } from './command-counts.js';
import { Subscribers } from './subscribers.js';
import { TEXT_LIMITS, type TextLimits } from './text-limit.js';
import { WaitingRoom } from './waiting-room.js';
import type { Lane } from '../pipeline/lane.js';

/** One client, for those that look at all of them. */
export interface ConnectedClient extends Weighed, Taker {
  readonly client: ClientState;
  /** The lanes that it is on. */
  readonly usedLanes: readonly (Lane | null)[];
  /** Whether it has to log in may have changed. */
  checkLimits(): void;
  /** Answers what is in flight, then closes. */
  end(): void;
  /** Closes at once. What is already answered is still sent. */
  destroy(): void;
}

export class Clients {
  readonly sessions = new Map<number, ConnectedClient>();
  readonly intake = new Intake();
  /** Commands that block, or are about to. */
  readonly blocked = new Set<BlockedCommand>();
  readonly blockQueue = new BlockQueue();
  readonly largeReplies = new LargeReplies();
  readonly turnBudget = new TurnBudget();
  readonly subscribers = new Subscribers();
  readonly counterWatch = new CounterWatch();
  readonly counts: CommandCounts;
  readonly limits: ClientLimits;
  /** As whom clients have logged in. */
  readonly logins = new SeenLogins();
  /** What clients were refused. */
  readonly errors = new ClientErrors();
  readonly support: Support;
  /** Who waits for a stage change or an exclusive command to end. */
  readonly waitingRoom = new WaitingRoom();
  /** To be lowered by tests. */
  textLimits: TextLimits = TEXT_LIMITS;
  /** The proxy has failed at a command of a client; set once, to log it. */
  onFailure: (problem: Error, client: ClientState) => void = () => undefined;
  #nextId = 1;

  constructor(
    readonly sequencer: Sequencer,
    /** FLUSHALL and its like would take what other shards keep on the same target. */
    readonly sharedTarget: boolean,
    /** Which of the keys there are this shard's; null where all are, or where that is not said. */
    readonly owned: Matcher | null,
    bounds: ClientBounds,
    /** Null where no workload's layout is `per-region`. */
    readonly regional: Regional | null,
    /** What clients see of the cluster; null where the source is none. */
    readonly face: ClusterFace | null = null,
    /** Whether the source holds keys of other shards, too. */
    private readonly sharedSource = false,
    /** Null where clients may not read from replicas. */
    readonly replicas: ReplicaLanes | null = null,
  ) {
    this.support = new Support(sequencer);
    this.limits = new ClientLimits(this.sessions, bounds);
    const { workloads } = sequencer.router;
    for (const side of SIDES) {
      sequencer.lanes[side].usedBy(
        () =>
          new Set([...this.sessions.values()].flatMap(({ usedLanes }) => usedLanes.filter((lane) => lane !== null))),
      );
    }
    this.counts = new CommandCounts(sequencer.table, workloads.length + 1);
  }

  /** The proxy has failed at a command of this client: it alone is closed, and what it has in flight is lost to it. */
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

  /** Which of the keys of a server are this shard's; null where all are, or where that is not said. */
  ownedAt(side: Side): Matcher | null {
    return side === 'target' || this.sharedSource ? this.owned : null;
  }

  /** The authority of `default`: it says who may log in, and answers commands without keys. */
  get side(): Side {
    return this.sequencer.router.default.keylessRule.authority;
  }

  /** Whether the authority wants a password of a client that has not logged in. */
  get needsPassword(): boolean {
    return this.sequencer.servers[this.side].needsPassword;
  }

  /** A server wants a password from now on, or does not any more. */
  passwordNeeded({ side, needsPassword }: Server): void {
    for (const session of this.sessions.values()) {
      session.checkLimits();
      // The client came while a password was needed, and subscribed while none was: its connection would go on.
      if (
        needsPassword &&
        session.client.login.standing[side] === 'unauthenticated' &&
        session.client.subscriptions?.links[side]
      )
        session.destroy();
    }
  }

  nextId(): number {
    return this.#nextId++;
  }

  /** Has the server let go of what blocks on the workload's keys; to be sent again when a flip has ended. */
  async interrupt(workload: Workload): Promise<void> {
    await Promise.all([...this.blocked].filter((each) => each.concerns(workload)).map((each) => each.interrupt()));
  }
}
