/**
 * One order for everything that happens to a key.
 *
 *   session ─┐                       ┌─▶ client
 *   copier  ─┼─▶ submit ─▶ lane ─▶ answered ─▶ follow ─▶ effect ─▶ mirror.append ─▶ judge
 *   judge   ─┘            (authority)                              (mirror)
 *
 * The mirror is told in the order of the authority's replies, so it sees exactly the authority's order.
 *
 * Room: pipeline: one order for every operation on a key: lanes, key locks, the mirror's lane.
 * Called by: suspects, session, copy, stages, health, shard.
 * Calls: io, resp, route, command, compare, telemetry, storage, upstream, script.
 */
import { Changes, type Span } from '../script/changed-keys.js';
import { Command } from '../command/command.js';
import { copied, type Effect } from '../command/effect.js';
import type { CommandSpec, CommandTable } from '../command/table.js';
import { argumentCount, argumentsOf, decodeReply, type Reply } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import { countUnsupported, increment, type Router, type Workload } from '../route/router.js';
import { otherSide, type Side } from '../route/stage.js';
import type { Journal } from '../storage/journal.js';
import { FrameKeys } from '../script/frame-keys.js';
import { Latencies, LatencyRecorder } from '../io/latency.js';
import type { Lane, LaneEvents } from './lane.js';
import { Lanes } from './lanes.js';
import { MirrorLane, type MirrorEvents, type MirrorLimits } from './mirror.js';
import { ACCEPT, Operation, READ, type Carrier, TTL_TOLERANCE_MS, WRITE } from './operation.js';
import { Script, type Scripts } from '../script/catalog.js';
import { isAboutData, isNoScript, mayHaveWritten } from '../upstream/refusals.js';
import type { Server } from '../upstream/server.js';
import type { Turn } from '../io/turn.js';
import { REPLY_LOST, type ExpiryEdges, type SuspectKeys, type Suspicion, type Verdicts } from './suspicion.js';
import { Wakeup } from './wakeup.js';

export interface SequencerOptions {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly router: Router;
  readonly table: CommandTable;
  readonly scripts: Scripts;
  /** Makes what judges this order; called once, before anything is sent. */
  readonly suspicion: (sequencer: Sequencer) => Suspicion;
  readonly journal: Pick<Journal, 'noteKey'>;
  readonly limits: MirrorLimits;
  readonly turn: Turn;
  /** Called when the mirror of one side is connected, or disconnected. */
  readonly mirrorChanged: (side: Side, up: boolean) => void;
}

const MINUS = '-'.charCodeAt(0);

export class Sequencer implements LaneEvents {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly router: Router;
  readonly table: CommandTable;
  readonly scripts: Scripts;
  readonly keys: FrameKeys;
  readonly suspects: SuspectKeys;
  readonly turn: Turn;
  readonly journal: SequencerOptions['journal'];
  /** To the servers as authorities. */
  readonly lanes: Readonly<Record<Side, Lanes>>;
  /** What scripts change at the servers. */
  readonly changes: Readonly<Record<Side, Changes>>;
  /** To the servers as mirrors. */
  readonly mirrors: Readonly<Record<Side, MirrorLane>>;
  readonly latencies: Readonly<Record<Side, Latencies>>;
  /** Effects given up for want of room; their keys are suspects. */
  dropped = 0;
  /** While set, no new command starts: an exclusive command runs. */
  barred = false;
  /** While set, nothing is copied either. */
  passing = false;
  readonly expiry: ExpiryEdges;
  readonly #verdicts: Verdicts;
  readonly #mirrorChanged: SequencerOptions['mirrorChanged'];

