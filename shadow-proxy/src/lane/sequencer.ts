/**
 * One order for everything that happens to a key.
 *
 *   session ─┐                       ┌─▶ client
 *   copier  ─┼─▶ submit ─▶ lane ─▶ answered ─▶ follow ─▶ effect ─▶ mirror.append ─▶ judge
 *   judge   ─┘            (authority)                              (mirror)
 *
 * The mirror is told in the order of the authority's replies, so it sees exactly the authority's order.
 */
import { Changes, type Span } from './changes.js';
import { effectOf, probeOf, removalOf, type Effect, type EffectEntry } from '../command/effects.js';
import { keysOf, KeyList, READS, UNKNOWN_KEYS, WRITES } from '../command/keys.js';
import type { CommandSpec, CommandTable } from '../command/table.js';
import { argumentCount, argumentsOf, decodeReply, locateArguments, type Reply } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import { increment, type Router, type Workload } from '../route/router.js';
import { otherSide, type Side } from '../route/stage.js';
import type { Journal } from '../record/journal.js';
import { keyId, REPLY_LOST, type Suspect, type Suspects } from '../record/suspects.js';
import { Expiry } from './expiry.js';
import type { Judge } from './judge.js';
import { Latencies, LatencyRecorder } from './latency.js';
import type { Lane, LaneEvents } from './lane.js';
import { Lanes } from './lanes.js';
import { MirrorLane, type MirrorEvents, type MirrorLimits } from './mirror.js';
import { ACCEPT, askedFrame, Operation, READ, TTL_TOLERANCE_MS, WRITE } from './operation.js';
import { Script, type Scripts } from './scripts.js';
import { isAboutData, isNoScript, mayHaveWritten } from './refusals.js';
import type { Server } from './server.js';
import type { Turn } from './turn.js';
import { Waking } from './waking.js';

export interface SequencerOptions {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly router: Router;
  readonly table: CommandTable;
  readonly suspects: Suspects;
  readonly scripts: Scripts;
  readonly judge: Judge;
  readonly journal: Pick<Journal, 'noteKey' | 'noteWorkload' | 'noteEverything'>;
  readonly limits: MirrorLimits;
  readonly turn: Turn;
}

/** A key that is being copied in parts: until that is over, the mirror does not hold all of it. */
export interface InParts {
  /** It is in doubt anew, for a reason that is not a reply of the mirror about what it does not hold yet. */
  doubted(reason: string): void;
}

const MINUS = '-'.charCodeAt(0);

export class Sequencer implements LaneEvents {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly router: Router;
  readonly table: CommandTable;
  readonly suspects: Suspects;
  readonly scripts: Scripts;
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
  /** While set, no new command starts: a barrier is being passed. */
  barred = false;
  /** While set, nothing is copied either. */
  passing = false;
  /** Called when the mirror of one side comes or goes. */
  mirrorChanged: (side: Side, up: boolean) => void = () => undefined;
  readonly expiry: Expiry;
  /** By `keyId`; all of them are suspects. */
  readonly inParts = new Map<string, InParts>();
  readonly #judge: Judge;
  readonly #argStart: number[] = [];
  readonly #argEnd: number[] = [];
  /** By command id. */
  readonly #effects: (EffectEntry | undefined)[];

