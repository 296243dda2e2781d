/**
 * One order for everything that happens to a key.
 *
 *   session     ─┐                               ┌─▶ client
 *   copier      ─┼─▶ submit ─▶ lane ─▶ answered ─┴─▶ Effects ─▶ mirror.append ─▶ Confirmations
 *   adjudicator ─┘         (authority)             ScriptEffects    (mirror)
 *
 * The mirror gets effects in the order of the authority's replies, so it sees exactly the authority's order.
 *
 * Room: pipeline: one order for every operation on a key: lanes, key locks, the mirror's lane.
 * Called by: suspects, session, copy, stages, health, otel, shard.
 * Calls: io, resp, route, command, compare, telemetry, storage, upstream, script.
 */
import { Changes } from '../script/changed-keys.js';
import type { CommandSpec, CommandTable } from '../command/table.js';
import type { Router } from '../route/router.js';
import { otherSide, SIDES, type Side } from '../route/stage.js';
import type { Journal } from '../storage/journal.js';
import type { Counters } from '../telemetry/workload-counters.js';
import { FrameKeys } from '../script/frame-keys.js';
import { Latencies } from '../io/latency.js';
import type { Authorities } from './authorities.js';
import { Confirmations } from './confirmations.js';
import { Effects } from './effects.js';
import { PROXY_FAILED, type Failures } from './failures.js';
import type { KeyLocks } from './key-locks.js';
import { allLongCommands, type Lane, type LaneEvents } from './lane.js';
import { Lanes } from './lanes.js';
import { MirrorLane, type MirrorLimits } from './mirror.js';
import type { Observer } from './observer.js';
import { READ, WRITE, type Carrier, type Operation } from './operation.js';
import { argumentCount } from '../resp/decode.js';
import { ScriptEffects } from './script-effects.js';
import type { Scripts } from '../script/catalog.js';
import type { Server } from '../upstream/server.js';
import { Swaps } from './swaps.js';
import type { Turn } from '../io/turn.js';
import {
  REPLY_LOST,
  type ExpiryEdges,
  type FieldTtls,
  type SuspectKeys,
  type Suspicion,
  type Verdicts,
} from './suspicion.js';
import { Wakeup } from './wakeup.js';

/** How late a server may answer BUSY when it should. */
const BUSY_LATE_MS = 2_000;

export interface SequencerOptions<S extends Suspicion = Suspicion> {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly router: Router;
  readonly counters: Counters;
  readonly table: CommandTable;
  readonly scripts: Scripts;
  /** Makes the part that compares and suspects. Called once, before anything is sent. */
  readonly suspicion: (sequencer: Sequencer) => S;
  readonly journal: Pick<Journal, 'noteKey'>;
  readonly authorities: Pick<Authorities, 'distrusts'>;
  readonly limits: MirrorLimits;
  readonly turn: Turn;
  readonly failures: Failures;
  /** Called when the mirror of one side is connected, or disconnected. */
  readonly mirrorChanged: (side: Side, up: boolean) => void;
  /** Called when the mirror of one side refuses effects in a database (`why`), or accepts them again (null). */
  readonly mirrorDatabase: (side: Side, db: number, why: string | null) => void;
  /** Null if no traces are taken. */
  readonly observer: Observer | null;
}

export class Sequencer<S extends Suspicion = Suspicion> implements LaneEvents {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly router: Router;
  readonly counters: Counters;
  readonly table: CommandTable;
  readonly scripts: Scripts;
  readonly keys: FrameKeys;
  readonly suspects: SuspectKeys;
  readonly turn: Turn;
  readonly journal: SequencerOptions['journal'];
  readonly authorities: SequencerOptions['authorities'];
  readonly failures: Failures;
  /** The lanes to the servers as authorities. */
  readonly lanes: Readonly<Record<Side, Lanes>>;
  /** The keys that scripts change at the servers. */
  readonly changes: Readonly<Record<Side, Changes>>;
  /** The lanes to the servers as mirrors. */
  readonly mirrors: Readonly<Record<Side, MirrorLane>>;
  readonly latencies: Readonly<Record<Side, Latencies>>;
  readonly effects: Effects;
  readonly scriptEffects: ScriptEffects;
  /** The part that compares and suspects. */
  readonly suspicion: S;
  readonly expiry: ExpiryEdges;
  readonly fieldTtls: FieldTtls | null;
  readonly verdicts: Verdicts;
  readonly swaps = new Swaps();
  readonly #confirmations: Readonly<Record<Side, Confirmations>>;
  #blocked = false;

