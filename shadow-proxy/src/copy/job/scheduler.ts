/**
 * Keys on their way: each is copied or verified, as many at once as the pace allows, in the order of the sequencer.
 *
 *   take(keys) ─▶ room? ─▶ turn in the order ─▶ Copy ──────────────────────────▶ ended
 *                                          └─▶ Verification ─▶ differs? again, then Copy to repair
 */
import { monotonicMs } from '../../io/clock.js';
import { after, clearTimer, nextTurn, sleep } from '../../io/timers.js';
import type { Lane } from '../../pipeline/lane.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import type { JobCounts, JobRequest } from '../../storage/job-file.js';
import type { Suspects } from '../../suspects/suspects.js';
import type { Permissions } from '../foreign/permissions.js';
import type { Workload } from '../../route/router.js';
import { otherSide, type Side } from '../../route/stage.js';
import { DatabaseRefused } from '../../upstream/handshake.js';
import { Copy, CopyError, refusalOfMirror } from '../key/copier.js';
import type { CopiedKey } from '../key/key-dump.js';
import { copyLarge } from '../large/large.js';
import { verifyLarge, type LargeDifference } from '../large/verify.js';
import type { RateLimiter } from './rate-limiter.js';
import type { ScannedKey } from './scanner.js';
import { restoreKey } from '../repair/restore.js';
import type { WritesSinceRestart } from '../repair/writes-since-restart.js';
import { Verification, type Difference } from '../verify/verifier.js';

export interface FlowContext {
  readonly sequencer: Sequencer;
  readonly permissions: Pick<Permissions, 'of' | 'isOurs'>;
  readonly suspects: Suspects;
  /** Why nothing may be copied now; null if it may. */
  readonly hindrance: () => string | null;
  /** Whether keys that have begun wait, too: an operator has paused the job, or replicas lag. */
  readonly held: () => boolean;
  /** Whether suspect keys are being copied again. */
  readonly repairs: () => boolean;
  /** What was written since an authority restarted or was replaced; null if that is not known. */
  readonly since: () => WritesSinceRestart | null;
  /** Whether a key that only the mirror has may be deleted there. */
  readonly mayDelete: (workload: Workload, key: Buffer) => boolean;
  /** Called before the delete of such a key is sent. */
  readonly deleting: (workload: Workload, key: Buffer) => void;
  /** Called with a difference that was still there after all retries. */
  readonly report: (key: CopiedKey, difference: Difference | LargeDifference) => void;
  /** A stream that counts its entries wrongly: the copy has those that the authority serves. */
  readonly recounted: (key: CopiedKey) => void;
  /** A key that was not copied, or not verified. */
  readonly failed: (key: CopiedKey, error: CopyError) => void;
}

/** The scan cannot continue without help; the message says why. */
export class Halt extends Error {}

/** How many bytes the keys under way may take, on each server and in the proxy. */
const MAX_BYTES = 32 << 20;
/** Copies and questions that wait for a mirror, in bytes. */
const QUEUED_BYTES = 8 << 20;
const HINDERED_MS = 20;
/** A large key looks so often whether its limits have changed. */
const HELD_MS = 250;
/** A difference is looked at again after so long, so often: it may be the edge of an expiry, or be repaired already. */
const RETRY_MS = 200;
const LOOKS = 3;
/** How often a verification waits for the repair of a suspect, each time twice as long: 6.2 s. */
const WAITS = 5;
const PATIENCE_MS = RETRY_MS * (2 ** WAITS - 1);
/** How many times a large key may begin again because its database has another number. */
const MOST_SWAPS = 10;
/** After a wait in which no repair came, the job waits for none for this long, in ms. */
const HOPELESS_MS = 60_000;

/** How many keys are one operation: their commands run side by side, and clients wait for that. */
const TOGETHER_KEYS = 64;
const TOGETHER_BYTES = 64 << 10;