  constructor(options: SequencerOptions) {
    const { servers, router, turn } = options;
    this.servers = servers;
    this.router = router;
    this.table = options.table;
    this.suspects = options.suspects;
    this.scripts = options.scripts;
    this.turn = turn;
    this.#judge = options.judge;
    this.journal = options.journal;
    this.#effects = options.table.all.map((spec) => effectOf(spec.name));
    this.latencies = { source: new Latencies(), target: new Latencies() };
    const lanes = (side: Side): Lanes => new Lanes(servers[side], this.latencies[side], this, turn);
    this.lanes = { source: lanes('source'), target: lanes('target') };
    this.changes = { source: new Changes(servers.source), target: new Changes(servers.target) };
    const mirror = (side: Side): MirrorLane =>
      new MirrorLane(servers[side], router.default, options.limits, new LatencyRecorder(this.latencies[side]), this.#mirrorEvents(side), turn);
    this.mirrors = { source: mirror('source'), target: mirror('target') };
    this.expiry = new Expiry(this);
  }

  /** Sends a command to an authority; its place in the order is that of its reply. */
  submit(operation: Operation, lane: Lane): void {
    lane.submit(operation);
  }

  /** The command's keys, for the order of several lanes. */
  keyIds(frame: Buffer, start: number): string[] {
    const ids: string[] = [];
    this.eachKey(frame, start, (key) => ids.push(key.toString('latin1')));
    return ids;
  }

  /** Notes in the journal that the command frame at `start` is about to be sent, and what it writes. */
  noteFrame(db: number, frame: Buffer, start: number): void {
    let known = false;
    const otherDb = otherDatabase(frame, start);
    this.eachKey(frame, start, (key, access) => {
      known = true;
      if ((access & 2) !== 0) this.journal.noteKey(db, key, 0, key.length);
      if (otherDb !== null) this.journal.noteKey(otherDb, key, 0, key.length);
    });
    if (!known && this.#hidesWrites(frame, start)) this.journal.noteEverything();
  }

  /** Whether the mirror of that authority knows the command. */
  mirrorKnows(authority: Side, spec: CommandSpec): boolean {
    return this.servers[otherSide(authority)].knows(spec);
  }

  /** The second read that the command's effect needs; null where it needs none. */
  probeFor(operation: Operation): Buffer | null {
    const { name } = operation.spec!;
    return name === 'xadd' || name === 'xtrim' ? probeOf(name, argumentsOf(operation.frame, operation.start)) : null;
  }

  /** Tells the mirror what a command did whose second read is answered now; `probe` is null where that was refused. */
  followProbed(operation: Operation, probe: Reply | null): void {
    if (operation.reply[operation.replyStart] === MINUS) {
      operation.workload.counters.refused++;
      return;
    }
    const { reply } = decodeReply(operation.reply, operation.replyStart);
    const { effect } = this.#effects[operation.spec!.id]!;
    this.follow(operation, operation.mustCopy ? 'copy' : effect(argumentsOf(operation.frame, operation.start), reply, operation.protocol, probe ?? undefined));
  }

  /** Notes that the operation holds these keys in the order of several lanes, if there are several, and whom it may wake. */
  hold(operation: Operation, lane: Lane, keys: readonly string[], writes = operation.follow === WRITE): void {
    const order = this.lanes[lane.server.side].order(operation.db);
    if (!order.active) return;
    if (order.tracking) {
      operation.held = keys;
      operation.holdsToWrite = writes;
      order.hold(lane, keys, writes);
    }
    if (!writes || TAKES_ONLY.has(operation.spec?.name ?? '')) return;
    const woken = order.wokenBy(keys);
    if (woken.size > 0) operation.waking = new Waking(order, lane.server, keys, woken);
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
    if (operations.length > 0) this.#judge.bury(lane.server, lane.clientId);
    for (const operation of operations) {
      if (operation.held !== null) this.#release(operation);
      operation.waking?.lost();
      this.dropSpan(operation);
      if (operation.follow === WRITE) this.doubtOperation(operation, REPLY_LOST);
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
      if (spec.handling === 'script' && isNoScript(buffer, start)) this.scripts.unknownTo(operation.lane!.server, argumentsOf(operation.frame, operation.start));
      if (spec.handling !== 'script') return;
      if (!mayHaveWritten(buffer, start, end)) this.dropSpan(operation);
      else if (operation.span !== null) this.#followHidden(operation, 'script-failed');
      else this.doubtScript(operation.db, operation.frame, operation.start, operation.workload, 'script-failed');
      return;
    }
    operation.reply = buffer;
    operation.replyStart = start;
    operation.replyEnd = end;
    const derived = mayDerive(spec) && this.readsSuspect(operation.db, operation.frame, operation.start);
    if (derived || operation.mustCopy) {
      if (operation.span !== null) this.#followHidden(operation, derived ? 'derived' : 'copy');
      else this.doubtOperation(operation, derived ? 'derived' : 'copy');
      return;
    }
    if (spec.handling === 'script') {
      this.#followScript(operation);
      return;
    }
    const rewrite = this.#effects[spec.id];
    if (rewrite === undefined || argumentCount(operation.frame, operation.start) < rewrite.least) {
      this.mirrorOf(operation).append(operation);
      return;
    }
    const { reply } = decodeReply(buffer, start);
    this.follow(operation, rewrite.effect(argumentsOf(operation.frame, operation.start), reply, operation.protocol));
  }

  /** Tells the mirror the effect of an operation whose `reply` is set. */
  follow(operation: Operation, effect: Effect): void {
    if (effect === null) return;
    if (effect === 'verbatim') {
      this.mirrorOf(operation).append(operation);
      return;
    }
    if (effect === 'copy') {
      this.doubtOperation(operation, 'copy');
      return;
    }
    const { reply: authority, replyStart, replyEnd } = operation;
    for (const [i, { frame, reply }] of effect.entries()) {
      const follower = i === 0 ? operation : this.#companion(operation);
      follower.asked ??= operation.asked ?? operation.frame.subarray(operation.start, operation.end);
      follower.frame = frame;
      follower.start = 0;
      follower.end = frame.length;
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
    const args = argumentsOf(operation.frame, operation.start);
    const told = decodeReply(reply).reply;
    const derived = mayDerive(operation.spec!) && this.readsSuspect(operation.db, operation.frame, operation.start);
    if (derived || operation.mustCopy) this.doubtOperation(operation, derived ? 'derived' : 'copy');
    else this.follow(operation, ordered ? this.#effects[operation.spec!.id]!.effect(args, told, operation.protocol) : removalOf(args, told));
  }

  readonly #companions: Operation[] = [];

  #companion(operation: Operation): Operation {
    const companion = new Operation(operation.frame, operation.start, operation.end, null, operation.spec, operation.workload, operation.db, operation.protocol, WRITE);
    companion.lane = operation.lane;
    companion.answeredAt = operation.answeredAt;
    companion.submittedAt = operation.submittedAt;
    companion.stalledMs = operation.stalledMs;
    companion.asked = operation.asked;
    this.#companions.push(companion);
    return companion;
  }

  /** A deterministic script is repeated; of any other only the keys' state tells what it did. */
  #followScript(operation: Operation): void {
    if (this.repeatsScript(operation, argumentsOf(operation.frame, operation.start))) {
      this.dropSpan(operation);
      this.mirrorOf(operation).append(operation);
    } else if (operation.span !== null) this.#followHidden(operation, 'script');
    else this.doubtScript(operation.db, operation.frame, operation.start, operation.workload, 'script');
  }

  /** Whether the script in `frame` may write what neither its declared keys nor its text tell, and the authority can. */
  hidesChanges(frame: Buffer, start: number): boolean {
    const args = argumentsOf(frame, start);
    const routine = this.scripts.find(args);
    if (routine === undefined || !routine.staysInDatabase || routine.writesNothing(this.table) || !routine.callsCommands) return false;
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
    this.changes[lane!.server.side].end(span, (keys) => {
      if (keys === null) otherwise();
      else for (const key of keys) this.doubtKey(db, Buffer.from(key, 'latin1'), reason);
      open();
    });
  }

  /** Likewise for a script that ran by itself. */
  #followHidden(operation: Operation, reason: string): void {
    const asked = Buffer.from(operation.frame.subarray(operation.start, operation.end));
    this.followChanges(operation, reason, () => this.doubtScript(operation.db, asked, 0, operation.workload, reason));
  }

  /**
   * What the script or function wrote is in doubt: the keys that it declares, or, without such, those that its text
   * names. Where it may write others, the whole workload is; where it declares none, every workload.
   */
  doubtScript(db: number, frame: Buffer, start: number, workload: Workload, reason: string): void {
    const args = argumentsOf(frame, start);
    const routine = this.scripts.find(args);
    if (routine?.writesNothing(this.table) === true) return;
    this.eachKey(frame, start, (key, access) => {
      if ((access & WRITES) !== 0) this.doubtKey(db, key, reason);
    });
    const { writes } = this.scripts.undeclared(args, this.table);
    if (args[2]?.toString('latin1') === '0') {
      if (writes === null) this.doubtHidden(reason);
      return;
    }
    // Those of a function are all that its library names.
    if (routine !== undefined && !(routine instanceof Script)) for (const key of writes ?? []) this.doubtKey(db, key, reason);
    // A digest whose text was never seen is believed to declare what it writes.
    const trusted = routine instanceof Script ? writes?.length === 0 : routine === undefined ? args[0].toString('latin1').toLowerCase().startsWith('evalsha') : writes !== null;
    if (!trusted) this.#doubtWorkload(workload, 'a script that cannot be repeated may have written keys that it does not declare');
  }

  /** A write whose keys nothing tells: every workload that is written twice is in doubt. */
  doubtHidden(reason: string): void {
    for (const workload of this.router.workloads) {
      if (!workload.whole || workload.keylessRule.mirrorsWrites) this.#doubtWorkload(workload, `a write whose keys are not known (${reason})`);
    }
  }

  #doubtWorkload(workload: Workload, why: string): void {
    const known = workload.suspect !== null;
    workload.doubt(why);
    if (!known) this.journal.noteWorkload(workload.name, why);
  }

