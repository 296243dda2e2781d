/**
 * The edge of expiry. A key with a time to live does not expire at the same instant on both servers, and a write does
 * not reach them at the same instant. So one server may find the key and the other find it expired. A write that does
 * not replace the key (HSET, INCR, SADD…) then leaves different data behind, and its reply may not show it.
 *
 *   a time to live passes through ──▶ Deadlines            a span in which the key ends on both servers
 *   a write is confirmed          ──▶ did the key's span meet the time from its sending to its confirmation?
 *                                      └─ yes ─▶ which server found the key is not known: it is copied
 *
 * A key of which nothing is known may have a time to live: another process may have set it, or there were too many to
 * remember. Before a write that depends on such a key, both servers are asked, in the order. If they do not answer, the
 * write's keys are copied.
 */
import { absoluteTtl, relativeTtl } from '../command/ttl.js';
import { WRITES } from '../command/keys.js';
import { Command } from '../command/command.js';
import type { CommandSpec } from '../command/table.js';
import { monotonicMs } from '../io/clock.js';
import { locateArguments } from '../resp/decode.js';
import { expiresWithin, type KeyLife } from '../resp/key-life.js';
import { Script } from '../script/catalog.js';
import { Deadlines, hashOfKey } from './deadlines.js';
import { KnownKeys } from './known-keys.js';
import { keyId } from './suspects.js';
import { TTL_TOLERANCE_MS, type Carrier, type Operation } from '../pipeline/operation.js';
import { askLife, type BothLives } from '../pipeline/question.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { ExpiryEdges } from '../pipeline/suspicion.js';
import { DatabaseIds, swappedBy } from '../pipeline/swaps.js';

/** Servers read their clocks once a turn, and count in whole ms. */
const MARGIN_MS = 15;
/** How far the clocks of three machines may drift apart, and by how many ms two of them may be set apart. */
const DRIFT = 50e-6;
const CLOCK_MARGIN_MS = 25;
/** How many keys are listed one by one about which the servers did not answer. */
const MAX_UNLEARNED = 10_000;
/** Expiries are forgotten when they are older than the oldest waiting effect by this much, in ms. */
const KEPT_MS = 10_000;

// How a command depends on times to live, as bits.
/** The result depends on whether the keys exist. */
const TOUCHES = 1;
const TIMES = 2;
const MOVES = 4;
const RUNS = 8;
const SWAPS = 16;
/** The command leaves different data behind if only one server has the key; its reply may not show that. */
const CREATES = 32;
/** The command changes the time to live of a key that exists: afterwards nothing shows the former one. */
const CHANGES_LIFE = 64;

export class Expiry implements ExpiryEdges {
  readonly #deadlines: Deadlines;
  /** Keys without a time to live. */
  readonly #persistent = new KnownKeys();
  /** Keys of which nothing is known, and about which both servers are being asked. */
  readonly #learning = new Set<number>();
  /** Keys about which the servers did not answer, and whether there were more than are listed. */
  readonly #unlearned = new Set<number>();
  #looksAtAll = false;
  /** When a key was forgotten last that was known before. */
  #forgottenAt = -Infinity;
  /** The bits of each command, by its id. */
  readonly #roles: Uint8Array;
  readonly #set: CommandSpec;
  /** Keys whose time to live is being asked for: how many questions about each are open. */
  readonly #measuring = new Map<number, number>();
  /** Keys are noted under the id of their database. */
  readonly #ids = new DatabaseIds();
  readonly #argStart: number[] = [];
  readonly #argEnd: number[] = [];