/** A key until it has ended. */
interface Task extends CopiedKey {
  /** The key is copied in chunks. */
  readonly large: boolean;
  /** Only its mirror had it: it may be a foreign key. A key that has expired since the scan met it is none. */
  readonly extra: boolean;
  /** What it takes in memory while it is under way, about. */
  readonly bytes: number;
  looks: number;
  /** How often it waited for a repair. */
  waits: number;
  /** How often its database got another number during its chunked copy, or comparison. */
  swaps: number;
  readonly ended: () => void;
}

export class CopyScheduler {
  /** Why it waits; null if it goes on. */
  hindrance: string | null = null;
  #halted: Error | null = null;
  /** Keys that have begun and not ended. */
  #underWay = 0;
  /** What these take in memory, about. */
  #bytes = 0;
  /** Operations to authorities that are not answered. */
  #asked = 0;
  #wake: (() => void) | null = null;
  /** With so few keys under way it is woken. */
  #wakeAt = 0;
  /** The large keys that are being copied, one after the other. */
  #largeOnes: Promise<void> = Promise.resolve();
  /** When the job began to wait for repairs, or one last succeeded that a key had waited for. */
  #waitsSince = -Infinity;
  readonly #halting = new AbortController();
  /** The lane that was used last. */
  #lane: Lane | undefined;

  constructor(
    private readonly context: FlowContext,
    private readonly request: JobRequest,
    private readonly counts: () => JobCounts,
    private readonly pace: RateLimiter,
  ) {}

  /** Begins no more; `take` throws the error. */
  halt(error: Error): void {
    this.#halted ??= error;
    this.#halting.abort(this.#halted);
    this.#wake?.();
  }

  /**
   * Resolves when all keys, of the database with that id, have begun; `ended` is called as each ends.
   * @throws what `halt` was given
   */
  async take(id: number, keys: readonly ScannedKey[], ended: () => void): Promise<void> {
    for (let i = 0; i < keys.length;) {
      if (this.#halted !== null) throw this.#halted;
      const end = Math.min(keys.length, i + Math.max(0, this.#room()));
      const tasks: Task[] = [];
      for (; i < end && (this.#bytes < MAX_BYTES || this.#underWay === 0); i++)
        tasks.push(this.#begin(id, keys[i], ended));
      this.#start(tasks, this.request.kind === 'backfill');
      if (i < keys.length) await this.#change();
    }
  }

  /** Resolves when no key is under way. */
  async ended(): Promise<void> {
    while (this.#underWay > 0) await this.#change();
  }

  /** Aborted, with the error, when it is halted. */
  get halting(): AbortSignal {
    return this.#halting.signal;
  }

  /** Why it was halted; null if it was not. */
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
    for (const side of ['source', 'target'] as const)
      for (const lane of sequencer.lanes[side].all()) inFlight += lane.inFlight;
    return this.pace.room(monotonicMs(), this.#underWay, Math.max(0, inFlight - this.#asked));
  }

  /** Resolves when some keys have ended, so that the next ones share a write, or when it is time to look again. */
  #change(): Promise<void> {
    this.#wakeAt = this.#underWay - Math.ceil(this.#underWay / 16);
    const ms = this.hindrance === null ? this.pace.waitMs(monotonicMs()) : HINDERED_MS;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimer(timer);
        this.#wake = null;
        resolve();
      };
      // A shard that has ended leaves keys in flight forever: nothing may wait for them.
      const timer = after(Math.max(1, Math.min(ms || HINDERED_MS, HINDERED_MS)), done).unref();
      this.#wake = () => {
        // What ends in one turn wakes once.
        this.#wake = null;
        nextTurn(done);
      };
    });
  }

  // ── keys under way ──────────────────────────────────────────────────────────────────────────────────────────

  #begin(id: number, { key, bytes, large, extra = false }: ScannedKey, ended: () => void): Task {
    this.#underWay++;
    const { router, swaps } = this.context.sequencer;
    const task: Task = {
      // SWAPDB gives it another number once nothing of it is in flight.
      get db() {
        return swaps.ids.numberOf(id);
      },
      key,
      workload: router.match(key, 0, key.length),
      large,
      extra,
      bytes: large ? 0 : bytes,
      looks: 0,
      waits: 0,
      swaps: 0,
      ended,
    };
    this.#bytes += task.bytes;
    return task;
  }

  /** Keys of one database. */
  #start(tasks: readonly Task[], copies: boolean): void {
    const together: Record<Side, Task[]> = { source: [], target: [] };
    const bytes: Record<Side, number> = { source: 0, target: 0 };
    for (const task of tasks) {
      const { authority, mirrorsWrites } = task.workload.position.rule(task.key, 0, task.key.length);
      if (!mirrorsWrites) {
        this.#end(task);
        continue;
      }
      if (this.request.kind === 'restore') {
        this.#restore(task);
        continue;
      }
      if (task.large) {
        this.#inChunks(task, copies);
        continue;
      }
      if (together[authority].length === TOGETHER_KEYS || bytes[authority] + task.bytes > TOGETHER_BYTES) {
        this.#open(together[authority], authority, copies);
        together[authority] = [];
        bytes[authority] = 0;
      }
      together[authority].push(task);
      bytes[authority] += task.bytes;
    }
    for (const side of ['source', 'target'] as const) this.#open(together[side], side, copies);
  }