  constructor(options: SequencerOptions) {
    const { servers, router, turn } = options;
    this.servers = servers;
    this.router = router;
    this.table = options.table;
    this.scripts = options.scripts;
    this.turn = turn;
    this.journal = options.journal;
    this.#mirrorChanged = options.mirrorChanged;
    this.keys = new FrameKeys(options.table, options.scripts);
    this.latencies = { source: new Latencies(), target: new Latencies() };
    const lanes = (side: Side): Lanes => new Lanes(servers[side], this.latencies[side], this, turn, router.default);
    this.lanes = { source: lanes('source'), target: lanes('target') };
    this.changes = { source: new Changes(servers.source), target: new Changes(servers.target) };
    const mirror = (side: Side): MirrorLane =>
      new MirrorLane(
        servers[side],
        router.default,
        options.limits,
        new LatencyRecorder(this.latencies[side]),
        this.#mirrorEvents(side),
        turn,
      );
    this.mirrors = { source: mirror('source'), target: mirror('target') };
    const { suspects, verdicts, expiry } = options.suspicion(this);
    this.suspects = suspects;
    this.#verdicts = verdicts;
    this.expiry = expiry;
  }

  /** Sends a command to an authority; its place in the order is that of its reply. */
  submit(operation: Operation, lane: Carrier): void {
    lane.submit(operation);
  }

  /** Whether the mirror of that authority knows the command. */
  mirrorKnows(authority: Side, spec: CommandSpec): boolean {
    return this.servers[otherSide(authority)].supported.knows(spec);
  }

  /** The second read that the command's effect needs; null where it needs none. */
  probeFor(operation: Operation): Buffer | null {
    const probe = operation.spec!.effect?.probe ?? null;
    return probe && probe(operation.command.args);
  }

  /** Tells the mirror what a command did whose second read is answered now; `probe` is null where that was refused. */
  followProbed(operation: Operation, probe: Reply | null): void {
    if (operation.reply[operation.replyStart] === MINUS) {
      operation.workload.counters.refused++;
      return;
    }
    const { reply } = decodeReply(operation.reply, operation.replyStart);
    const effect = operation.spec!.effect!;
    this.follow(
      operation,
      operation.mustCopy ? 'copy' : effect.of(operation.command.args, reply, operation.protocol, probe ?? undefined),
    );
  }

  /**
   * Notes that the operation holds these keys in the order of several lanes, if there are several, and whom it may
   * wake.
   */
  hold(operation: Operation, lane: Carrier, keys: readonly string[], writes = operation.follow === WRITE): void {
    const order = this.lanes[lane.server.side].order(operation.db);
    if (!order.active) return;
    if (order.tracking) {
      operation.held = keys;
      operation.holdsToWrite = writes;
      order.hold(lane, keys, writes);
    }
    if (!writes || operation.spec?.takesOnly === true) return;
    const woken = order.wokenBy(keys);
    if (woken.size > 0) operation.waking = new Wakeup(order, lane.server, keys, woken);
  }

