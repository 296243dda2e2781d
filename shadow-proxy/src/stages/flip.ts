/**
 * A stage change. It holds the workload's new commands until the old authority has answered, and the mirror has
 * confirmed, everything that was in flight. Then it changes the rule. At a deadline it aborts with nothing changed.
 *
 * Room: stages: stage changes: gates, promotion, rollback, the flip itself.
 * Called by: health, page, admin, shard, report, cli.
 * Calls: text, io, resp, route, plan, command, compare, telemetry, storage, upstream, lease, pipeline, suspects,
 *   session, copy, guard.
 */
import type { PlainCounters } from '../../../counters/src/index.js';
import { monotonicMs } from '../io/clock.js';
import { sleep } from '../io/timers.js';
import { ACCEPT, forceBackOf, forceOf } from '../telemetry/advice.js';
import { NOT_COPIED } from '../telemetry/snapshot.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { Adjudicator } from '../suspects/adjudicator.js';
import type { SuspectWorkloads } from '../suspects/workloads.js';
import type { Server } from '../upstream/server.js';
import type { Suspect, Suspects } from '../suspects/suspects.js';
import type { HookPlan } from '../plan/plan.js';
import type { Workload } from '../route/router.js';
import { isPartial, samePoint, SIDES, stageRule, type Side, type Stage, type StagePoint } from '../route/stage.js';
import {
  authorityLeft,
  authorityMoves,
  channelsMove,
  isLater,
  noReturn,
  stagesFrom,
  transitionOf,
} from '../route/transitions.js';
import type { Clients } from '../session/clients.js';
import { Carry } from './carry-over.js';
import { NO_CONSENT, type Consent, type TargetFacts } from './gate-facts.js';
import { judgeTarget } from './gates.js';
import type { Hooks } from './hooks.js';
import {
  LISTED,
  namedWorkload,
  StageError,
  type HookRun,
  type StageChange,
  type StageRequest,
} from './stage-change.js';

/** The clients, as a flip uses them. */
export type FlippedClients = Pick<Clients, 'subscribers' | 'waitingRoom' | 'interrupt'>;

export interface FlipContext {
  readonly sequencer: Sequencer;
  readonly clients: FlippedClients;
  readonly suspects: Suspects;
  /** Whether another shard has the same target, and this one does not say which keys are its own. */
  readonly sharedTarget: boolean;
  /** What the target holds of a workload; counted if that is needed. */
  target(workload: Workload): Promise<TargetFacts>;
  /**
   * Saves the new stage; the flip takes effect only after that. `admitted`: the target that is about to be written to
   * for the first time.
   */
  persist(
    workload: Workload,
    from: StagePoint,
    to: StagePoint,
    note: StageRequest['note'],
    admitted: Admitting | null,
  ): Promise<void>;
  readonly hooks: Pick<Hooks, 'of' | 'before' | 'after'>;
  /** Called once the new stage is in effect. */
  moved(): void;
  readonly suspectWorkloads: Pick<SuspectWorkloads, 'mark'>;
  readonly adjudicator: Pick<Adjudicator, 'asksOf' | 'allClosed'>;
  readonly authorities: Pick<Authorities, 'frozen' | 'distrusts'>;
  /** Whether an authority has been silent for so long that it is down. */
  isDown(side: Side): boolean;
  /** Closes every connection to the server: what it has not answered is lost. */
  abandon(side: Side): void;
  /** The key's name as it may be shown. */
  redact(key: Buffer): string;
  /** This region's counters, for workloads with the layout `per-region`. */
  counters(): Promise<PlainCounters>;
}

/** A workload that is about to be written to a target, and what the target holds. */
export interface Admitting {
  readonly facts: TargetFacts;
  readonly consent: Consent;
}

/** A change that the request itself allows. */
interface Change {
  readonly workload: Workload;
  readonly from: StagePoint;
  readonly to: StagePoint;
  /** The authorities that lose keys by the change. */
  readonly leaving: readonly Side[];
  /** Whether suspects forbid the change. */
  readonly needsClean: boolean;
}