  constructor(options: SequencerOptions<S>) {
    const { servers, router, turn, observer } = options;
    this.servers = servers;
    this.router = router;
    this.counters = options.counters;
    this.table = options.table;
    this.scripts = options.scripts;
    this.turn = turn;
    this.journal = options.journal;
    this.authorities = options.authorities;
    this.failures = options.failures;
    this.keys = new FrameKeys(options.table, options.scripts);
    const count = router.workloads.length;
    this.latencies = { source: new Latencies(count), target: new Latencies(count) };
    // Without an observer, commands are submitted directly.
    if (observer !== null) this.submit = (operation, lane) => observer.submit(operation, lane);
    const events = observer?.ofLanes(this) ?? this;
    const lanes = (side: Side): Lanes => new Lanes(servers[side], this.latencies[side], events, turn, router.default);
    this.lanes = { source: lanes('source'), target: lanes('target') };
    this.changes = { source: new Changes(servers.source), target: new Changes(servers.target) };
    this.scriptEffects = new ScriptEffects(this);
    this.effects = new Effects(this);
    const confirmations = (side: Side): Confirmations =>
      new Confirmations(
        this,
        (up) => {
          // A SWAPDB that was lost with its connection may have run until the connection was seen to be closed.
          if (up) this.lanes[side].selectAgain();
          options.mirrorChanged(side, up);
        },
        (db, why) => options.mirrorDatabase(side, db, why),
      );
    this.#confirmations = { source: confirmations('source'), target: confirmations('target') };
    const mirror = (side: Side): MirrorLane =>
      new MirrorLane(
        servers[side],
        router.default,
        options.limits,
        this.latencies[side],
        observer?.ofMirror(this.#confirmations[side]) ?? this.#confirmations[side],
        turn,
      );
    this.mirrors = { source: mirror('source'), target: mirror('target') };
    this.suspicion = options.suspicion(this);
    const { suspects, verdicts, expiry, fieldTtls } = this.suspicion;
    this.suspects = suspects;
    this.verdicts = verdicts;
    this.expiry = expiry;
    this.fieldTtls = fieldTtls;
  }

  /** Effects dropped because the queue was full, since the start; their keys are suspects. */
  get dropped(): number {
    return this.#confirmations.source.droppedEffects + this.#confirmations.target.droppedEffects;
  }

  // ── exclusive commands ──────────────────────────────────────────────────────────────────────────────────────────

  /** Whether no new command, and no copy, may start: an exclusive command runs, or is about to. */
  get blocked(): boolean {
    return this.#blocked;
  }

  bar(): void {
    this.#blocked = true;
  }

  /** Lets commands and copies start again. */
  unbar(): void {
    this.#blocked = false;
  }

  // ── the order ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Sends a command to an authority; its place in the order is that of its reply. */
  submit(operation: Operation, lane: Carrier): void {
    lane.submit(operation);
  }

  /** Whether the authority's mirror knows the command. */
  mirrorKnows(authority: Side, spec: CommandSpec): boolean {
    return this.servers[otherSide(authority)].traits.supported.knows(spec);
  }

  /** Notes the keys that the operation holds while there are several lanes, and the clients that it may wake. */
  hold(operation: Operation, lane: Carrier, keys: readonly string[], writes = operation.follow === WRITE): void {
    const locks = this.locksOf(lane, operation.db);
    if (!locks.active) return;
    if (locks.tracking) {
      operation.held = keys;
      operation.holdsToWrite = writes;
      locks.hold(lane, keys, writes);
    }
    if (!writes || operation.spec?.takesOnly === true) return;
    const woken = locks.wokenBy(keys);
    if (woken.size > 0) operation.wakeup = new Wakeup(locks, lane.server, keys, woken, elementsOf(operation));
  }

  /** The locks of a database at the lane's server. */
  locksOf(lane: Carrier, db: number): KeyLocks {
    return this.lanes[lane.server.side].locks(db);
  }

  /** Returns a private lane for the next client. */
  giveBack(lane: Lane): void {
    this.lanes[lane.server.side].giveBack(lane);
  }

  #release(operation: Operation): void {
    this.locksOf(operation.lane!, operation.db).release(operation.held!, operation.holdsToWrite);
    operation.held = null;
  }