  #release(operation: Operation): void {
    this.lanes[operation.lane!.server.side].order(operation.db).release(operation.held!, operation.holdsToWrite);
    operation.held = null;
  }

  // ── the authority's side ────────────────────────────────────────────────────────────────────────────────────

  answered(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void {
    operation.answeredAt = now;
    if (operation.held !== null) this.#release(operation);
    if (operation.follow === READ) this.#followRead(operation, buffer, start, end);
    else if (operation.follow === WRITE) this.#followWrite(operation, buffer, start, end);
    operation.sink?.answered(operation, buffer, start, end);
    operation.waking?.answered();
  }

  lost(lane: Lane, operations: readonly Operation[], reason: Error): void {
    const lanes = this.lanes[lane.server.side];
    lanes.forget(lane);
    // The server may still run what lies in its receive buffer: until it is seen gone, its keys cannot be healed.
    if (operations.length > 0) this.#verdicts.bury(lane.server, lane.clientId);
    for (const operation of operations) {
      if (operation.held !== null) this.#release(operation);
      operation.waking?.lost();
      this.dropSpan(operation);
      if (operation.follow === WRITE) this.suspects.operation(operation, REPLY_LOST);
      operation.sink?.lost(operation, reason);
    }
  }

  #followRead(operation: Operation, buffer: Buffer, start: number, end: number): void {
    // A user who may not, or a server that cannot: that says nothing about the data.
    if (buffer[start] === MINUS && !isAboutData(buffer, start)) return;
    operation.reply = buffer;
    operation.replyStart = start;
    operation.replyEnd = end;
    this.mirrorOf(operation).append(operation);
  }

  #followWrite(operation: Operation, buffer: Buffer, start: number, end: number): void {
    const spec = operation.spec!;
    if (buffer[start] === MINUS) {
      operation.workload.counters.refused++;
      if (spec.handling === 'script' && isNoScript(buffer, start))
        this.scripts.unknownTo(operation.lane!.server, operation.command.args);
      if (spec.handling !== 'script') return;
      if (!mayHaveWritten(buffer, start, end)) this.dropSpan(operation);
      else if (operation.span !== null) this.#followHidden(operation, 'script-failed');
      else this.suspects.script(operation.db, operation.command, 'script-failed');
      return;
    }
    operation.reply = buffer;
    operation.replyStart = start;
    operation.replyEnd = end;
    const derived = spec.derives && this.suspects.isReadBy(operation.db, operation.frame, operation.start);
    if (derived || operation.mustCopy) {
      if (operation.span !== null) this.#followHidden(operation, derived ? 'derived' : 'copy');
      else this.suspects.operation(operation, derived ? 'derived' : 'copy');
      return;
    }
    if (spec.handling === 'script') {
      this.#followScript(operation);
      return;
    }
    const rewrite = spec.effect;
    if (rewrite === null || argumentCount(operation.frame, operation.start) < rewrite.least) {
      this.mirrorOf(operation).append(operation);
      return;
    }
    const { reply } = decodeReply(buffer, start);
    if (rewrite.form !== null) this.noteReply(rewrite.form(reply), operation.workload);
    this.follow(operation, rewrite.of(operation.command.args, reply, operation.protocol));
  }

  /** @param form what the authority's reply shows that KeyDB does not support; null where that is nothing */
  noteReply(form: string | null, { counters }: Workload): void {
    const { source, target } = this.servers;
    if (form !== null && source.isKeydb !== target.isKeydb)
      countUnsupported(counters, form, source.isKeydb ? 'source' : 'target', false);
  }

  /** Tells the mirror the effect of an operation whose `reply` is set. */
  follow(operation: Operation, effect: Effect): void {
    if (effect === null) return;
    if (effect === 'verbatim') {
      this.mirrorOf(operation).append(operation);
      return;
    }
    if (effect === 'copy') {
      this.suspects.operation(operation, 'copy');
      return;
    }
    const { reply: authority, replyStart, replyEnd } = operation;
    for (const [i, { frame, reply }] of effect.entries()) {
      const follower = i === 0 ? operation : this.#companion(operation);
      follower.become(frame);
      if (reply === null) {
        follower.check = ACCEPT;
        follower.replyEnd = follower.replyStart;
      } else {
        const same = reply === 'same';
        follower.reply = same ? authority : reply;
        follower.replyStart = same ? replyStart : 0;
        follower.replyEnd = same ? replyEnd : reply.length;
      }
    }
    // Only now: the first one's `frame` was needed above.
    this.mirrorOf(operation).append(operation);
    for (const companion of this.#companions.splice(0)) this.mirrorOf(companion).append(companion);
  }

  /**
   * Tells the mirror what a command took that blocked on a private lane; `operation` is the command, `reply` the
   * authority's. Where the order among those that were woken together is not known, only what comes to the same in any.
   */
  followWoken(operation: Operation, reply: Buffer, ordered: boolean): void {
    operation.reply = reply;
    operation.replyEnd = reply.length;
    const args = operation.command.args;
    const told = decodeReply(reply).reply;
    const spec = operation.spec!;
    const derived = spec.derives && this.suspects.isReadBy(operation.db, operation.frame, operation.start);
    if (derived || operation.mustCopy) this.suspects.operation(operation, derived ? 'derived' : 'copy');
    else {
      const { of, ofWoken } = spec.effect!;
      this.follow(operation, (ordered ? of : (ofWoken ?? copied))(args, told, operation.protocol));
    }
  }

  readonly #companions: Operation[] = [];

  #companion(operation: Operation): Operation {
    const companion = new Operation(
      operation.frame,
      operation.start,
      operation.end,
      null,
      operation.spec,
      operation.workload,
      operation.db,
      operation.protocol,
      WRITE,
    );
    companion.lane = operation.lane;
    companion.answeredAt = operation.answeredAt;
    companion.submittedAt = operation.submittedAt;
    companion.stalledMs = operation.stalledMs;
    companion.asked = operation.original;
    this.#companions.push(companion);
    return companion;
  }

  /** A deterministic script is repeated; of any other only the keys' state tells what it did. */
  #followScript(operation: Operation): void {
    if (this.repeatsScript(operation, operation.command.args)) {
      this.dropSpan(operation);
      this.mirrorOf(operation).append(operation);
    } else if (operation.span !== null) this.#followHidden(operation, 'script');
    else this.suspects.script(operation.db, operation.command, 'script');
  }

  /**
   * Whether the script in `frame` may write what neither its declared keys nor its text tell, and the authority can.
   */
  hidesChanges(frame: Buffer, start: number): boolean {
    const args = argumentsOf(frame, start);
    const routine = this.scripts.find(args);
    // A digest whose text was never seen, or a function that the server does not have.
    if (routine === undefined)
      return args[0].toString('latin1').toLowerCase().startsWith('evalsha') && args[2]?.toString('latin1') !== '0';
    if (!routine.staysInDatabase(args) || routine.writesNothing(this.table) || !routine.callsCommands) return false;
    const { writes } = this.scripts.undeclared(args, this.table);
    return writes === null || (writes.length > 0 && routine instanceof Script && args[2].toString('latin1') !== '0');
  }

  /** Notes what changes at the operation's authority from now on. */
  beginSpan(operation: Operation, authority: Side): void {
    operation.span = this.changes[authority].begin(operation.db);
  }

  /** Nothing has run. */
  dropSpan(operation: Operation): void {
    if (operation.span !== null) this.changes[operation.lane!.server.side].drop(operation.span);
    operation.span = null;
  }

  /**
   * The keys that changed at the authority since the span began are in doubt; until they are known, the mirror is told
   * nothing more. Where the server does not name them, `otherwise` is called.
   */
  followChanges(operation: Operation, reason: string, otherwise: () => void): void {
    const { db, lane } = operation;
    const span: Span = operation.span!;
    operation.span = null;
    const open = this.mirrorOf(operation).gate();
    const { side } = lane!.server;
    this.changes[side].end(span, (keys) => {
      const order = this.lanes[side].order(db);
      for (const waiter of keys === null ? order.blocked() : order.wokenBy(keys)) waiter.untold = true;
      if (keys === null) otherwise();
      else for (const key of keys) this.suspects.key(db, Buffer.from(key, 'latin1'), reason);
      open();
    });
  }

  /** Likewise for a script that ran by itself. */
  #followHidden(operation: Operation, reason: string): void {
    const asked = new Command(Buffer.from(operation.frame.subarray(operation.start, operation.end)));
    this.followChanges(operation, reason, () => this.suspects.script(operation.db, asked, reason));
  }

  /**
   * Whether the script of this EVAL or EVALSHA, which ran on the operation's lane, can be repeated on the mirror;
   * if so, the mirror is given its text where it lacks it. The mirror runs it as the kit's user, who may do everything:
   * so it is repeated only for users who may, too.
   */
  repeatsScript(operation: Operation, args: readonly Buffer[]): boolean {
    const mirror = this.mirrorOf(operation);
    const { server, identity } = operation.lane!;
    if (!server.privileges.isUnrestricted(identity.credentials)) return false;
    const script = this.scripts.find(args);
    if (
      !(script instanceof Script) ||
      !script.repeatable(mirror.server.commands) ||
      script.endsKeydb(args.length) ||
      (script.setsMoment && mirror.clockAheadMs !== 0)
    )
      return false;
    if (script.writesNumbers && server.writesShortNumbers !== mirror.server.writesShortNumbers) return false;
    // Of keys that it does not declare, beside others that it does, the order of several lanes is not known.
    const { reads, writes } = this.scripts.undeclared(args, this.table);
    if (reads === null || writes === null || (reads.length + writes.length > 0 && args[2].toString('latin1') !== '0'))
      return false;
    const byDigest = args[0].length >= 'evalsha'.length;
    const known = this.scripts.knownTo(mirror.server, script);
    // Before it is appended: a load that finds no room is forgotten again.
    this.scripts.loadedOn(mirror.server, script);
    if (byDigest && !known) {
      const frame = encodeCommand(['SCRIPT', 'LOAD', script.body]);
      const load = new Operation(
        frame,
        0,
        frame.length,
        null,
        operation.spec,
        operation.workload,
        operation.db,
        operation.protocol,
        WRITE,
      );
      load.lane = operation.lane;
      load.answeredAt = operation.answeredAt;
      load.check = ACCEPT;
      load.asked = new Command(encodeCommand(args));
      mirror.append(load);
      return this.scripts.knownTo(mirror.server, script);
    }
    return true;
  }

  /** Databases were swapped at the server: every connection that stands in one selects it anew. */
  selectAgain(side: Side): void {
    this.lanes[side].selectAgain();
    this.mirrors[side].selectAgain();
  }

  /** Where the operation's effect goes: the server that is not its authority. */
  mirrorOf(operation: Operation): MirrorLane {
    return this.mirrors[otherSide(operation.lane!.server.side)];
  }

  /** Whether no lost connection can still change anything. */
  get buried(): boolean {
    return this.#verdicts.buried();
  }

  /** Whether every effect is confirmed and no key in doubt. */
  get isCalm(): boolean {
    return [this.mirrors.source, this.mirrors.target].every((mirror) => mirror.isEmpty) && !this.suspects.any;
  }

  // ── the mirror's side ───────────────────────────────────────────────────────────────────────────────────────

  #mirrorEvents(side: Side): MirrorEvents {
    return {
      matched: (operation, now) => this.#matched(operation, now),
      differs: (operation, buffer, start, end, now) => {
        // A key that may just have expired on one side is in doubt before its replies are judged.
        if (operation.follow === WRITE) this.expiry.confirmed(operation);
        this.#verdicts.differs(operation, buffer, start, end, now);
        if (operation.follow === WRITE) this.#doubtOutcome(operation, now);
      },
      accepted: (operation, now) => this.#accepted(operation, now),
      unconfirmed: (operation) => this.#unconfirmed(operation),
      dropped: (operation) => this.#drop(operation),
      connected: (up) => {
        // A SWAPDB that was lost with the connection may have run until it was seen gone.
        if (up) this.lanes[side].selectAgain();
        this.#mirrorChanged(side, up);
      },
    };
  }

  #matched(operation: Operation, now: number): void {
    const counters = operation.workload.counters;
    counters.compared++;
    counters.matched++;
    this.#accepted(operation, now);
  }

  #accepted(operation: Operation, now: number): void {
    if (operation.follow !== WRITE) return;
    this.#doubtOutcome(operation, now);
    this.expiry.confirmed(operation);
  }

  /** What a confirmed write may have left behind: a time to live that is off, or what it took from a suspect. */
  #doubtOutcome(operation: Operation, now: number): void {
    if (now - operation.answeredAt + operation.stalledMs > TTL_TOLERANCE_MS) this.#verdicts.late(operation, now);
    if (this.suspects.any) this.suspects.spread(operation);
  }

  #unconfirmed(operation: Operation): void {
    if (operation.follow === WRITE) this.#doubtEffect(operation, 'unconfirmed');
    else increment(operation.workload.counters.inconclusive, 'mirror-lost');
  }

  /** An effect may not have reached the mirror; the text of a script neither. */
  #doubtEffect(operation: Operation, reason: string): void {
    const { spec } = operation;
    if (spec?.handling === 'script' || spec?.aboutCode === true) this.scripts.forget(this.mirrorOf(operation).server);
    if (spec?.name === 'swapdb') this.expiry.swapEnded();
    if (spec?.handling === 'publish') increment(operation.workload.counters.inconclusive, 'publish-lost');
    else this.suspects.operation(operation, reason);
  }

  #drop(operation: Operation): void {
    this.dropped++;
    if (operation.follow === WRITE) this.#doubtEffect(operation, 'queue-full');
    else increment(operation.workload.counters.inconclusive, 'queue-full');
    operation.confirmed?.(null);
  }

  close(): void {
    for (const side of ['source', 'target'] as const) {
      this.lanes[side].close();
      this.changes[side].close();
      this.mirrors[side].close();
    }
  }
}