/** How long suspects may take to be repaired before a flip that needs a clean mirror is refused, in ms. */
const REPAIR_MS = 2_000;
/** The same limit while the workload's commands are held, in ms. */
const HELD_REPAIR_MS = 500;

export class Flipper {
  flips = 0;
  #busy = false;
  /** The authorities that lose keys by the change under way. */
  #leaving: readonly Side[] = [];

  constructor(
    private readonly context: FlipContext,
    /** Maximum time for which a workload's commands are held, in ms. */
    private readonly holdMs: () => number,
  ) {}

  /** Keys from before the dual write are not on the mirror, unless there are none on either server. */
  async beginCopy(workload: Workload): Promise<void> {
    const { servers } = this.context.sequencer;
    const counts = await Promise.all(
      [servers.source, servers.target].map((server) => server.keyCount().catch(() => 1)),
    );
    if (counts.some((count) => count > 0)) this.context.suspectWorkloads.mark(workload, NOT_COPIED);
  }

  /** Called when an authority may be down: a change that leaves it does not wait for its answers. */
  down(side: Side): void {
    if (this.#leaving.includes(side) && this.context.isDown(side)) this.context.abandon(side);
  }

  /** Refuses what `change` would refuse whatever the servers answer. @throws {StageError} */
  allow(request: StageRequest): void {
    this.#allowed(request);
  }

  /** A dry run of `change`: all checks before it holds a command. @throws {StageError} as `change` would */
  async check(request: StageRequest): Promise<void> {
    const change = this.#allowed(request);
    if (change !== null) await this.#ready(change, request);
  }

  /** The hooks that a change of the workload would run. */
  hooksOf(workload: string): readonly HookPlan[] {
    return this.context.hooks.of(workload);
  }

  /** Makes the change, and runs the plan's hooks. @throws {StageError} with nothing changed */
  async change(request: StageRequest): Promise<StageChange> {
    const { hooks, sequencer } = this.context;
    const { workload, stage, percent, note, failover = false } = request;
    if (hooks.of(workload).length === 0 || this.#allowed(request) === null) return this.#change(request);
    const from = pointOf(namedWorkload(sequencer.router, workload).position);
    const about = { workload, from, to: pointAt(stage, percent), note, failover };
    const isPromotion = !failover && isLater(from, about.to);
    if (isPromotion) await this.check(request);
    const begun = hooks.before(about);
    // Clients that return to the source, or whose server is down, do not wait for programs. While a promotion waits for
    // them, others may change stages: everything is checked again.
    if (isPromotion) await begun;
    const done = await this.#change(request);
    const runs = async (): Promise<readonly HookRun[]> => [...(await begun), ...(await hooks.after(about))];
    if (!failover) return { ...done, hooks: await runs() };
    void runs();
    return done;
  }

  async #change(request: StageRequest): Promise<StageChange> {
    const change = this.#allowed(request);
    if (change === null) {
      const point = pointOf(namedWorkload(this.context.sequencer.router, request.workload).position);
      return { workload: request.workload, from: point, to: point, heldMs: 0 };
    }
    const { workload, from, to, leaving } = change;
    this.#busy = true;
    this.#leaving = leaving;
    try {
      const admitting = await this.#ready(change, request);
      const heldMs = await this.#flip(change, request.note, admitting);
      this.flips++;
      return { workload: workload.name, from, to, heldMs };
    } finally {
      this.#leaving = [];
      this.#busy = false;
    }
  }

  /** Null if the workload is in that stage already. @throws {StageError} if only another request could succeed */
  #allowed(request: StageRequest): Change | null {
    if (this.#busy) throw new StageError('busy', 'another stage change is in progress: try again when it has ended');
    const workload = namedWorkload(this.context.sequencer.router, request.workload);
    const [from, to] = [pointOf(workload.position), pointAt(request.stage, request.percent)];
    if (samePoint(from, to)) return null;
    this.#check(workload, from, to, request);
    const needsClean = authorityMoves(from, to) && request.force !== true;
    return { workload, from, to, leaving: authorityLeft(from, to), needsClean };
  }

  /** Checks that the target and the mirror allow the change now. @throws {StageError} */
  async #ready(change: Change, request: StageRequest): Promise<Admitting | null> {
    const { workload, from, to, needsClean } = change;
    const admitting = from.stage === 'off' && to.stage === 'dualwrite' ? await this.#admit(workload, request) : null;
    if (needsClean) await this.#requireClean(change);
    return admitting;
  }