  /**
   * Whether the script of this EVAL or EVALSHA, which ran on the operation's lane, can be repeated on the mirror;
   * if so, the mirror is given its text where it lacks it.
   */
  repeatsScript(operation: Operation, args: readonly Buffer[]): boolean {
    const mirror = this.mirrorOf(operation);
    const script = this.scripts.find(args);
    if (!(script instanceof Script) || !script.repeatable(mirror.server.commands) || script.endsKeydb(args.length) || (script.setsMoment && mirror.clockAheadMs !== 0)) return false;
    const byDigest = args[0].length >= 'evalsha'.length;
    const known = this.scripts.knownTo(mirror.server, script);
    // Before it is appended: a load that finds no room is forgotten again.
    this.scripts.loadedOn(mirror.server, script);
    if (byDigest && !known) {
      const frame = encodeCommand(['SCRIPT', 'LOAD', script.body]);
      const load = new Operation(frame, 0, frame.length, null, operation.spec, operation.workload, operation.db, operation.protocol, WRITE);
      load.lane = operation.lane;
      load.answeredAt = operation.answeredAt;
      load.check = ACCEPT;
      load.asked = encodeCommand(args);
      mirror.append(load);
      return this.scripts.knownTo(mirror.server, script);
    }
    return true;
  }

  /** Where the operation's effect goes: the server that is not its authority. */
  mirrorOf(operation: Operation): MirrorLane {
    return this.mirrors[otherSide(operation.lane!.server.side)];
  }