  constructor(private readonly sequencer: Sequencer) {
    const { mirrors, table } = sequencer;
    this.#deadlines = new Deadlines(() => {
      const now = monotonicMs();
      return now - Math.max(mirrors.source.lagMs(now), mirrors.target.lagMs(now)) - KEPT_MS;
    });
    this.#set = table.byName('set')!;
    this.#roles = Uint8Array.from(table.all, (spec) => {
      const { name, write, handling } = spec;
      const touches = (write || handling === 'script') && !spec.replaces ? TOUCHES : 0;
      const times = spec.relativeTtl !== null || spec.absoluteTtl !== null ? TIMES : 0;
      return (
        touches |
        times |
        (touches !== 0 && mayCreate(spec) ? CREATES : 0) |
        (touches !== 0 && (times !== 0 || name === 'persist') ? CHANGES_LIFE : 0) |
        (spec.movesTtl ? MOVES : 0) |
        (handling === 'script' ? RUNS : 0) |
        (name === 'swapdb' ? SWAPS : 0)
      );
    });
  }

  /** Whether a script has just run on the key, and both servers are being asked for its time to live. */
  asksAbout(db: number, key: Buffer): boolean {
    return this.#measuring.size > 0 && this.#measuring.has(this.#hash(db, key));
  }

  /** The mirror has answered a write. */
  confirmed(operation: Operation, differs: boolean): void {
    const { batch, spec } = operation;
    if (batch !== null) {
      const now = monotonicMs();
      for (const [i, command] of batch.commands.entries()) {
        const inner = batch.writes[i] ? this.sequencer.table.byName(batch.names[i]) : undefined;
        if (inner !== undefined) this.#noteWrite(operation, inner, command, command, now, differs);
      }
      return;
    }
    if (spec === undefined) return;
    const { frame, start } = operation;
    // SET key value, the most frequent of all, replaces the key.
    if (spec === this.#set && frame[start + 1] === THREE && frame[start + 2] === CR) return;
    if (
      (this.#roles[spec.id] | CREATES) === (TOUCHES | CREATES) &&
      !this.#deadlines.any(operation.submittedAt - MARGIN_MS) &&
      !this.#mayBeUnknown(operation)
    )
      return;
    this.#noteWrite(operation, spec, operation.original, operation.command, monotonicMs(), differs);
  }

  /** A key was copied. @param life the authority's answer, given between `from` and now */
  copied(db: number, key: Buffer, life: KeyLife, from: number, now: number): void {
    if (life.state === 'expires') this.#note(this.#hash(db, key), from, now, life.ms, false);
    else this.#persists(this.#hash(db, key));
  }

  /** A key that the authority lacks is kept on the mirror. It is asked about before it is written. */
  kept(db: number, key: Buffer): void {
    const hash = this.#hash(db, key);
    if (!this.#knows(hash)) return;
    this.#persistent.remove(hash);
    this.#deadlines.remove(hash);
    this.#forgottenAt = monotonicMs();
  }

  /** Nothing is known about the key: writes that depend on it are copied, once they are confirmed. */
  #failed(hash: number): void {
    if (this.#unlearned.size < MAX_UNLEARNED) this.#unlearned.add(hash);
    else this.#looksAtAll = true;
  }

  /** Whether a write whose keys are unknown here may be confirmed. */
  #mayBeUnknown({ submittedAt, answeredAt }: Operation): boolean {
    return (
      this.#looksAtAll ||
      this.#unlearned.size > 0 ||
      this.#deadlines.forgotten > 0 ||
      submittedAt <= this.#forgottenAt ||
      // The command was blocked: facts from before it may be forgotten.
      answeredAt - submittedAt > KEPT_MS
    );
  }

  #persists(hash: number): void {
    if (this.#unlearned.size > 0) this.#unlearned.delete(hash);
    if (!this.#deadlines.isEmpty) this.#deadlines.forget(hash);
    this.#persistent.add(hash);
  }

  #knows(hash: number): boolean {
    return this.#deadlines.has(hash) || this.#persistent.has(hash);
  }

  sendingOne(lane: Carrier, operation: Operation, keyStart: number, keyEnd: number): void {
    const { spec, frame, start } = operation;
    if ((this.#roles[spec!.id] & CREATES) === 0) return;
    if (spec === this.#set) this.sending(lane, operation, spec, frame, start);
    else this.#learn(lane, operation, frame, keyStart, keyEnd);
  }

  sending(lane: Carrier, about: About, spec: CommandSpec, frame: Buffer, start: number): void {
    // SET key value, the most frequent of all, replaces the key.
    if ((this.#roles[spec.id] & CREATES) === 0) return;
    if (spec === this.#set && frame[start + 1] === THREE && frame[start + 2] === CR) return;
    const at = spec.singleKey;
    if (at > 0) {
      const argc = locateArguments(frame, start, this.#argStart, this.#argEnd);
      if (at < argc && (spec !== this.#set || this.#keepsTtl(frame, start, argc)))
        this.#learn(lane, about, frame, this.#argStart[at], this.#argEnd[at]);
      return;
    }
    const command = new Command(frame, start);
    if ((this.#roles[spec.id] & RUNS) !== 0 && this.#writesNothing(command)) return;
    // The lane is in one database. For a key in another one, the reply shows what happened.
    this.sequencer.keys.eachPlaced(about.db, command, (db, key, access) => {
      if (db === about.db) this.#learn(lane, about, key, 0, key.length, (access & WRITES) !== 0);
    });
  }

  #writesNothing(command: Command): boolean {
    const { scripts, table } = this.sequencer;
    return scripts.find(command.args)?.writesNothing(table) === true;
  }

  /** Whether SET, whose arguments are located, keeps a time to live. */
  #keepsTtl(frame: Buffer, start: number, argc: number): boolean {
    for (let i = 3; i < argc; i++)
      if (this.#argEnd[i] - this.#argStart[i] === KEEPTTL_LENGTH && (frame[this.#argStart[i]] | 0x20) === K)
        return this.#set.keepsTtl!(new Command(frame, start).args);
    return false;
  }

  /** Asks both servers about the key `buffer[start, end)`, if nothing is known of it. */
  #learn(lane: Carrier, about: About, buffer: Buffer, start: number, end: number, writes = true): void {
    const { db } = about;
    const hash = this.#hash(db, buffer, start, end);
    if (this.#knows(hash) || this.#learning.has(hash)) return;
    // A script of another workload, which runs at another server, may name the key.
    const rule = this.sequencer.router.match(buffer, start, end).position.rule(buffer, start, end);
    if (!rule.mirrorsWrites || rule.authority !== lane.server.side) return;
    if (!lane.mayAskLife) return this.#failed(hash);
    const key = Buffer.from(buffer.subarray(start, end));
    this.#learning.add(hash);
    const answered = (both: BothLives | null): void => {
      this.#learning.delete(hash);
      if (both === null || both.authority === null || both.mirror === null) return this.#failed(hash);
      const { authority, mirror, from, to } = both;
      if (authority.state !== 'expires' && mirror.state !== 'expires') {
        // Only one server has the key, as with a foreign key. What the command makes of it may differ, and the replies
        // may not show that. It is asked about again before its next write. A key that is still to be copied is missing
        // on the mirror, and has not expired.
        if (authority.state !== mirror.state && !(mirror.state === 'absent' && this.#isToBeCopied(db, key)))
          this.sequencer.verdicts.oneSided(db, key, lane.server.side, { authority, mirror });
        else this.#persists(hash);
      } else if (this.#isToBeCopied(db, key) && isMissing(authority, mirror, to - from))
        this.copied(db, key, authority, from, to);
      else this.#judge(db, key, hash, authority, mirror, from, to, writes);
    };
    askLife(this.sequencer, lane, about, key, answered, () => undefined, true);
  }

  /** Whether the key's workload is a suspect, or its chunked copy is in progress. */
  #isToBeCopied(db: number, key: Buffer): boolean {
    const { router, suspects } = this.sequencer;
    return suspects.isWhole(router.match(key, 0, key.length)) || suspects.chunked.has(keyId(db, key));
  }

  /**
   * The mirror ran the command `asked` in the form `replicated`.
   * @param differs whether its reply was not the authority's
   */
  #noteWrite(
    operation: Operation,
    spec: CommandSpec,
    asked: Command,
    replicated: Command,
    now: number,
    differs: boolean,
  ): void {
    const role = this.#roles[spec.id];
    const { db } = operation;
    if ((role & TOUCHES) !== 0) {
      // A server may drop a value written with KEEPTTL to a key that has expired and is not removed yet.
      const keepsTtl = spec.keepsTtl !== null && spec.keepsTtl(asked.args);
      const from = keepsTtl ? 0 : operation.submittedAt - MARGIN_MS;
      const creates =
        (role & CREATES) !== 0 &&
        this.#mayBeUnknown(operation) &&
        (keepsTtl || spec !== this.#set) &&
        !((role & RUNS) !== 0 && this.#writesNothing(asked));
      const mayHaveExpired = differs && (role & CHANGES_LIFE) !== 0;
      const why = this.#expiryUncertainty(spec, db, asked, from, now + MARGIN_MS, creates || mayHaveExpired);
      if (why !== null) this.sequencer.suspects.command(db, asked, why);
    }
    if ((role & MOVES) !== 0) this.#move(db, asked.args);
    if ((role & TIMES) !== 0) this.#time(operation, replicated, now);
    if ((role & RUNS) !== 0) this.#run(operation, asked);
    if ((role & SWAPS) !== 0) this.#swap(asked.args);
  }

  /**
   * Whether a key of the command may have expired between the two moments, as far as is known.
   * @param asUnknown whether a key of which nothing is known counts
   */
  #expiryUncertainty(
    spec: CommandSpec,
    db: number,
    command: Command,
    from: number,
    to: number,
    asUnknown: boolean,
  ): 'expiry-edge' | 'ttl-unknown' | null {
    const { frame, start } = command;
    const any = this.#deadlines.any(from);
    if (!any && !asUnknown) return null;
    let why: 'expiry-edge' | 'ttl-unknown' | null = null;
    const visit = (hash: number): void => {
      if (any && this.#deadlines.within(hash, from, to)) why = 'expiry-edge';
      else if (asUnknown && !this.#knows(hash)) why ??= 'ttl-unknown';
    };
    const at = spec.movesTtl ? 0 : spec.singleKey;
    if (at > 0) {
      const argc = locateArguments(frame, start, this.#argStart, this.#argEnd);
      if (at < argc) visit(this.#hash(db, frame, this.#argStart[at], this.#argEnd[at]));
    } else this.sequencer.keys.eachPlaced(db, command, (placed, key) => visit(this.#hash(placed, key)));
    return why;
  }

  /** Notes the time to live that the command set, if it set one. */
  #time(operation: Operation, replicated: Command, now: number): void {
    const { frame, start } = replicated;
    const argc = locateArguments(frame, start, this.#argStart, this.#argEnd);
    const hash = this.#hash(operation.db, frame, this.#argStart[1], this.#argEnd[1]);
    const plain = this.#plainTtl(frame, argc);
    if (plain >= 0) return this.#note(hash, countsFrom(operation), now, plain, false);
    const { args } = replicated;
    // Whether the condition was met is shown by the command's own reply, which is missing in a transaction.
    const conditional = args.length > 3 && args.slice(3).some((arg) => /^[nx]x$/i.test(arg.toString('latin1')));
    const relative = relativeTtl(args);
    if (relative !== null) return this.#note(hash, countsFrom(operation), now, relative.ms, conditional);
    const absolute = absoluteTtl(args);
    if (absolute === null) return;
    // The servers' clocks may differ by more than is known.
    if (operation.answeredAt < this.sequencer.mirrorOf(operation).clockKnownFrom)
      this.sequencer.suspects.key(operation.db, Buffer.from(replicated.args[1]), 'ttl-unknown');
    const { source, target } = this.sequencer.servers;
    const moments = [source, target].map((server) => absolute.ms - server.clock.unixTimeAtZero);
    const margin = Math.max(source.clock.errorMs, target.clock.errorMs) + CLOCK_MARGIN_MS;
    this.#note(hash, Math.min(...moments) - margin, Math.max(...moments) + margin, 0, conditional);
  }

  /** The time to live in ms in the most frequent forms, whose arguments are located already; -1 for other forms. */
  #plainTtl(frame: Buffer, argc: number): number {
    const [starts, ends] = [this.#argStart, this.#argEnd];
    const length = ends[0] - starts[0];
    // EXPIRE key n, SETEX key n value and the same in ms; SET key value EX|PX n.
    const option = length === 3 && argc === 5;
    if (!option && !(length >= 5 && (argc === 3 || argc === 4))) return -1;
    const at = option ? 4 : 2;
    const unit = option ? frame[starts[3]] | 0x20 : frame[starts[0]] | 0x20;
    if (option && (ends[3] - starts[3] !== 2 || (frame[starts[3] + 1] | 0x20) !== X || (unit !== E && unit !== P)))
      return -1;
    // GETEX; EXPIREAT and the like.
    if (!option && ((frame[ends[0] - 1] | 0x20) === T || unit === G)) return -1;
    let value = 0;
    for (let i = starts[at]; i < ends[at]; i++) {
      const digit = frame[i] - ZERO;
      if (digit < 0 || digit > 9) return -1;
      value = value * 10 + digit;
    }
    return unit === P ? value : value * 1000;
  }

  /** @param also whether the former note of the key may hold, too */
  #note(hash: number, from: number, to: number, ms: number, also: boolean): void {
    const drift = ms * DRIFT;
    if (this.#unlearned.size > 0) this.#unlearned.delete(hash);
    if (also) this.#deadlines.widen(hash, from + ms - drift, to + ms + drift);
    else this.#deadlines.note(hash, from + ms - drift, to + ms + drift);
  }

  /** RENAME, RENAMENX, COPY, MOVE: the time to live moves with the value. */
  #move(db: number, args: readonly Buffer[]): void {
    const from = this.#hash(db, args[1]);
    const option = args.findIndex((arg, i) => i > 2 && arg.toString('latin1').toUpperCase() === 'DB');
    const moves = args[0].toString('latin1').toUpperCase() === 'MOVE';
    const to = moves
      ? this.#hash(Number(args[2].toString()), args[1])
      : this.#hash(option === -1 ? db : Number(args[option + 1].toString()), args[2]);
    this.#deadlines.copy(from, to);
    if (this.#persistent.has(from)) this.#persistent.add(to);
    const { fieldTtls } = this.sequencer;
    if (moves) fieldTtls?.moved(db, args[1], Number(args[2].toString()), args[1]);
    else fieldTtls?.moved(db, args[1], option === -1 ? db : Number(args[option + 1].toString()), args[2]);
  }

  /** SWAPDB: the keys of the two databases are exchanged, with their times to live. */
  #swap(args: readonly Buffer[]): void {
    const swapped = swappedBy(args);
    this.#ids.swap(swapped);
    this.sequencer.fieldTtls?.swapped(...swapped);
  }

  #hash(db: number, buffer: Buffer, start?: number, end?: number): number {
    return hashOfKey(this.#ids.idOf(db), buffer, start, end);
  }

  /**
   * A script may have set times to live that only the servers know. Both are asked right behind it, so that no later
   * command of the order comes before the answer.
   */
  ranOn(lane: Carrier, operation: Operation, command: Command): void {
    const script = this.sequencer.scripts.find(command.args);
    // A function is not replicated: its keys are copied, with their TTLs.
    if (script !== undefined && !(script instanceof Script && script.setsTtl)) return;
    if (operation.mustCopy || operation.span !== null) return;
    for (const key of this.#writtenBy(command)) this.#measure(lane, operation, key);
  }

  #writtenBy(command: Command): Buffer[] {
    const keys: Buffer[] = [];
    this.sequencer.keys.eachOf(command, (key, access) => {
      if ((access & WRITES) !== 0) keys.push(Buffer.from(key));
    });
    return keys;
  }

  /** The mirror has run a script. */
  #run(operation: Operation, command: Command): void {
    const script = this.sequencer.scripts.find(command.args);
    const { db } = operation;
    if ((this.sequencer.fieldTtls?.size ?? 0) > 0 && script?.called.some((name) => MOVING.has(name)) === true)
      for (const key of this.#writtenBy(command)) this.sequencer.suspects.key(db, key, 'field-ttl');
    if (script?.setsTtl === false) return;
    // The answer to the question behind the script comes later than the script's own.
    for (const key of this.#writtenBy(command))
      if (!this.#measuring.has(this.#hash(db, key))) this.sequencer.suspects.key(db, key, 'ttl-unknown');
  }

  #measure(lane: Carrier, operation: Operation, key: Buffer): void {
    const { db } = operation;
    const hash = this.#hash(db, key);
    this.#measuring.set(hash, (this.#measuring.get(hash) ?? 0) + 1);
    const answered = (both: BothLives | null): void => {
      const left = this.#measuring.get(hash)! - 1;
      if (left === 0) this.#measuring.delete(hash);
      else this.#measuring.set(hash, left);
      // The write was refused, or its keys are copied.
      if (!isRepeated(operation)) return;
      if (both === null || both.authority === null || both.mirror === null)
        return this.sequencer.suspects.key(db, key, 'ttl-unknown');
      this.#judge(db, key, hash, both.authority, both.mirror, both.from, both.to);
    };
    askLife(this.sequencer, lane, operation, key, answered, () => undefined, true);
  }

  /** Both servers have answered, between the two moments, how long the key lives. */
  #judge(
    db: number,
    key: Buffer,
    hash: number,
    authority: KeyLife,
    mirror: KeyLife,
    from: number,
    to: number,
    writes = true,
  ): void {
    const { suspects } = this.sequencer;
    if (authority.state !== mirror.state)
      return writes ? suspects.key(db, key, 'expiry-edge') : suspects.named(db, key, 'expiry-edge');
    if (authority.state !== 'expires' || mirror.state !== 'expires') return this.#persists(hash);
    const [left, behind] = [authority.ms, mirror.ms];
    this.#note(hash, from + Math.min(left, behind) - left, to + Math.max(left, behind) - left, left, false);
    if (Math.abs(left - behind) > TTL_TOLERANCE_MS + to - from) suspects.key(db, key, 'ttl-lag');
  }
}

/** The operation for which a question about a key is asked. */
type About = Pick<Operation, 'workload' | 'db' | 'protocol'>;

/** Whether the command may create a key, or gives a key the time to live of another. */
const mayCreate = ({ name, flags, movesTtl, handling }: CommandSpec): boolean =>
  handling === 'script' ||
  movesTtl ||
  name === 'smove' ||
  // A server refuses such a command when its memory is full.
  flags.includes('denyoom');

/** Whether one server lacks a key that does not expire soon on the other. */
function isMissing(authority: KeyLife, mirror: KeyLife, elapsedMs: number): boolean {
  if (authority.state !== 'absent' && mirror.state !== 'absent') return false;
  const there = authority.state === 'absent' ? mirror : authority;
  return there.state !== 'absent' && !expiresWithin(there, elapsedMs + TTL_TOLERANCE_MS + 2 * MARGIN_MS);
}

/** Commands that take a hash, with the times to live of its fields, to another key. */
const MOVING: ReadonlySet<string> = new Set(['rename', 'renamenx', 'copy', 'move', 'restore']);
const KEEPTTL_LENGTH = 'KEEPTTL'.length;
const [ZERO, THREE, CR] = ['0'.charCodeAt(0), '3'.charCodeAt(0), 13];
const [E, G, K, P, T, X] = ['e', 'g', 'k', 'p', 't', 'x'].map((letter) => letter.charCodeAt(0));

/**
 * Whether the authority has run the script and the mirror gets the script itself, not a copy of its keys. True for
 * EXEC.
 */
const isRepeated = ({ spec, mustCopy, replyEnd }: Operation): boolean =>
  spec === undefined || (!mustCopy && replyEnd > 0);

/** The earliest moment from which a time to live in the operation's frame counts. */
function countsFrom({ submittedAt, answeredAt, ttlFrom, batch }: Operation): number {
  return ttlFrom === 0 || batch !== null ? submittedAt : submittedAt - answeredAt + ttlFrom;
}
