/**
 * Fields of hashes that expire at the source (Redis 7.4, Valkey 9), where the target cannot hold that and the plan says
 * `hashFieldTtl: strip`. The copy has no times to live. What the source removes is removed from the mirror by another
 * copy:
 *
 *   copied without times to live ──▶ the next field expires at … ──▶ shortly before, the key is a suspect
 *                          ▲                                                      │
 *                          └── copied again, until the source has removed it ◀────┘
 *
 * A key that is known here is noted in the journal, as a suspect is: the next process copies it, and knows it again.
 */
import { monotonicMs } from '../io/clock.js';
import { after, clearTimer, type Timer } from '../io/timers.js';
import type { Journal } from '../storage/journal.js';
import type { Workload } from '../route/router.js';
import type { Side } from '../route/stage.js';
import type { FieldTtls, TimedKey } from '../pipeline/suspicion.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { keyId } from './suspects.js';

/** Keys are looked at together that are due within so many ms. */
const SPAN_MS = 100;
/** So long before a field expires its key is suspect: clocks are read with an error. */
const EDGE_MS = 50;
/** A field that the source has not removed yet is looked for again after so long, in the end. */
const AGAIN_MS = 2_000;

interface Tracked {
  readonly db: number;
  readonly key: Buffer;
  readonly workload: Workload;
  /** When its next field expires, in ms of the monotonic clock. */
  readonly at: number;
}

export class FieldTtlTracker implements FieldTtls {
  stripped = 0;
  readonly #keys = new Map<string, Tracked>();
  /** Keys by the span in which they are due. */
  readonly #due = new Map<number, Set<string>>();
  #timer: Timer | undefined;

  constructor(
    private readonly sequencer: Pick<Sequencer, 'servers' | 'suspects'>,
    private readonly journal: Pick<Journal, 'noteKey'>,
  ) {}

  get size(): number {
    return this.#keys.size;
  }

  now(side: Side): number {
    return monotonicMs() + this.#offset(side);
  }

  /** What the server's clock shows at the least, less our monotonic one: nothing is taken to have expired early. */
  #offset(side: Side): number {
    const { unixTimeAtZero, errorMs } = this.sequencer.servers[side].clock;
    return unixTimeAtZero - errorMs;
  }

  copied({ db, key, workload }: TimedKey, side: Side, fields: number, expired: number, next: number): boolean {
    this.stripped += fields;
    const id = keyId(db, key);
    // What may have expired by now, and may not, is looked at again.
    const soonest = next - this.#offset(side) - 2 * this.sequencer.servers[side].clock.errorMs;
    const now = monotonicMs();
    const at = expired > 0 ? Math.min(soonest, now + AGAIN_MS) : soonest;
    if (!this.#keys.has(id)) this.journal.noteKey(db, key, 0, key.length);
    this.#keys.set(id, { db, key: Buffer.from(key), workload, at });
    this.#schedule(id, at);
    return expired === 0 && soonest > now + SPAN_MS + EDGE_MS;
  }

  forget({ db, key }: Pick<TimedKey, 'db' | 'key'>): void {
    if (this.#keys.size > 0) this.#keys.delete(keyId(db, key));
  }

  /** What one key held is in another one now. */
  moved(fromDb: number, from: Buffer, toDb: number, to: Buffer): void {
    if (this.#keys.has(keyId(fromDb, from))) this.sequencer.suspects.key(toDb, to, 'field-ttl');
  }

  /** Two databases were swapped. */
  swapped(a: number, b: number): void {
    for (const { db, key } of [...this.#keys.values()])
      if (db === a || db === b) for (const each of [a, b]) this.sequencer.suspects.key(each, key, 'field-ttl');
  }

  /**
   * Stages have changed. A key that the target answers for from now on has fields there that never expire: the source
   * gets it as it is there, for it would remove them.
   */
  stagesMoved(): void {
    for (const [id, { db, key, workload }] of this.#keys) {
      if (workload.rule(key, 0, key.length).authority === 'source') continue;
      this.#keys.delete(id);
      this.sequencer.suspects.key(db, key, 'field-ttl');
    }
  }

  /** Notes again, in the journal's next file, what is to be copied again. */
  carry(): void {
    for (const { db, key } of this.#keys.values()) this.journal.noteKey(db, key, 0, key.length);
  }

  close(): void {
    clearTimer(this.#timer);
    this.#keys.clear();
  }

  #schedule(id: string, at: number): void {
    if (at === Infinity) return;
    const span = Math.floor(at / SPAN_MS);
    const due = this.#due.get(span);
    if (due === undefined) this.#due.set(span, new Set([id]));
    else due.add(id);
    this.#timer ??= after(SPAN_MS / 2, () => this.#look()).unref();
  }

  #look(): void {
    this.#timer = undefined;
    const until = Math.floor((monotonicMs() + EDGE_MS) / SPAN_MS);
    for (const [span, ids] of this.#due) {
      if (span > until) continue;
      this.#due.delete(span);
      for (const id of ids) {
        const tracked = this.#keys.get(id);
        // Otherwise it was copied since, and is due another time.
        if (tracked === undefined || Math.floor(tracked.at / SPAN_MS) !== span) continue;
        this.#keys.delete(id);
        this.sequencer.suspects.key(tracked.db, tracked.key, 'field-ttl');
      }
    }
    if (this.#due.size > 0) this.#timer = after(SPAN_MS / 2, () => this.#look()).unref();
  }
}