  // ── doubts ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** The operation's keys (all it wrote, or may have written) become suspects. */
  doubtOperation(operation: Operation, reason: string): void {
    if (operation.keys !== null) {
      for (const key of operation.keys) this.doubtKey(operation.db, key, reason);
      return;
    }
    const frame = operation.asked ?? operation.frame;
    const start = operation.asked ? 0 : operation.start;
    this.doubtFrame(operation.db, frame, start, operation.workload, reason);
  }

  /** Likewise, for the command frame at `start`. */
  doubtFrame(db: number, frame: Buffer, start: number, workload: Workload, reason: string): void {
    const spec = this.#specOf(frame, start);
    // A time to live that is off is so on keys that both servers have.
    if (spec?.handling === 'script' && reason !== 'ttl-lag' && reason !== 'expiry-edge') return this.doubtScript(db, frame, start, workload, reason);
    let known = false;
    const otherDb = otherDatabase(frame, start);
    this.eachKey(frame, start, (key, access) => {
      known = true;
      if ((access & 2) !== 0) this.doubtKey(db, key, reason);
      if (otherDb !== null) this.doubtKey(otherDb, key, reason);
    });
    if (!known && this.#hidesWrites(frame, start)) this.doubtHidden(reason);
  }

  #specOf(frame: Buffer, start: number): CommandSpec | undefined {
    const argc = locateArguments(frame, start, this.#argStart, this.#argEnd);
    return this.table.find(frame, this.#argStart, this.#argEnd, argc);
  }

  /** Whether a command of which no key is told may write some all the same. */
  #hidesWrites(frame: Buffer, start: number): boolean {
    const spec = this.#specOf(frame, start);
    if (spec === undefined) return true;
    if (spec.handling === 'script') return this.scripts.undeclared(argumentsOf(frame, start), this.table).writes === null;
    return spec.handling === 'barrier' && !isAboutCode(spec);
  }

  doubtKey(db: number, key: Buffer, reason: string): void {
    const workload = this.router.match(key, 0, key.length);
    if (!workload.rule(key, 0, key.length).mirrorsWrites) return;
    if (this.inParts.size > 0) this.inParts.get(keyId(db, key))?.doubted(reason);
    this.suspects.mark(db, key, workload, reason);
  }

  /**
   * Whether the command frame at `start` reads, or may read, a key that is in doubt: what it writes from that key is,
   * too. A copy that is in the order already makes the key right for what comes after it.
   */
  readsSuspect(db: number, frame: Buffer, start: number): boolean {
    return this.#hasSuspect(db, frame, start, READS, (suspect) => suspect.copied !== suspect.generation);
  }

  /** Whether the command frame at `start` has, or may have, a key that is in doubt. */
  hasSuspect(db: number, frame: Buffer, start: number): boolean {
    return this.#hasSuspect(db, frame, start, READS | WRITES, () => true);
  }

  #hasSuspect(db: number, frame: Buffer, start: number, accesses: number, counts: (suspect: Suspect) => boolean): boolean {
    if (!this.#anyDoubt) return false;
    let found = false;
    const inDoubt = (id: string): boolean => {
      const suspect = this.suspects.get(id);
      return (suspect !== undefined && counts(suspect)) || this.#judge.asksAbout(id);
    };
    const otherDb = otherDatabase(frame, start);
    const all = this.eachKey(frame, start, (key, access) => {
      if (found || (access & accesses) === 0) return;
      found = inDoubt(keyId(db, key)) || (otherDb !== null && inDoubt(keyId(otherDb, key))) || this.router.match(key, 0, key.length).suspect !== null;
    });
    return found || !all;
  }

  /** Whether no lost connection can still change anything. */
  get buried(): boolean {
    return this.#judge.buried();
  }

  /** Whether every effect is confirmed and no key in doubt. */
  get isCalm(): boolean {
    return [this.mirrors.source, this.mirrors.target].every((mirror) => mirror.isEmpty) && !this.#anyDoubt;
  }

  get #anyDoubt(): boolean {
    return this.suspects.size !== 0 || this.#judge.undecided !== 0 || this.router.doubts.workloads !== 0;
  }