  // ── the authority's side ────────────────────────────────────────────────────────────────────────────────────

  answered(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void {
    operation.answeredAt = now;
    try {
      if (operation.held !== null) this.#release(operation);
      if (operation.follow === READ) this.effects.read(operation, buffer, start, end);
      else if (operation.follow === WRITE) this.effects.write(operation, buffer, start, end);
      operation.sink?.answered(operation, buffer, start, end);
      operation.wakeup?.answered(buffer, start);
    } catch (thrown) {
      this.#lost(operation, this.failures.at(operation, thrown), PROXY_FAILED);
    }
  }

  lost(lane: Lane, operations: readonly Operation[], reason: Error): void {
    const lanes = this.lanes[lane.server.side];
    lanes.forget(lane);
    // The server may still run commands in its receive buffer. Until the connection is seen to be closed, their keys
    // cannot be repaired.
    if (operations.length > 0) this.verdicts.awaitClosed(lane);
    for (const operation of operations) this.#lost(operation, reason, REPLY_LOST);
  }

  /** It is unknown what the operation did. Each step is taken, even if another one throws. */
  #lost(operation: Operation, reason: Error, why: string): void {
    const step = (work: () => void): void => {
      try {
        work();
      } catch (thrown) {
        this.failures.at(operation, thrown);
      }
    };
    if (operation.held !== null) step(() => this.#release(operation));
    step(() => operation.wakeup?.lost());
    step(() => this.scriptEffects.dropSpan(operation));
    if (operation.follow === WRITE) step(() => this.suspects.operation(operation, why));
    step(() => operation.sink?.lost(operation, reason));
  }

  /** Databases were swapped at the server: every connection with a selected database selects it again. */
  selectAgain(side: Side): void {
    this.lanes[side].selectAgain();
    this.mirrors[side].selectAgain();
  }

  /** The mirror of the operation: the server that is not its authority. */
  mirrorOf(operation: Operation): MirrorLane {
    return this.mirrors[otherSide(operation.lane!.server.side)];
  }

  /**
   * Whether commands in flight explain why the server answers no command. It answers BUSY only once a script has run
   * for `busyAfterMs`, and nothing while it works on a command with very many arguments. It runs them one after the
   * other, and the first of them no earlier than its last reply.
   * @param now in ms of the monotonic clock
   */
  mayBeBusy(side: Side, now: number): boolean {
    const long = allLongCommands([this.lanes[side].longCommands, this.mirrors[side].longCommands]);
    const { scripts, scriptSince, largeMs, largeSince } = long;
    const scriptMs = scripts === 0 ? 0 : scripts * this.servers[side].busyAfterMs + BUSY_LATE_MS;
    const mayLastMs = scriptMs + largeMs;
    const since = Math.max(Math.min(scriptSince, largeSince), this.repliedAt(side));
    return mayLastMs > 0 && now - since < mayLastMs;
  }

  /** When the server last replied to a command or an effect, in ms of the monotonic clock; -Infinity for never. */
  repliedAt(side: Side): number {
    return Math.max(this.lanes[side].repliedAt, this.mirrors[side].repliedAt);
  }

  /** Whether every lost connection is closed at its server, so that it can change nothing more. */
  get allClosed(): boolean {
    return this.verdicts.allClosed();
  }

  /** Whether everything is answered by the authorities and confirmed by the mirrors. */
  get isEmpty(): boolean {
    return SIDES.every((side) => this.lanes[side].isEmpty && this.mirrors[side].isEmpty);
  }

  /** The authorities are sent nothing from here on. */
  closeLanes(): void {
    for (const side of SIDES) this.lanes[side].close();
  }

  /** Nothing is sent from here on. */
  close(): void {
    this.closeLanes();
    for (const side of SIDES) {
      this.changes[side].close();
      this.mirrors[side].close();
    }
  }
}

/** How many elements a push gives a list; 0 for any other command. */
const elementsOf = ({ spec, frame, start }: Operation): number =>
  spec !== undefined && PUSHES.has(spec.name) ? argumentCount(frame, start) - 2 : 0;
const PUSHES: ReadonlySet<string> = new Set(['lpush', 'rpush', 'lpushx', 'rpushx']);
