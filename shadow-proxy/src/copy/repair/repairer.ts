/**
 * repair: suspects are copied again from their authority, on their own, as soon as both servers answer. What was
 * suspected again while it was being copied is copied once more.
 *
 * Repairs are frozen while it is not certain that the authority is still the server under which the keys were
 * last clean.
 *
 * Room: copy/repair: copy suspects again; restore what a restarted authority lost.
 * Called by: copy/job, health, shard.
 * Calls: io, resp, compare, route, upstream, script, pipeline, suspects, copy/key, copy/large, copy/verify.
 */
import type { Logger } from 'pino';
import { monotonicMs } from '../../io/clock.js';
import type { Suspect, Suspects } from '../../suspects/suspects.js';
import type { DeferredPair } from '../../suspects/deferred.js';
import { keyId } from '../../suspects/suspects.js';
import type { Owners } from '../../route/owner.js';
import type { Workload } from '../../route/router.js';
import { otherSide } from '../../route/stage.js';
import { Ring } from '../../io/ring.js';
import { after, clearTimer, nextTurn, type Timer } from '../../io/timers.js';
import type { Authorities } from '../../pipeline/authorities.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { BackOff } from './back-off.js';
import { copyKey, CopyError, refusalOfMirror } from '../key/copier.js';
import { copyLarge } from '../large/large.js';
import { keysOf, type Recheck } from './recheck.js';
import { isLarge, mayBeLarge, onLane, sizeOf, usedBytes, type KeySize, type Thresholds } from '../large/size.js';

const CONCURRENCY = 64;
const RETRY_MS = 250;
/** A copy that came late is made again after a while that doubles, in ms. */
const LATE_MS = 50;
const MAX_LATE_MS = 2_000;

/**
 * A key whose copy is larger is left alone for a while after it: a millisecond for so many bytes, at most so long (a
 * flip waits for less).
 */
const LARGE_BYTES = 32 * 1024;
const REST_BYTES_PER_MS = 4 * 1024;
const MAX_REST_MS = 400;
/** A key that moves all the time during a chunked copy is tried again after so long. */
const MOVING_MS = 30_000;
/** While the mirror has no memory left it is tried so often. */
const FULL_MS = 1_000;
/**
 * What moves all the time is copied whole up to so many times the size from which on a key is large: no server takes 20
 * ms for that.
 */
const BEARABLE = 2;
/** Reasons of keys in which a reply has differed: the authority may hold other data since a moment. */
const DIFFERED: ReadonlySet<string> = new Set(['mismatch', 'evicted']);
/** How many large keys are remembered. */
const MAX_RESTING = 10_000;

/** Made once: repairs are tried again and again until they may go on. */
const HELD_ERROR = new Error('a flip or an exclusive command is in progress');
const NO_MIRROR_ERROR = new Error('the mirror is disconnected');
const FULL = 'the mirror has no memory left';
/** Not worth a log line. */
const NOT_NOW: ReadonlySet<string> = new Set([HELD_ERROR.message, NO_MIRROR_ERROR.message, FULL]);

export interface RepairerContext {
  /** Whether the kit wrote every key of a workload on the mirror. */
  readonly permissions: { isOurs(workload: Workload): boolean };
  readonly sequencer: Sequencer;
  readonly suspects: Suspects;
  /** Compares again what could not be compared until a key is copied. */
  readonly recheck: Recheck;
  readonly authorities: Pick<Authorities, 'frozen'>;
  /** Whether connections that were lost with commands unanswered are seen to be closed. */
  allClosed(): boolean;
  /** From which size on a key is copied in chunks. */
  readonly large: Thresholds;
  readonly logger: Logger;
  /** Whether a key may be another shard's; null if all keys are this shard's. */
  readonly isContested: ((db: number, key: Buffer) => Promise<boolean>) | null;
  /** Null if all keys of the target are this shard's. */
  readonly owners: Owners | null;
}

export class Repairer {
  repaired = 0;
  /** Foreign keys that were suspect, for a client read them, and that stay as they are. */
  keptForeign = 0;
  readonly #queue = new Ring<Suspect>();
  readonly #queued = new Set<Suspect>();
  /** Being copied now. */
  readonly #repairing = new Set<Suspect>();
  /** Until when a large key, by its id, is not copied again, in ms of the monotonic clock. */
  readonly #restUntil = new Map<string, number>();
  readonly #resting = new Set<Suspect>();
  /** Large keys, by their ids, that moved during their chunked copy. */
  readonly #moved = new Set<string>();
  readonly #backOff = new BackOff((suspect) => this.#enqueue(suspect));
  /** Until when nothing is copied, in ms of the monotonic clock: the mirror has no memory left. */
  #fullUntil = 0;
  #scheduled = false;
  #timer: Timer | undefined;
  #closed = false;