  #open(tasks: readonly Task[], authority: Side, copies: boolean): void {
    if (tasks.length === 0) return;
    const { db } = tasks[0];
    const last = this.#lane;
    if (last !== undefined && !last.closed && last.server.side === authority && last.identity.db === db)
      return this.#sendWhenFree(tasks, last, copies);
    const lanes = this.context.sequencer.lanes[authority];
    lanes.open({ db, protocol: 2, credentials: lanes.server.endpoint.credentials }).then(
      (lane) => this.#sendWhenFree(tasks, (this.#lane = lane), copies),
      (problem: Error) => {
        if (!(problem instanceof DatabaseRefused)) return this.#retry(tasks, copies);
        for (const task of tasks) this.#problem(task, new CopyError('authority', problem.message), copies);
      },
    );
  }

  #sendWhenFree(tasks: readonly Task[], lane: Lane, copies: boolean): void {
    const locks = this.context.sequencer.lanes[lane.server.side].locks(lane.identity.db);
    if (!locks.active) return this.#send(tasks, lane, copies);
    const keys = tasks.map(({ key }) => key.toString('latin1'));
    void locks.withLock(lane, keys, false, async () => this.#send(tasks, lane, copies));
  }

  #send(tasks: readonly Task[], lane: Lane, copies: boolean): void {
    const { sequencer } = this.context;
    const { side } = lane.server;
    if (lane.closed || !sequencer.mirrors[otherSide(side)].connected || this.context.hindrance() !== null)
      return this.#retry(tasks, copies);
    const stays = ({ db, key, workload }: Task): boolean =>
      db === lane.identity.db && workload.position.rule(key, 0, key.length).authority === side;
    if (!tasks.every(stays)) return this.#retry(tasks, copies);
    const refused = refusalOfMirror(sequencer, side, lane.identity.db);
    if (refused !== null) {
      for (const task of tasks) this.#problem(task, refused, copies);
      return;
    }
    this.pace.spent(monotonicMs(), tasks.length, 0);
    this.#asked++;
    if (copies) this.#copy(tasks, lane);
    else this.#verify(tasks, lane);
  }

  #copy(tasks: readonly Task[], lane: Lane): void {
    new Copy(this.context.sequencer, lane, tasks, {
      answered: () => void this.#asked--,
      ordered: (bytes) => this.#counted(bytes),
      confirmed: (task, lateMs, removed) => this.#confirmed(task, lateMs > 0, removed),
      keeps: (task) => task.extra && !this.context.mayDelete(task.workload, task.key),
      deleting: (task) => {
        if (task.extra) this.context.deleting(task.workload, task.key);
      },
      kept: (task) => {
        this.counts().keptForeign++;
        this.context.sequencer.expiry.kept(task.db, task.key);
        this.#end(task);
      },
      recounted: (task) => this.context.recounted(task),
      failed: (task, error) => this.#problem(task, error, true),
    }).start();
  }

  #verify(tasks: readonly Task[], lane: Lane): void {
    new Verification(this.context.sequencer, lane, tasks, {
      answered: (bytes) => {
        this.#asked--;
        this.#counted(bytes);
      },
      verified: (task, difference) => this.#verified(task, difference),
      failed: (task, error) => this.#problem(task, error, false),
    }).start();
  }

  #counted(bytes: number): void {
    this.counts().bytes += bytes;
    this.pace.spent(monotonicMs(), 0, bytes);
  }

  #restore(task: Task): void {
    const since = this.context.since();
    if (since === null) {
      this.halt(new Halt('the writes since the authority returned are no longer known'));
      return this.#end(task);
    }
    if (this.context.hindrance() !== null) return this.#retry([task], false);
    this.pace.spent(monotonicMs(), 1, 0);
    restoreKey(this.context.sequencer, since, task).then(
      (outcome) => {
        if (outcome === 'busy' && ++task.looks < LOOKS) return this.#retry([task], false);
        const counts = this.counts();
        this.#looked(task);
        if (outcome === 'restored') counts.repaired++;
        else if (outcome !== 'equal') counts.unsure++;
        this.#end(task);
      },
      (error: CopyError) => this.#problem(task, error, false),
    );
  }

  /** One large key after the other. */
  #inChunks(task: Task, copies: boolean): void {
    this.#largeOnes = this.#largeOnes.then(async () => {
      if (this.#halted !== null) return this.#end(task);
      if (this.context.hindrance() !== null) return this.#retry([task], copies);
      this.pace.spent(monotonicMs(), 1, 0);
      const { db, key, workload } = task;
      try {
        const { sequencer, suspects } = this.context;
        const options = {
          sequencer,
          suspects,
          workload,
          db,
          key,
          signal: this.#halting.signal,
          pace: (size: number) => this.#paced(size),
        };
        if (!copies) return this.#compared(task, await verifyLarge(options));
        const { outcome, bytes, why, miscounted } = await copyLarge(options);
        if (miscounted) this.context.recounted(task);
        this.counts().bytes += bytes;
        if (outcome !== 'moving') this.#count();
        else
          this.#refused(
            task,
            new CopyError(
              'moving',
              `it changed three times during its chunked copy (${why}): write less to it for a while; the copy is retried`,
            ),
          );
        this.#end(task);
      } catch (error) {
        this.#problem(
          task,
          error instanceof CopyError ? error : new CopyError('lost', (error as Error).message),
          copies,
        );
      }
    });
  }

  async #paced(bytes: number): Promise<void> {
    this.pace.spent(monotonicMs(), 0, bytes);
    for (;;) {
      const ms = this.context.held() ? HINDERED_MS : Math.min(this.pace.waitMs(monotonicMs()), HELD_MS);
      if (ms === 0 || this.#halted !== null) return;
      await sleep(ms);
    }
  }

  #retry(tasks: readonly Task[], copies: boolean, ms = RETRY_MS): void {
    void sleep(ms).then(() => {
      if (this.#halted === null) this.#start(tasks, copies);
      else for (const task of tasks) this.#end(task);
    });
  }

  #confirmed(task: Task, late: boolean, removed: 'deleted' | 'neither' | null): void {
    if (removed === 'deleted') this.counts().deleted++;
    if (removed === null || this.request.kind === 'verify') this.#count();
    // Its time to live is wrong by the lateness: it becomes a suspect, and is repaired.
    if (late) this.context.suspects.mark(task.db, task.key, task.workload, 'ttl-lag');
    this.#end(task);
  }

  #count(): void {
    if (this.request.kind === 'backfill') this.counts().copied++;
    else this.counts().repaired++;
  }

  /** A key was compared, whatever came of it. */
  #looked({ workload: { name } }: Task): void {
    const counts = this.counts();
    counts.verified++;
    counts.verifiedBy[name] = (counts.verifiedBy[name] ?? 0) + 1;
  }

  #compared(task: Task, difference: LargeDifference | null | 'moving'): void {
    if (difference !== 'moving') return this.#verified(task, difference);
    this.#looked(task);
    this.counts().unsure++;
    this.#end(task);
  }

  #verified(task: Task, difference: Difference | LargeDifference | null): void {
    const counts = this.counts();
    if (difference === null) {
      if (task.waits > 0) this.#waitsSince = monotonicMs();
      this.#looked(task);
      return this.#end(task);
    }
    const isSuspect = this.context.repairs() && this.context.suspects.has(task.db, task.key);
    if (isSuspect && this.#waits(task)) {
      task.looks = 0;
      return this.#retry([task], false, RETRY_MS * 2 ** (task.waits - 1));
    }
    if (++task.looks < LOOKS && !isSuspect) return this.#retry([task], false);
    this.#looked(task);
    if (!difference.sure) return this.request.repair ? this.#repair(task) : this.#end(task);
    // The proxy knows of it: it is being copied again and again, or cannot be.
    if (isSuspect) counts.unsure++;
    else {
      const kind =
        difference.kind === 'extra' && !this.context.permissions.isOurs(task.workload) ? 'foreign' : difference.kind;
      if (kind === 'foreign') this.context.sequencer.expiry.kept(task.db, task.key);
      counts.differences[kind] = (counts.differences[kind] ?? 0) + 1;
      this.context.report(task, { ...difference, kind });
      if (this.request.repair) return this.#repair(task);
    }
    this.#end(task);
  }

  /** Whether the repair of a suspect is waited for: by each key a while, and by all of them while repairs succeed. */
  #waits(task: Task): boolean {
    if (++task.waits > WAITS) return false;
    const waited = monotonicMs() - this.#waitsSince;
    if (waited > HOPELESS_MS) this.#waitsSince = monotonicMs();
    return waited > HOPELESS_MS || waited < PATIENCE_MS;
  }

  /** Repairs a key that differs. The authority is checked first: nothing is copied from a server that was replaced. */
  #repair(task: Task): void {
    const { authority } = task.workload.position.rule(task.key, 0, task.key.length);
    this.context.sequencer.servers[authority].reidentify().then(
      () => this.#start([task], true),
      () => this.#retry([task], true),
    );
  }

  #problem(task: Task, error: CopyError, copies: boolean): void {
    if (error.code === 'lost' || error.code === 'declined') return this.#retry([task], copies);
    if (error.code === 'swapped') {
      if (++task.swaps < MOST_SWAPS) return this.#retry([task], copies, 0);
      const work = copies ? 'copy' : 'comparison';
      const why = `SWAPDB gave its database another number ${MOST_SWAPS} times during its chunked ${work}: send none for a while, or raise limits.largeKeyBytes and limits.largeKeyElements`;
      this.#refused(task, new CopyError('swapped', why));
      return this.#end(task);
    }
    if (error.code === 'memory')
      this.halt(new Halt(`${error.message}; give it more memory, and start again: copied keys are kept`));
    else this.#refused(task, error);
    this.#end(task);
  }

  #refused(task: Task, error: CopyError): void {
    this.counts().failed++;
    this.context.failed(task, error);
  }

  #end(task: Task): void {
    this.#underWay--;
    this.#bytes -= task.bytes;
    // What was halted has not ended: the next scan comes by again.
    if (this.#halted === null) task.ended();
    if (this.#underWay <= this.#wakeAt) this.#wake?.();
  }
}