  /**
   * @throws {StageError} code `gates-closed` if the target holds keys that the shard did not write, and nobody
   * confirmed their number
   */
  async #admit(workload: Workload, { consent = NO_CONSENT }: StageRequest): Promise<Admitting> {
    const facts = await this.context.target(workload);
    const { answer, evidence } = judgeTarget(facts, consent);
    if (answer === 'yes') return { facts, consent };
    throw new StageError('gates-closed', `"${workload.name}" stays in off: ${evidence}`, { target: facts });
  }

  #check(
    workload: Workload,
    from: StagePoint,
    to: StagePoint,
    { force = false, failover = false }: StageRequest,
  ): void {
    if (from.stage === 'complete') throw new StageError('no-return', noReturn(workload.name));
    const transition = transitionOf(from.stage, to.stage, workload.perRegion);
    if (transition === null) {
      throw new StageError(
        'not-adjacent',
        workload.perRegion
          ? `"${workload.name}" has counterLayout per-region: source and target hold different keys; the stages off and complete are allowed`
          : `"${workload.name}" is in ${from.stage}: from there, ${stagesFrom(from.stage).join(' or ')} is allowed, one step at a time`,
      );
    }
    if (isPartial(to) && this.context.sequencer.counters.of(workload).spanning > 0) {
      throw new StageError(
        'refused',
        `--percent is refused for "${workload.name}": ${this.context.sequencer.counters.of(workload).spanning} commands spanned hash slots or did not name their keys; promote all its keys at once`,
      );
    }
    if (stageRule(to.stage).authority === 'target' && this.context.sharedTarget) {
      throw new StageError(
        'refused',
        'the target is shared with other shards of the plan: set `owns` of this shard before a workload goes beyond shadow',
      );
    }
    // Copies of the workload's keys would be writes through a second node.
    if (workload.writtenIn !== null && isLater(from, to) && this.context.sequencer.router.secondWriter === 'refuse') {
      throw new StageError(
        'refused',
        `the only writer of "${workload.name}" is ${workload.writtenIn}: in this region it stays ${from.stage}; point its clients at the proxy of ${workload.writtenIn}`,
      );
    }
    const frozen = this.context.authorities.frozen;
    if (frozen !== null && authorityMoves(from, to) && !force && !failover)
      throw new StageError('refused', `repairs are frozen: ${frozen}`, undefined, ACCEPT);
  }

  /**
   * Waits until the present suspects are repaired, and fails if one is not. Later suspects are repaired while the
   * commands are held.
   */
  async #requireClean(change: Change): Promise<void> {
    const { workload } = change;
    const { sequencer, suspects } = this.context;
    const now = suspects.generation;
    // A lost connection does not mean that the server is down.
    const looks = [sequencer.servers.source, sequencer.servers.target]
      .filter(({ up }) => !up)
      .map((server) => server.identify().catch(() => undefined));
    await Promise.race([Promise.all(looks), sleep(REPAIR_MS, undefined, { ref: false })]);
    await waitWhile(() => !this.#isWhole(workload) && this.#keysToRepair(change, now) > 0, REPAIR_MS);
    if (this.#isWhole(workload) || this.#suspectKeys(change, now) > 0) this.#assertClean(change);
  }

  /** Repairs the last suspects while the workload's commands are held. */
  async #repaired(change: Change): Promise<void> {
    const { workload } = change;
    await waitWhile(
      () => !this.#isWhole(workload) && (this.#keysToRepair(change) > 0 || this.context.adjudicator.asksOf(workload)),
      HELD_REPAIR_MS,
    );
  }

  #isWhole(workload: Workload): boolean {
    return this.context.suspects.workloads.of(workload) !== null;
  }

  #assertClean({ workload, from, to, leaving }: Change): void {
    const { suspects, adjudicator, redact } = this.context;
    const unclean = [...suspects.all()].filter(
      (suspect) => suspect.workload === workload && this.#isSuspect(suspect, leaving),
    );
    const isAsked = adjudicator.asksOf(workload);
    const suspect = suspects.workloads.of(workload);
    if (suspect === null && unclean.length === 0 && !isAsked) return;
    const keys = `${unclean.length} suspect ${unclean.length === 1 ? 'key' : 'keys'}`;
    const why = suspect ?? (unclean.length > 0 ? keys : 'a difference has no verdict yet');
    const list = unclean
      .slice(0, LISTED)
      .map(({ db, key, reason }) => `${redact(key)} (${reason}${db === 0 ? '' : `, database ${db}`})`);
    throw new StageError(
      'not-clean',
      `the mirror of "${workload.name}" is not clean: ${why}. Suspect keys are repaired while both servers answer: try again then. Only if their writes may be lost, move the workload with ${isLater(from, to) ? '--force-suspects' : '--force'}`,
      { suspect, keys: unclean.length, list },
      isLater(from, to) ? forceOf(workload.name, to) : forceBackOf(workload.name, to),
    );
  }

  #suspectKeys({ workload, leaving }: Change, upTo: number): number {
    return this.context.suspects.count(
      workload,
      (suspect) => suspect.generation <= upTo && this.#isSuspect(suspect, leaving),
    );
  }

  /**
   * Whether the mirror may lack the key. A write that a dead authority never answered was not acknowledged, so it does
   * not count.
   */
  #isSuspect(suspect: Suspect, leaving: Change['leaving']): boolean {
    const authority = this.#authorityLeft(suspect, leaving);
    return (
      authority !== null &&
      (suspect.acknowledged || (authority.up && !this.context.authorities.distrusts(authority.side)))
    );
  }

  /** Number of keys that waiting may repair: an authority that is down gives no copy. */
  #keysToRepair({ workload, leaving }: Change, upTo = Infinity): number {
    return this.context.suspects.count(
      workload,
      (suspect) =>
        suspect.generation <= upTo &&
        this.context.authorities.frozen === null &&
        this.#authorityLeft(suspect, leaving)?.up === true,
    );
  }

  /** The key's authority if it changes; null if it does not: then nothing is lost. */
  #authorityLeft({ key, workload }: Suspect, leaving: Change['leaving']): Server | null {
    const { authority } = workload.position.rule(key, 0, key.length);
    return leaving.includes(authority) ? this.context.sequencer.servers[authority] : null;
  }

  async #flip(change: Change, note: StageRequest['note'], admitting: Admitting | null): Promise<number> {
    const { workload, from, to, leaving, needsClean } = change;
    const { clients, sequencer } = this.context;
    const { router } = sequencer;
    const holdMs = this.holdMs();
    const channelsTo = channelsMove(from, to);
    let endHold: (() => void) | null = null;
    let carry = workload.perRegion ? new Carry(this.context, workload) : null;
    await carry?.prepare();
    try {
      for (const side of leaving) this.down(side);
      if (channelsTo !== null)
        await Promise.race([
          clients.subscribers.connect(workload, channelsTo),
          sleep(holdMs, undefined, { ref: false }),
        ]);
      const inTime = this.#deadline(
        `"${workload.name}" stays in ${from.stage}: the servers did not answer all commands in flight within ${holdMs} ms (limits.flipMs)`,
      );
      await this.#alone(inTime);
      const since = monotonicMs();
      endHold = router.hold(workload);
      clients.subscribers.moving = channelsTo !== null;
      await inTime(clients.interrupt(workload));
      await inTime(this.#settled(from, to));
      if (needsClean) await inTime(this.#repaired(change));
      router.setMoving(workload, true);
      await inTime(this.#drained());
      if (to.stage === 'dualwrite' && from.stage === 'off') await inTime(this.beginCopy(workload));
      if (needsClean) this.#assertClean(change);
      if (carry !== null) await inTime(carry.run());
      if (channelsTo !== null) await inTime(this.#moveSubscribers(workload, channelsTo, !needsClean));
      const dead = leaving.filter((side) => this.context.isDown(side));
      await this.context.persist(workload, from, to, note, admitting);
      router.move(workload, to);
      carry = null;
      // Clients that came meanwhile wait for a connection to the server.
      for (const side of dead) this.context.abandon(side);
      await inTime(clients.subscribers.commit()).catch(() => undefined);
      if (to.stage === 'off') this.context.suspects.workloads.clear(workload);
      for (const side of dead)
        this.context.suspectWorkloads.mark(
          workload,
          `the ${side} was down during a stage change: its keys are verified when it answers again`,
        );
      this.context.moved();
      return monotonicMs() - since;
    } catch (problem) {
      await carry?.undo();
      throw problem;
    } finally {
      endHold?.();
      router.setMoving(workload, false);
      clients.subscribers.end();
      clients.waitingRoom.open();
    }
  }

  /** Moves the workload's subscribers. Nothing is being published, so they get no message twice, and miss none. */
  async #moveSubscribers(workload: Workload, to: Side, force: boolean): Promise<void> {
    await this.context.clients.subscribers.prepare(workload, to, force).catch((problem: Error) => {
      throw new StageError('refused', `the ${to} refuses a client's subscriptions: ${problem.message}`);
    });
  }

  /** @returns a function that makes a promise reject with code `deadline` when the time of the flip is over */
  #deadline(message: string): <T>(promise: Promise<T>) => Promise<T> {
    const late = sleep(this.holdMs(), undefined, { ref: false }).then(() =>
      Promise.reject(new StageError('deadline', message)),
    );
    late.catch(() => undefined);
    return (promise) => Promise.race([promise, late]);
  }

  /** A dead mirror confirms nothing, and is the authority of no key after the change. */
  #drained(): Promise<void> {
    return drained(
      this.context.sequencer,
      SIDES.filter((side) => !this.#leaving.includes(side) || !this.context.isDown(side)),
    );
  }

  /** Waits while a command runs alone: the command must not see two stages. */
  async #alone(inTime: (promise: Promise<void>) => Promise<void>): Promise<void> {
    const { sequencer, clients } = this.context;
    while (sequencer.blocked) await inTime(new Promise<void>((resolve) => clients.waitingRoom.onceOpen(resolve)));
  }

  /**
   * Waits until lost connections are closed. It does not wait for a server that is down: then the commands are lost, or
   * the proxy sees to them when the server is back.
   */
  async #untilAllClosed(server: Server): Promise<void> {
    if (this.context.isDown(server.side)) return;
    if (!this.context.adjudicator.allClosed(server)) await server.identify().catch(() => undefined);
    while (server.up && !this.context.adjudicator.allClosed(server)) await sleep(5);
  }

  /** Waits until everything in flight is confirmed, and the next authority answers. */
  async #settled(from: StagePoint, to: StagePoint): Promise<void> {
    const { sequencer } = this.context;
    await this.#drained();
    for (const server of [sequencer.servers.source, sequencer.servers.target]) await this.#untilAllClosed(server);
    for (const side of authorityLeft(to, from)) {
      await sequencer.servers[side].identify().catch((problem: Error) => {
        throw new StageError(
          'refused',
          `the ${side} cannot be reached (${problem.message}): start it before clients are moved to it`,
        );
      });
    }
  }
}

const pointOf = ({ stage, percent }: StagePoint): StagePoint => ({ stage, percent });

const pointAt = (stage: Stage, percent = 100): StagePoint => ({ stage, percent: stage === 'live' ? percent : 100 });

/** Resolves when the condition is no longer true, or the time is over. */
async function waitWhile(condition: () => boolean, ms: number): Promise<void> {
  const deadline = monotonicMs() + ms;
  while (condition() && monotonicMs() < deadline) await sleep(5);
}

/**
 * Resolves when everything that is in flight now is answered by the authorities, and confirmed by the mirrors of
 * `confirming`.
 */
export async function drained(sequencer: Sequencer, confirming: readonly Side[] = SIDES): Promise<void> {
  await Promise.all(SIDES.map((side) => sequencer.lanes[side].quiet()));
  await Promise.all(
    confirming.map((side) => {
      sequencer.mirrors[side].flush();
      return new Promise<void>((resolve) => sequencer.mirrors[side].afterAppended(resolve));
    }),
  );
}