  constructor(private readonly by: RepairerContext) {}

  /** A key is suspect (again). */
  marked(suspect: Suspect): void {
    if (this.#queued.has(suspect) || this.#repairing.has(suspect) || this.#resting.has(suspect)) return;
    if (!this.#backOff.hurries(suspect)) this.#enqueue(suspect);
  }

  #enqueue(suspect: Suspect): void {
    this.#queued.add(suspect);
    this.#queue.push(suspect);
    this.#schedule();
  }

  /** Tries again what could not be done: a server is connected again, or repairs are allowed again. */
  wake(): void {
    this.#backOff.wake();
    for (const suspect of this.by.suspects.all()) if (!this.#backOff.has(suspect)) this.marked(suspect);
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    clearTimer(this.#timer);
    this.#backOff.close();
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    nextTurn(() => {
      this.#scheduled = false;
      this.#work();
    });
  }

  #later(): void {
    this.#timer ??= after(RETRY_MS, () => {
      this.#timer = undefined;
      this.#work();
    });
  }

  #work(): void {
    while (this.#repairing.size < CONCURRENCY && this.#queue.length > 0 && !this.#closed) {
      if (this.by.authorities.frozen !== null) return;
      if (this.by.sequencer.blocked || !this.by.allClosed() || monotonicMs() < this.#fullUntil) return this.#later();
      const suspect = this.#queue.shift()!;
      this.#queued.delete(suspect);
      const id = keyId(suspect.db, suspect.key);
      if (this.by.suspects.get(id) !== suspect) {
        this.#backOff.done(suspect);
        continue;
      }
      const rest = this.by.sequencer.suspects.chunked.has(id)
        ? RETRY_MS
        : (this.#restUntil.get(id) ?? 0) - monotonicMs();
      if (rest > 0) {
        this.#backOff.done(suspect);
        this.#resting.add(suspect);
        after(rest, () => {
          this.#resting.delete(suspect);
          this.marked(suspect);
        }).unref();
        continue;
      }
      this.#restUntil.delete(id);
      this.#repairing.add(suspect);
      void this.#repair(suspect).then((why) => {
        this.#repairing.delete(suspect);
        const isSuspect = this.by.suspects.get(id) === suspect;
        if (why !== null && isSuspect) this.#failed(suspect, why);
        else {
          this.#backOff.done(suspect);
          // The key became suspect again.
          if (isSuspect) this.marked(suspect);
        }
        this.#schedule();
      });
    }
  }

  /** Said once for all keys that fail for one reason. */
  #failed(suspect: Suspect, why: string): void {
    const isNew = !this.#closed && this.#backOff.failed(suspect, why, why === HELD_ERROR.message);
    if (!isNew || NOT_NOW.has(why)) return;
    const { workload, db, reason } = suspect;
    this.by.logger.warn({ workload: workload.name, db, reason, why }, 'a suspect could not be repaired yet');
  }

  /** What is changed all the time, and is large, is not copied all the time. */
  #rest(id: string, ms: number): void {
    if (this.#restUntil.size >= MAX_RESTING) this.#restUntil.clear();
    this.#restUntil.set(id, monotonicMs() + ms);
  }

  /**
   * A key that is too large to be read and written at once. False if it has to be all the same: it moves whenever it
   * is copied in chunks, such as a log that scripts write to without declaring it, and is not much too large.
   */
  async #repairInChunks({ db, key, workload }: Suspect, size: KeySize): Promise<boolean> {
    const id = keyId(db, key);
    const bearable = !isLarge(size, {
      bytes: this.by.large.bytes * BEARABLE,
      elements: this.by.large.elements * BEARABLE,
    });
    if (bearable && this.#moved.has(id)) return false;
    const { outcome, why } = await copyLarge({
      sequencer: this.by.sequencer,
      suspects: this.by.suspects,
      workload,
      db,
      key,
    });
    if (outcome === 'moving') {
      if (this.#moved.size >= MAX_RESTING) this.#moved.clear();
      this.#moved.add(id);
      if (bearable) return false;
      this.#rest(id, MOVING_MS);
      throw new Error(
        `it changes during its chunked copy (${why}): write less to it for a while, or raise limits.largeKeyBytes and limits.largeKeyElements`,
      );
    }
    this.#moved.delete(id);
    if (this.by.suspects.get(id) === undefined) this.repaired++;
    return true;
  }

  #keep({ workload, db, key }: Suspect): void {
    this.by.sequencer.expiry.kept(db, key);
    if (this.keptForeign++ > 0) return;
    this.by.logger.warn(
      { workload: workload.name, db },
      'a client read a foreign key: only the target has it, and the proxy did not write it. It is kept; shadow-compare verify lists such keys',
    );
  }

  /** Null if it was copied, or is no suspect any more; else why it was not. */
  async #repair(suspect: Suspect): Promise<string | null> {
    const { db, key, workload } = suspect;
    const id = keyId(db, key);
    let deferred: readonly DeferredPair[] = [];
    try {
      const rule = workload.position.rule(key, 0, key.length);
      if (!rule.mirrorsWrites) {
        this.by.suspects.clear(suspect, suspect.generation);
        return null;
      }
      const refused = refusalOfMirror(this.by.sequencer, rule.authority, db);
      if (refused !== null) throw refused;
      if (this.by.isContested !== null && (await this.by.isContested(db, key)))
        throw new Error('another source holds it, too: set `owns` so that the key has one shard');
      const lanes = this.by.sequencer.lanes[rule.authority];
      const lane = await lanes.open({ db, protocol: 2, credentials: lanes.server.endpoint.credentials });
      if (lane.closed) throw new Error('the connection to the authority was lost');
      const asker = onLane(this.by.sequencer, lane, workload, db);
      const used = usedBytes(await asker.ask('MEMORY', 'USAGE', key));
      // What the authority has lost because it is another server by now must not be lost on the mirror.
      if (!used || DIFFERED.has(suspect.reason)) await lanes.server.reidentify();
      if (mayBeLarge(used, this.by.large)) {
        const size = await sizeOf(asker, key);
        if (isLarge(size, this.by.large) && (await this.#repairInChunks(suspect, size))) return null;
      }
      // No other lane may have a write on the key in flight.
      const { permissions, owners } = this.by;
      const locks = lanes.locks(db);
      deferred = this.by.recheck.takeFor(suspect, used);
      await locks.withLock(lane, keysOf(deferred, key), false, async () => {
        if (lane.closed) throw new Error('the connection to the authority was lost');
        if (
          this.by.sequencer.blocked ||
          workload.position.moving ||
          this.by.authorities.frozen !== null ||
          workload.position.rule(key, 0, key.length).authority !== rule.authority
        )
          throw HELD_ERROR;
        if (!this.by.sequencer.mirrors[otherSide(rule.authority)].connected) throw NO_MIRROR_ERROR;
        // As it is asked: what is sent until the answer comes may have happened after it (the authority names what
        // scripts change).
        const { generation } = suspect;
        const copying = copyKey(this.by.sequencer, lane, suspect, {
          // Nothing has written it but, perhaps, a client that bypasses the proxy.
          keeps: () =>
            !suspect.touched && (!permissions.isOurs(workload) || owners?.of(key, 0, key.length) === 'nobody'),
          ordered: (bytes) => {
            suspect.copied = generation;
            if (bytes > LARGE_BYTES) this.#rest(id, Math.min(MAX_REST_MS, bytes / REST_BYTES_PER_MS));
          },
          // At once: what the mirror answers next was written after the copy.
          confirmed: (lateMs) => {
            if (lateMs === 0) suspect.confirmed = generation;
            if (lateMs > 0 && !suspect.lateness.accepts(lateMs)) {
              this.#rest(id, Math.min(MAX_LATE_MS, LATE_MS * 2 ** suspect.lateness.copies));
              this.by.suspects.mark(db, key, workload, 'ttl-lag');
            } else if (this.by.suspects.clear(suspect, generation)) this.repaired++;
          },
        });
        this.by.recheck.ask(lane, deferred, key);
        deferred = [];
        if (!(await copying) && this.by.suspects.clear(suspect, generation)) this.#keep(suspect);
      });
      return null;
    } catch (error) {
      suspect.copied = 0;
      this.by.recheck.giveBack(suspect, deferred);
      const why = (error as Error).message;
      if (error instanceof CopyError && error.code === 'memory') {
        this.by.sequencer.mirrors[
          otherSide(workload.position.rule(key, 0, key.length).authority)
        ].server.refusedForMemory();
        this.#fullUntil = monotonicMs() + FULL_MS;
        return FULL;
      }
      return why;
    }
  }
}
