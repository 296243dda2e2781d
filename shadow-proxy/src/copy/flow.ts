/**
 * Keys on their way: each is copied or verified, as many at once as the pace allows, in the order of the sequencer.
 *
 *   take(keys) ─▶ room? ─▶ turn in the order ─▶ KeyCopy ──────────────────────────▶ ended
 *                                          └─▶ KeyVerification ─▶ differs? again, then KeyCopy to repair
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lane } from '../lane/lane.js';
import type { Sequencer } from '../lane/sequencer.js';
import type { JobCounts, JobRequest } from '../record/job-file.js';
import type { Suspects } from '../record/suspects.js';
import type { Workload } from '../route/router.js';
import { otherSide } from '../route/stage.js';
import { CopyError, KeyCopy, type Copied, type CopyEvents } from './copier.js';
import { copyLarge } from './large/large.js';
import type { Pace } from './pace.js';
import type { ScannedKey } from './scanner.js';
import { restoreKey } from './restore.js';
import type { Since } from './since.js';
import { KeyVerification, type Difference, type VerifyEvents } from './verifier.js';

export type KeyOnItsWay = Pick<Copied, 'db' | 'key' | 'workload'>;

export interface FlowContext {
  readonly sequencer: Sequencer;
  readonly suspects: Suspects;
  /** Why nothing may be copied now; null where it may. */
  readonly hindrance: () => string | null;
  /** Whether keys that are in doubt are being copied again. */
  readonly heals: () => boolean;
  /** What was written since an authority came back as another process; null where that is not known. */
  readonly since: () => Since | null;
  /** A difference that stays. */
  readonly report: (key: Copied, difference: Difference) => void;
  /** A key that was not copied, or not verified. */
  readonly failed: (key: KeyOnItsWay, error: CopyError) => void;
}

/** The walk cannot go on by itself; the message says why. */
export class Halt extends Error {}

/** What keys under way may take, on each server and here, in bytes. */
const MAX_BYTES = 32 << 20;
/** Copies and questions that wait for a mirror, in bytes. */
const QUEUED_BYTES = 8 << 20;
const HINDERED_MS = 20;
/** A difference is looked at again after so long, so often: it may be the edge of an expiry, or be healed already. */
const AGAIN_MS = 200;
const LOOKS = 3;

/** A key until it has ended. */
interface Task {
  readonly db: number;
  readonly key: Buffer;
  readonly workload: Workload;
  /** It is copied in parts. */
  readonly large: boolean;
  /** What it takes in memory while it is under way, about. */
  readonly bytes: number;
  looks: number;
  /** Its authority has not answered yet. */
  asking: boolean;
  readonly ended: () => void;
}

export class Flow implements CopyEvents, VerifyEvents {
  /** Why it waits; null where it goes on. */
  hindrance: string | null = null;
  #halted: Error | null = null;
  readonly #tasks = new Map<Copied, Task>();
  /** Keys that have begun and not ended. */
  #underWay = 0;
  /** What these take in memory, about. */
  #bytes = 0;
  /** Those of them whose authority has not answered. */
  #asked = 0;
  #wake: (() => void) | null = null;
  /** With so few keys under way it is woken. */
  #wakeAt = 0;
  /** The large keys that are being copied, one after the other. */
  #largeOnes: Promise<void> = Promise.resolve();
  readonly #halting = new AbortController();
  /** The lane that was used last. */
  #lane: Lane | undefined;

  constructor(
    private readonly context: FlowContext,
    private readonly request: JobRequest,
    private readonly counts: () => JobCounts,
    private readonly pace: Pace,
  ) {}

  /** Begins no more; `take` throws the error. */
  halt(error: Error): void {
    this.#halted ??= error;
    this.#halting.abort();
    this.#wake?.();
  }