  /**
   * Suspicion spreads: a write that the mirror confirms now was on its way before anybody knew that it reads a key in
   * doubt. What it wrote from that key is copied.
   */
  #spread(operation: Operation): void {
    const { spec, batch, db } = operation;
    if (spec?.name === 'swapdb') return this.swapDoubts(operation.frame, operation.start);
    if (operation.calm) return;
    if (batch === null) {
      if (spec !== undefined && mayDerive(spec) && this.#hasSuspect(db, ...askedFrame(operation), READS, () => true)) this.doubtOperation(operation, 'derived');
      return;
    }
    for (const [i, frame] of batch.frames.entries()) {
      if (batch.derives[i] && this.#hasSuspect(db, frame, 0, READS, () => true)) this.doubtFrame(db, frame, 0, operation.workload, 'derived');
    }
  }

  /**
   * What is in doubt in one of the two databases of a SWAPDB is in doubt in the other, too: once when the authority has
   * swapped them, and again when the mirror has, for what was found out in between about the commands before it.
   */
  swapDoubts(frame: Buffer, start: number): void {
    const [a, b] = argumentsOf(frame, start).slice(1).map((arg) => Number(arg.toString('latin1')));
    for (const { db, key } of [...this.suspects.all(), ...this.#judge.keysAsked()]) {
      if (db === a || db === b) for (const each of [a, b]) this.doubtKey(each, key, 'swapped');
    }
    // Whoever walks over the keys of a workload in doubt may have passed the one database, and not the other.
    for (const workload of this.router.workloads) if (workload.suspect !== null) workload.doubt(workload.suspect);
  }

  /**
   * Calls `visit(key, access)` for each key of the command frame at `start`; access is 1 (reads), 2 (writes) or 3.
   * The keys of a script that declares none are those that its text names. Returns whether these are all the keys.
   */
  eachKey(frame: Buffer, start: number, visit: (key: Buffer, access: number) => void): boolean {
    const [argStart, argEnd] = [this.#argStart, this.#argEnd];
    const argc = locateArguments(frame, start, argStart, argEnd);
    const spec = this.table.find(frame, argStart, argEnd, argc);
    if (spec === undefined) return false;
    const keys = new KeyList();
    const told = keysOf(spec, frame, argStart, argEnd, argc, keys);
    if (told === 0 && spec.handling === 'script') return this.#eachNamed(argumentsOf(frame, start), visit);
    const count = told === UNKNOWN_KEYS ? keys.known : told;
    const found: Buffer[] = [];
    for (let i = 0; i < count; i++) found.push(frame.subarray(argStart[keys.index[i]], argEnd[keys.index[i]]));
    for (let i = 0; i < count; i++) visit(found[i], keys.access[i]);
    return told >= 0;
  }

  #eachNamed(args: readonly Buffer[], visit: (key: Buffer, access: number) => void): boolean {
    const { reads, writes } = this.scripts.undeclared(args, this.table);
    for (const key of reads ?? []) visit(key, READS);
    for (const key of writes ?? []) visit(key, READS | WRITES);
    return reads !== null && writes !== null;
  }

  // ── the mirror's side ───────────────────────────────────────────────────────────────────────────────────────

  #mirrorEvents(side: Side): MirrorEvents {
    return {
      matched: (operation, now) => this.#matched(operation, now),
      differs: (operation, buffer, start, end, now) => {
        // A key that may just have expired on one side is in doubt before its replies are judged.
        if (operation.follow === WRITE) this.expiry.confirmed(operation);
        this.#judge.differs(operation, buffer, start, end, now);
        if (operation.follow === WRITE) this.#doubtOutcome(operation, now);
      },
      accepted: (operation, now) => this.#accepted(operation, now),
      unconfirmed: (operation) => this.#unconfirmed(operation),
      dropped: (operation) => this.#drop(operation),
      connected: (up) => this.mirrorChanged(side, up),
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
    if (now - operation.answeredAt + operation.stalledMs > TTL_TOLERANCE_MS) this.#judge.late(operation, now);
    if (this.#anyDoubt) this.#spread(operation);
  }

  #unconfirmed(operation: Operation): void {
    if (operation.follow === WRITE) this.#doubtEffect(operation, 'unconfirmed');
    else increment(operation.workload.counters.inconclusive, 'mirror-lost');
  }

  /** An effect may not have reached the mirror; the text of a script neither. */
  #doubtEffect(operation: Operation, reason: string): void {
    const { spec } = operation;
    if (spec?.handling === 'script' || (spec !== undefined && isAboutCode(spec))) this.scripts.forget(this.mirrorOf(operation).server);
    if (spec?.name === 'swapdb') this.expiry.swapEnded();
    if (spec?.handling === 'publish') increment(operation.workload.counters.inconclusive, 'publish-lost');
    else this.doubtOperation(operation, reason);
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

/** Whether the command changes what scripts or functions a server knows, and no key. */
export const isAboutCode = ({ name }: CommandSpec): boolean => name.startsWith('script|') || name.startsWith('function|');

/** Writes that leave nothing for which anybody waits. */
const TAKES_ONLY: ReadonlySet<string> = new Set(['lpop', 'rpop', 'lmpop', 'lrem', 'ltrim', 'zpopmin', 'zpopmax', 'zmpop', 'zrem', 'xreadgroup', 'xack']);

/** Whether a write may take what it writes from another key, or from another database. XREADGROUP changes each stream by itself. */
export const mayDerive = (spec: CommandSpec): boolean => (spec.singleKey === 0 && spec.name !== 'xreadgroup') || spec.handling === 'barrier';

/** The database that MOVE, or COPY with DB, writes to; null for everything else. */
export function otherDatabase(frame: Buffer, start: number): number | null {
  const name = frame.toString('latin1', start, Math.min(start + 24, frame.length));
  if (!/^\*\d+\r\n\$4\r\n(move|copy)\r/i.test(name)) return null;
  const args = argumentsOf(frame, start).map((arg) => arg.toString('latin1').toUpperCase());
  if (args[0] === 'MOVE') return Number(args[2]);
  const at = args.indexOf('DB', 3);
  return at === -1 ? null : Number(args[at + 1]);
}
