/** The clients of one shard, and what they share. */
import type { CommandSpec } from '../command/table.js';
import { Intake } from '../io/intake.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { Server } from '../upstream/server.js';
import type { Regional } from '../regional/regional.js';
import type { Matcher } from '../route/glob.js';
import type { Workload } from '../route/router.js';
import { SIDES, type Side } from '../route/stage.js';
import { MAX_ARGUMENTS } from '../resp/request.js';
import { ClientErrors } from './client-errors.js';
import { ClientLimits, type ClientBounds, type Weighed } from './client-limits.js';
import type { BlockedCommand, ClientState } from './client-state.js';
import { BlockQueue } from './block-queue.js';
import { CounterWatch } from './counting.js';
import { LargeReplies, type Taker } from './large-replies.js';
import { TurnBudget } from './turn-budget.js';
import { SeenLogins } from './seen-logins.js';
import { Support } from './support.js';
import { Subscribers } from './subscribers.js';
import type { Lane } from '../pipeline/lane.js';

/** `processMultibulkBuffer` of KeyDB 6.3.4. */
const KEYDB_MAX_ARGUMENTS = 1024 * 1024;

/** One client, for whoever looks at all of them. */
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
  /** Commands that spanned authorities: answered in parts, or refused. */
  split = 0;
  crossRefused = 0;
  operations = 0;
  readonly limits: ClientLimits;
  /** As whom clients have logged in. */
  readonly logins = new SeenLogins();
  /** What clients were refused. */
  readonly errors = new ClientErrors();
  readonly support: Support;
  readonly #counts: Float64Array[];
  #nextId = 1;
  #lastPlace = 0;
  #waiting: { readonly retry: () => void; readonly place: number }[] = [];

  constructor(
    readonly sequencer: Sequencer,
    /** FLUSHALL and its like would take what other shards keep on the same target. */
    readonly sharedTarget: boolean,
    /** Which of the keys there are this shard's; null where all are, or where that is not said. */
    readonly owned: Matcher | null,
    bounds: ClientBounds,
    /** Null where no workload's layout is `per-region`. */
    readonly regional: Regional | null,
  ) {
    this.support = new Support(sequencer);
    this.limits = new ClientLimits(this.sessions, bounds);
    const { workloads, elsewhere } = sequencer.router;
    for (const side of SIDES) {
      sequencer.lanes[side].usedBy(
        () =>
          new Set([...this.sessions.values()].flatMap(({ usedLanes }) => usedLanes.filter((lane) => lane !== null))),
      );
    }
    this.#counts = [...workloads, elsewhere].map(() => new Float64Array(sequencer.table.all.length));
  }

  entered(session: ConnectedClient): void {
    this.sessions.set(session.client.id, session);
  }

  left(session: ConnectedClient): void {
    this.sessions.delete(session.client.id);
    this.subscribers.ended(session);
    this.largeReplies.left(session);
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
      // It came while a password was needed, and subscribed while none was: its own connection would let it go on.
      if (
        needsPassword &&
        session.client.login.standing[side] === 'barred' &&
        session.client.subscriptions?.links[side]
      )
        session.destroy();
    }
  }

  /** More than this, KeyDB ends the connection, which many clients share. */
  get maxArguments(): number {
    const { source, target } = this.sequencer.servers;
    return source.isKeydb || target.isKeydb ? KEYDB_MAX_ARGUMENTS : MAX_ARGUMENTS;
  }

  nextId(): number {
    return this.#nextId++;
  }

  count(spec: CommandSpec, workload: Workload): void {
    this.operations++;
    if (spec.write) workload.counters.writes++;
    else workload.counters.reads++;
    this.#counts[workload.index][spec.id]++;
  }

  /** Commands of a workload by name. */
  byCommand(workload: Workload): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const spec of this.sequencer.table.all) {
      const count = this.#counts[workload.index][spec.id];
      if (count > 0) counts[spec.name] = count;
    }
    return counts;
  }

  /** Writes by command, subcommands together, that were sent for clients so far; and how many scripts and functions. */
  sentWrites(): { readonly writes: Map<string, number>; readonly scripts: number } {
    const writes = new Map<string, number>();
    let scripts = 0;
    for (const spec of this.sequencer.table.all) {
      const count = this.#counts.reduce((sum, counts) => sum + counts[spec.id], 0);
      const name = spec.name.split('|', 1)[0];
      if (spec.handling === 'script') scripts += count;
      else if (spec.write) writes.set(name, (writes.get(name) ?? 0) + count);
    }
    return { writes, scripts };
  }

  /** Has the server let go of what blocks on the workload's keys; to be sent again when a flip has ended. */
  async interrupt(workload: Workload): Promise<void> {
    await Promise.all([...this.blocked].filter((each) => each.concerns(workload)).map((each) => each.interrupt()));
  }

  /** A place among those who wait for a flip to end: behind everybody who has one. */
  nextPlace(): number {
    return ++this.#lastPlace;
  }

  /** Calls `retry` when a flip has ended or an exclusive command is over, in the order of the places. */
  onceOpen(retry: () => void, place = this.nextPlace()): void {
    this.#waiting.push({ retry, place });
  }

  /** A flip has ended, or an exclusive command is over: who waited looks again. */
  open(): void {
    const waiting = this.#waiting.sort((a, b) => a.place - b.place);
    this.#waiting = [];
    for (const { retry } of waiting) retry();
  }
}