  /**
   * Resolves when all keys have begun; `ended` is called as each ends.
   * @throws what `halt` was given
   */
  async take(db: number, keys: readonly ScannedKey[], ended: () => void): Promise<void> {
    for (let i = 0; i < keys.length; ) {
      if (this.#halted !== null) throw this.#halted;
      const end = Math.min(keys.length, i + Math.max(0, this.#room()));
      for (; i < end && (this.#bytes < MAX_BYTES || this.#underWay === 0); i++) this.#begin(db, keys[i], ended);
      if (i < keys.length) await this.#change();
    }
  }

  /** Resolves when no key is under way. */
  async ended(): Promise<void> {
    while (this.#underWay > 0) await this.#change();
  }

  /** Why it was halted; null where it was not. */
  get halted(): Error | null {
    return this.#halted;
  }

  // ── when ────────────────────────────────────────────────────────────────────────────────────────────────────

  #room(): number {
    const { sequencer } = this.context;
    this.hindrance = this.context.hindrance();
    if (this.hindrance !== null) return 0;
    if (sequencer.mirrors.source.queuedBytes + sequencer.mirrors.target.queuedBytes > QUEUED_BYTES) return 0;
    let inFlight = 0;
    for (const side of ['source', 'target'] as const) for (const lane of sequencer.lanes[side].all()) inFlight += lane.inFlight;
    return this.pace.room(performance.now(), this.#underWay, Math.max(0, inFlight - 2 * this.#asked));
  }

  /** Resolves when some keys have ended, so that the next ones share a write, or when it is time to look again. */
  #change(): Promise<void> {
    this.#wakeAt = this.#underWay - Math.ceil(this.#underWay / 4);
    const ms = this.hindrance === null ? this.pace.waitMs(performance.now()) : HINDERED_MS;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, Math.max(1, Math.min(ms || HINDERED_MS, HINDERED_MS)));
      this.#wake = () => {
        // What ends in one turn wakes once.
        this.#wake = null;
        setImmediate(done);
      };
    });
  }

  // ── one key ─────────────────────────────────────────────────────────────────────────────────────────────────

  #begin(db: number, { key, bytes, large }: ScannedKey, ended: () => void): void {
    this.#underWay++;
    this.pace.spent(performance.now(), 1, 0);
    const task: Task = { db, key, workload: this.context.sequencer.router.match(key, 0, key.length), large, bytes: large ? 0 : bytes, looks: 0, asking: false, ended };
    this.#bytes += task.bytes;
    this.#start(task, this.request.kind === 'backfill');
  }

