/**
 * The edge of expiry. A key with a time to live does not end at the same instant on both servers, and a write does not
 * reach them at the same instant: one may find the key, the other find it gone. A write that does not replace the key
 * (HSET, INCR, SADD…) then leaves different data behind, and its reply need not show it.
 *
 *   a time to live passes through ──▶ Deadlines            a span in which the key ends on both servers
 *   a write is confirmed          ──▶ did the key's span meet the time from its sending to its confirmation?
 *                                      └─ yes ─▶ which server found the key is not known: it is copied
 */
import { ABSOLUTE_TTL, absoluteTtl, RELATIVE_TTL, relativeTtl } from '../command/effects.js';
import { WRITES } from '../command/keys.js';
import type { CommandSpec } from '../command/table.js';
import { argumentsOf, locateArguments } from '../resp/decode.js';
import { Deadlines, hashOfKey } from './deadlines.js';
import { askedFrame, TTL_TOLERANCE_MS, type Operation } from './operation.js';
import { pttlOnBoth } from './question.js';
import type { Sequencer } from './sequencer.js';

/** Servers look at their clocks once a turn, and count in whole ms. */
const MARGIN_MS = 15;
/** By how much the clocks of three machines may run apart, and by how much two of them may be set apart, in ms. */
const DRIFT = 50e-6;
const CLOCK_MARGIN_MS = 25;
/** What expired so long before the oldest effect that waits is forgotten. */
const KEPT_MS = 10_000;

// What a command has to do with times to live.
/** Depends on whether its keys are there. */
const TOUCHES = 1;
const TIMES = 2;
const MOVES = 4;
const RUNS = 8;

/** Writes that leave the same behind whether or not the key was there, or answer differently. */
const REPLACES = new Set(['setex', 'psetex', 'mset', 'del', 'unlink', 'getset', 'getdel', 'restore', 'flushall', 'flushdb']);
const MOVING = new Set(['rename', 'renamenx', 'copy', 'move']);

export class Expiry {
  readonly #deadlines: Deadlines;
  /** By command id. */
  readonly #roles: Uint8Array;
  readonly #set: CommandSpec;
  readonly #measuring = new Set<number>();
  readonly #argStart: number[] = [];
  readonly #argEnd: number[] = [];

