/**
 * Fields of hashes that expire at the source (Redis 7.4, Valkey 9), if the target has no such expiry and the plan says
 * `hashFieldTtl: strip`. Copies have no times to live. When the source removes a field, another copy removes it from
 * the mirror:
 *
 *   copied without times to live ──▶ the next field expires at … ──▶ shortly before, the key is a suspect
 *                          ▲                                                      │
 *                          └── copied again, until the source has removed it ◀────┘
 *
 * Each such key is noted in the journal, like a suspect: the next process copies it, and so finds its fields again.
 */
import { monotonicMs } from '../io/clock.js';
import { after, clearTimer, type Timer } from '../io/timers.js';
import type { Journal } from '../storage/journal.js';
import type { Workload } from '../route/router.js';
import type { Side } from '../route/stage.js';
import type { FieldTtls, TimedKey } from '../pipeline/suspicion.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { keyId } from './suspects.js';

/** Keys that are due within the same so many ms are handled together. */
const SPAN_MS = 100;
/** How long before a field expires, in ms, its key becomes a suspect: clocks are read with an error. */
const EDGE_MS = 50;
/** The longest pause, in ms, until a field that the source has not removed yet is checked again. */
const LONGEST_PAUSE_MS = 2_000;

interface Tracked {
  readonly db: number;
  readonly key: Buffer;
  readonly workload: Workload;
  /** When the key's next field expires, in ms of the monotonic clock. */
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

  /**
   * The earliest time that the server's clock may show, minus the proxy's monotonic clock: so no field counts as
   * expired too early.
   */
  #offset(side: Side): number {
    const { unixTimeAtZero, errorMs } = this.sequencer.servers[side].clock;
    return unixTimeAtZero - errorMs;
  }

  copied({ db, key, workload }: TimedKey, side: Side, fields: number, expired: number, next: number): boolean {
    this.stripped += fields;
    const id = keyId(db, key);
    // A field that may or may not have expired by now is checked again.
    const soonest = next - this.#offset(side) - 2 * this.sequencer.servers[side].clock.errorMs;
    const now = monotonicMs();
    const at = expired > 0 ? Math.min(soonest, now + LONGEST_PAUSE_MS) : soonest;
    if (!this.#keys.has(id)) this.journal.noteKey(db, key, 0, key.length);
    this.#keys.set(id, { db, key: Buffer.from(key), workload, at });
    this.#schedule(id, at);
    return expired === 0 && soonest > now + SPAN_MS + EDGE_MS;
  }

  forget({ db, key }: Pick<TimedKey, 'db' | 'key'>): void {
    if (this.#keys.size > 0) this.#keys.delete(keyId(db, key));
  }

  /** The value of one key has moved to another. */
  moved(fromDb: number, from: Buffer, toDb: number, to: Buffer): void {
    if (this.#keys.has(keyId(fromDb, from))) this.sequencer.suspects.key(toDb, to, 'field-ttl');
  }

  /** Two databases were swapped. */
  swapped(a: number, b: number): void {
    for (const { db, key } of [...this.#keys.values()])
      if (db === a || db === b) for (const each of [a, b]) this.sequencer.suspects.key(each, key, 'field-ttl');
  }

  /**
   * Stages have changed. Fields never expire on the target. A key whose authority is the target from now on is copied
   * to the source as it is there; otherwise the source would still remove the fields.
   */
  stagesMoved(): void {
    for (const [id, { db, key, workload }] of this.#keys) {
      if (workload.position.rule(key, 0, key.length).authority === 'source') continue;
      this.#keys.delete(id);
      this.sequencer.suspects.key(db, key, 'field-ttl');
    }
  }

  /** Notes in the journal's next file the keys that are still to be copied again. */
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
    this.#timer ??= after(SPAN_MS / 2, () => this.#markDue()).unref();
  }

  #markDue(): void {
    this.#timer = undefined;
    const until = Math.floor((monotonicMs() + EDGE_MS) / SPAN_MS);
    for (const [span, ids] of this.#due) {
      if (span > until) continue;
      this.#due.delete(span);
      for (const id of ids) {
        const tracked = this.#keys.get(id);
        // Otherwise the key was copied since, and is due at another time.
        if (tracked === undefined || Math.floor(tracked.at / SPAN_MS) !== span) continue;
        this.#keys.delete(id);
        this.sequencer.suspects.key(tracked.db, tracked.key, 'field-ttl');
      }
    }
    if (this.#due.size > 0) this.#timer = after(SPAN_MS / 2, () => this.#markDue()).unref();
  }
}