  #start(task: Task, copies: boolean): void {
    const { lanes } = this.context.sequencer;
    const { db, key, workload } = task;
    const { authority, mirrorsWrites } = workload.rule(key, 0, key.length);
    if (!mirrorsWrites) return this.#end(task);
    if (this.request.kind === 'restore') return this.#restore(task);
    if (task.large && copies) return this.#inParts(task);
    const last = this.#lane;
    if (last !== undefined && !last.closed && last.server.side === authority && last.identity.db === db) return this.#inTurn(task, last, copies);
    const { credentials } = lanes[authority].server.endpoint;
    lanes[authority].open({ db, protocol: 2, credentials }).then(
      (lane) => this.#inTurn(task, (this.#lane = lane), copies),
      () => this.#again(task, copies),
    );
  }

  #inTurn(task: Task, lane: Lane, copies: boolean): void {
    const order = this.context.sequencer.lanes[lane.server.side].order(task.db);
    if (!order.active) return this.#send(task, lane, copies);
    void order.inTurn(lane, [task.key.toString('latin1')], false, async () => this.#send(task, lane, copies));
  }

  #send(task: Task, lane: Lane, copies: boolean): void {
    const { sequencer } = this.context;
    const { db, key, workload } = task;
    const stays = workload.rule(key, 0, key.length).authority === lane.server.side && sequencer.mirrors[otherSide(lane.server.side)].connected;
    if (lane.closed || !stays || this.context.hindrance() !== null) return this.#again(task, copies);
    const way = copies ? new KeyCopy(sequencer, lane, workload, db, key, this) : new KeyVerification(sequencer, lane, workload, db, key, this);
    this.#tasks.set(way, task);
    this.#asked++;
    task.asking = true;
    way.start();
  }

  #restore(task: Task): void {
    const since = this.context.since();
    if (since === null) {
      this.halt(new Halt('what was written since the authority came back is not known any more'));
      return this.#end(task);
    }
    if (this.context.hindrance() !== null) return this.#again(task, false);
    restoreKey(this.context.sequencer, since, task).then(
      (outcome) => {
        if (outcome === 'busy' && ++task.looks < LOOKS) return this.#again(task, false);
        const counts = this.counts();
        counts.verified++;
        if (outcome === 'restored') counts.repaired++;
        else if (outcome !== 'equal') counts.unsure++;
        this.#end(task);
      },
      (error: CopyError) => this.#problem(task, task, error, false),
    );
  }

  /** One large key after the other. */
  #inParts(task: Task): void {
    this.#largeOnes = this.#largeOnes.then(async () => {
      if (this.#halted !== null) return this.#end(task);
      if (this.context.hindrance() !== null) return this.#again(task, true);
      const { db, key, workload } = task;
      const way = { db, key, workload };
      try {
        const { outcome, bytes, why } = await copyLarge({ sequencer: this.context.sequencer, workload, db, key, signal: this.#halting.signal, pace: (size) => this.#paced(size) });
        this.counts().bytes += bytes;
        if (outcome !== 'moving') this.#count();
        else this.#refused(way, new CopyError('moving', `it moved three times while it was copied in parts (${why}): write less to it for a while; it is tried again`));
        this.#end(task);
      } catch (error) {
        this.#problem(way, task, error instanceof CopyError ? error : new CopyError('lost', (error as Error).message), true);
      }
    });
  }

  async #paced(bytes: number): Promise<void> {
    this.pace.spent(performance.now(), 0, bytes);
    const ms = this.pace.waitMs(performance.now());
    if (ms > 0) await sleep(ms);
  }

  #again(task: Task, copies: boolean): void {
    void sleep(AGAIN_MS).then(() => {
      if (this.#halted !== null) this.#end(task);
      else this.#start(task, copies);
    });
  }

  ordered(way: Copied, bytes: number): void {
    this.#answered(this.#tasks.get(way)!);
    this.counts().bytes += bytes;
    this.pace.spent(performance.now(), 0, bytes);
  }

  #answered(task: Task): void {
    if (task.asking) this.#asked--;
    task.asking = false;
  }

  confirmed(way: Copied, late: boolean): void {
    const task = this.#over(way);
    this.#count();
    // Its time to live is off by how late it is: the healer sees to that.
    if (late) this.context.suspects.mark(task.db, task.key, task.workload, 'ttl-lag');
    this.#end(task);
  }

  #count(): void {
    if (this.request.kind === 'backfill') this.counts().copied++;
    else this.counts().repaired++;
  }

  verified(way: Copied, difference: Difference | null): void {
    const task = this.#over(way);
    const counts = this.counts();
    if (difference === null) {
      counts.verified++;
      return this.#end(task);
    }
    if (++task.looks < LOOKS) return this.#again(task, false);
    counts.verified++;
    // The proxy knows of it: it is being copied again and again, or cannot be.
    if (this.context.heals() && this.context.suspects.has(task.db, task.key)) counts.unsure++;
    else {
      counts.differences[difference.kind] = (counts.differences[difference.kind] ?? 0) + 1;
      this.context.report(way, difference);
      if (this.request.repair) return this.#start(task, true);
    }
    this.#end(task);
  }

  failed(way: Copied, error: CopyError): void {
    this.#problem(way, this.#over(way), error, way instanceof KeyCopy);
  }

  #problem(way: KeyOnItsWay, task: Task, error: CopyError, copies: boolean): void {
    if (error.code === 'lost' || error.code === 'declined') return this.#again(task, copies);
    if (error.code === 'memory') this.halt(new Halt(`${error.message}; give it more memory, and begin again: what is copied stays`));
    else this.#refused(way, error);
    this.#end(task);
  }

  #refused(way: KeyOnItsWay, error: CopyError): void {
    this.counts().failed++;
    this.context.failed(way, error);
  }

  #over(way: Copied): Task {
    const task = this.#tasks.get(way)!;
    this.#tasks.delete(way);
    this.#answered(task);
    return task;
  }

  #end(task: Task): void {
    this.#underWay--;
    this.#bytes -= task.bytes;
    // What was halted has not ended: the next walk comes by again.
    if (this.#halted === null) task.ended();
    if (this.#underWay <= this.#wakeAt) this.#wake?.();
  }
}