  constructor(private readonly sequencer: Sequencer) {
    const { mirrors, table } = sequencer;
    this.#deadlines = new Deadlines(() => {
      const now = performance.now();
      return now - Math.max(mirrors.source.lagMs(now), mirrors.target.lagMs(now)) - KEPT_MS;
    });
    this.#set = table.byName('set')!;
    this.#roles = Uint8Array.from(table.all, ({ name, write, handling }) => {
      const touches = (write || handling === 'script') && !REPLACES.has(name) ? TOUCHES : 0;
      const times = RELATIVE_TTL.has(name) || ABSOLUTE_TTL.has(name) ? TIMES : 0;
      return touches | times | (MOVING.has(name) ? MOVES : 0) | (handling === 'script' ? RUNS : 0);
    });
  }

  /** Deadlines far ahead that were forgotten for want of room: writes at those edges are not seen. */
  get forgotten(): number {
    return this.#deadlines.forgotten;
  }

  /** The mirror has answered a write. */
  confirmed(operation: Operation, now: number): void {
    const { batch, spec } = operation;
    if (batch !== null) {
      for (const [i, frame] of batch.frames.entries()) {
        const inner = batch.writes[i] ? this.sequencer.table.byName(batch.names[i]) : undefined;
        if (inner !== undefined) this.#look(operation, inner, frame, 0, frame, 0, now);
      }
      return;
    }
    if (spec === undefined) return;
    const { frame, start } = operation;
    // SET key value, the most frequent of all, replaces the key.
    if (spec === this.#set && frame[start + 1] === THREE && frame[start + 2] === CR) return;
    if (this.#roles[spec.id] === TOUCHES && !this.#deadlines.any(operation.submittedAt - MARGIN_MS)) return;
    this.#look(operation, spec, ...askedFrame(operation), frame, start, now);
  }

  /** A key was copied: `pttl` is what the authority said, between `from` and now. */
  copied(db: number, key: Buffer, pttl: number, from: number, now: number): void {
    const hash = hashOfKey(db, key);
    if (pttl >= 0) this.#note(hash, from, now, pttl, false);
    else this.#deadlines.forget(hash);
  }

  /** The command frame `asked` was carried out on the mirror as `frame`. */
  #look(operation: Operation, spec: CommandSpec, asked: Buffer, askedStart: number, frame: Buffer, start: number, now: number): void {
    const role = this.#roles[spec.id];
    const { db, workload } = operation;
    if ((role & TOUCHES) !== 0) {
      // A server may drop what is written with KEEPTTL to a key that has expired long ago and is not removed yet.
      const from = keepsTtl(spec, asked, askedStart) ? 0 : operation.submittedAt - MARGIN_MS;
      if (this.#meets(spec, db, asked, askedStart, from, now + MARGIN_MS)) this.sequencer.doubtFrame(db, asked, askedStart, workload, 'expiry-edge');
    }
    if ((role & MOVES) !== 0) this.#move(db, argumentsOf(asked, askedStart));
    if ((role & TIMES) !== 0) this.#time(operation, argumentsOf(frame, start), now);
    if ((role & RUNS) !== 0) this.#run(operation, asked, askedStart, now);
  }

  /** Whether a key of the command may have expired between the two moments. */
  #meets(spec: CommandSpec, db: number, frame: Buffer, start: number, from: number, to: number): boolean {
    if (!this.#deadlines.any(from)) return false;
    const at = spec.singleKey;
    if (at > 0) {
      const argc = locateArguments(frame, start, this.#argStart, this.#argEnd);
      return at < argc && this.#deadlines.within(hashOfKey(db, frame, this.#argStart[at], this.#argEnd[at]), from, to);
    }
    let meets = false;
    this.sequencer.eachKey(frame, start, (key) => {
      meets ||= this.#deadlines.within(hashOfKey(db, key), from, to);
    });
    return meets;
  }

  /** Notes the time to live that the command gave, if it did. */
  #time(operation: Operation, args: readonly Buffer[], now: number): void {
    const hash = hashOfKey(operation.db, args[1]);
    const { submittedAt, answeredAt, ttlFrom } = operation;
    // Whether a condition let it pass is told by its own reply, which a transaction has not.
    const conditional = args.length > 3 && args.slice(3).some((arg) => /^[nx]x$/i.test(arg.toString('latin1')));
    const relative = relativeTtl(args);
    if (relative !== null) {
      const from = ttlFrom === 0 || operation.batch !== null ? submittedAt : submittedAt - answeredAt + ttlFrom;
      this.#note(hash, from, now, relative.ms, conditional);
      return;
    }
    const unixMs = absoluteTtl(args);
    if (unixMs === null) return;
    const { source, target } = this.sequencer.servers;
    const moments = [source, target].map((server) => unixMs - server.unixTimeAtZero);
    const margin = Math.max(source.clockErrorMs, target.clockErrorMs) + CLOCK_MARGIN_MS;
    this.#note(hash, Math.min(...moments) - margin, Math.max(...moments) + margin, 0, conditional);
  }

  /** @param also what was known of the key may hold as well */
  #note(hash: number, from: number, to: number, ms: number, also: boolean): void {
    const drift = ms * DRIFT;
    if (also) this.#deadlines.widen(hash, from + ms - drift, to + ms + drift);
    else this.#deadlines.note(hash, from + ms - drift, to + ms + drift);
  }

  /** RENAME, RENAMENX, COPY, MOVE: the time to live goes with the value. */
  #move(db: number, args: readonly Buffer[]): void {
    const from = hashOfKey(db, args[1]);
    const option = args.findIndex((arg, i) => i > 2 && arg.toString('latin1').toUpperCase() === 'DB');
    const moves = args[0].toString('latin1').toUpperCase() === 'MOVE';
    const to = moves ? hashOfKey(Number(args[2].toString()), args[1]) : hashOfKey(option === -1 ? db : Number(args[option + 1].toString()), args[2]);
    this.#deadlines.copy(from, to);
  }

  /** A script may have given times to live; only the servers can tell which. */
  #run(operation: Operation, frame: Buffer, start: number, now: number): void {
    if (this.sequencer.scripts.find(argumentsOf(frame, start))?.setsTtl === false) return;
    const keys: Buffer[] = [];
    this.sequencer.eachKey(frame, start, (key, access) => {
      if ((access & WRITES) !== 0) keys.push(Buffer.from(key));
    });
    for (const key of keys) {
      const hash = hashOfKey(operation.db, key);
      // A time to live that was lengthened since is found when the old one runs out: the key is copied then.
      if (!this.#measuring.has(hash) && this.#deadlines.earliest(hash) <= now) void this.#measure(operation, key, hash);
    }
  }

  async #measure(operation: Operation, key: Buffer, hash: number): Promise<void> {
    const { db } = operation;
    this.#measuring.add(hash);
    try {
      const { authority, mirror, from, to } = await pttlOnBoth(this.sequencer, operation, key);
      if (authority === null || mirror === null) return;
      if (authority < 0 !== mirror < 0) this.sequencer.doubtKey(db, key, 'expiry-edge');
      else if (authority < 0) this.#deadlines.forget(hash);
      else {
        this.#note(hash, from + Math.min(authority, mirror) - authority, to + Math.max(authority, mirror) - authority, authority, false);
        if (Math.abs(authority - mirror) > TTL_TOLERANCE_MS + to - from) this.sequencer.doubtKey(db, key, 'ttl-lag');
      }
    } catch {
      this.sequencer.doubtKey(db, key, 'ttl-unknown');
    } finally {
      this.#measuring.delete(hash);
    }
  }
}

const [THREE, CR] = ['3'.charCodeAt(0), 13];

/** Whether the mirror is told SET … KEEPTTL. */
function keepsTtl(spec: CommandSpec, frame: Buffer, start: number): boolean {
  if (spec.name === 'incrbyfloat') return true;
  return spec.name === 'set' && argumentsOf(frame, start).some((arg, i) => i > 2 && arg.toString('latin1').toUpperCase() === 'KEEPTTL');
}
