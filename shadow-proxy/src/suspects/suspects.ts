/**
 * Keys that may differ between the servers, and why. Each new suspicion of a key gets a new generation, so that a
 * repair which began before it cannot clear it.
 */
import { REPLY_LOST } from '../pipeline/suspicion.js';
import type { Router, Workload } from '../route/router.js';
import { Lateness } from './lateness.js';
import { WorkloadSuspicions } from './workload-suspicions.js';

export interface Suspect {
  readonly db: number;
  readonly key: Buffer;
  readonly workload: Workload;
  reason: string;
  /** Whether an acknowledged effect may be missing on the mirror. False if only a reply was lost. */
  acknowledged: boolean;
  /** Whether a client's write, or a copy, touched the key. If not, it may be a foreign key that was only read. */
  touched: boolean;
  generation: number;
  /** The generation whose copy is in the order already, though not confirmed; 0 if there is none. */
  copied: number;
  /** The newest generation whose copy the mirror has confirmed in time; 0 if there is none. */
  confirmed: number;
  /** The script that made the key a suspect last, for people; null if none did. */
  script: string | null;
  /** Of the copies that came to the mirror so late that their time to live may be off. */
  readonly lateness: Lateness;
}

/**
 * Reasons under which the key may not have been written at all, unless the caller says so: they also come from replies
 * to reads, and from keyspace scans.
 */
const UNTOUCHED: ReadonlySet<string> = new Set([
  'mismatch',
  'inconclusive',
  'evicted',
  'not-copied',
  'swapped',
  'process-ended-unwritten',
]);

/** How many copies of a key may come late before one is accepted. */
export const LATE_COPIES = 8;

/** How many keys are listed one by one. Beyond that, the whole workload becomes suspect. */
const MAX_LISTED = 100_000;

export const keyId = (db: number, key: Buffer): string => `${db}:${key.toString('latin1')}`;

export class Suspects {
  /** Workloads that are suspect as a whole. */
  readonly workloads: WorkloadSuspicions;
  readonly #keys = new Map<string, Suspect>();
  #generation = 0;

  /**
   * @param marked is called with each new suspicion
   * @param cleared is called with a key that is no suspect any more
   */
  constructor(
    router: Pick<Router, 'workloads'>,
    private readonly marked: (suspect: Suspect) => void,
    private readonly cleared: (suspect: Suspect) => void = () => undefined,
  ) {
    this.workloads = new WorkloadSuspicions(router);
  }

  /** The generation of the newest suspicion. */
  get generation(): number {
    return this.#generation;
  }

  get size(): number {
    return this.#keys.size;
  }

  has(db: number, key: Buffer): boolean {
    return this.#keys.has(keyId(db, key));
  }

  get(id: string): Suspect | undefined {
    return this.#keys.get(id);
  }

  all(): IterableIterator<Suspect> {
    return this.#keys.values();
  }

  /**
   * Notes a suspicion; `key` is copied.
   * @param written whether the kit, or a client through it, has written the key; null if the reason says that
   */
  mark(
    db: number,
    key: Buffer,
    workload: Workload,
    reason: string,
    script: string | null = null,
    written: boolean | null = null,
  ): void {
    const touched = written ?? !UNTOUCHED.has(reason);
    const id = keyId(db, key);
    const known = this.#keys.get(id);
    if (known !== undefined) {
      known.generation = ++this.#generation;
      known.reason = reason;
      known.acknowledged ||= reason !== REPLY_LOST;
      known.touched ||= touched;
      known.script = script ?? known.script;
      this.marked(known);
      return;
    }
    if (this.#keys.size >= MAX_LISTED) {
      this.workloads.mark(workload, `more than ${MAX_LISTED} suspects (${reason})`);
      return;
    }
    const suspect: Suspect = {
      db,
      key: Buffer.from(key),
      workload,
      reason,
      acknowledged: reason !== REPLY_LOST,
      touched,
      generation: ++this.#generation,
      copied: 0,
      confirmed: 0,
      script,
      lateness: new Lateness(LATE_COPIES),
    };
    this.#keys.set(id, suspect);
    this.marked(suspect);
  }

  /** Ends the suspicion, unless there is a newer one than `generation`. */
  clear(suspect: Suspect, generation: number): boolean {
    const id = keyId(suspect.db, suspect.key);
    // A suspicion that was ended before may have been followed by a new one of the same key.
    if (suspect.generation !== generation || this.#keys.get(id) !== suspect) return false;
    this.#keys.delete(id);
    this.cleared(suspect);
    return true;
  }

  /** How many keys of the workload are suspects. @param which counts only these */
  count(workload: Workload, which: (suspect: Suspect) => boolean = () => true): number {
    let count = 0;
    for (const suspect of this.#keys.values()) if (suspect.workload === workload && which(suspect)) count++;
    return count;
  }

  /** For each workload with suspects: how many there are, and how many of them may lack an effect. */
  byWorkload(): ReadonlyMap<Workload, { total: number; acknowledged: number }> {
    const counts = new Map<Workload, { total: number; acknowledged: number }>();
    for (const { workload, acknowledged } of this.#keys.values()) {
      const count = counts.get(workload);
      if (count === undefined) counts.set(workload, { total: 1, acknowledged: Number(acknowledged) });
      else {
        count.total++;
        count.acknowledged += Number(acknowledged);
      }
    }
    return counts;
  }

  byReason(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const suspect of this.#keys.values()) counts[suspect.reason] = (counts[suspect.reason] ?? 0) + 1;
    return counts;
  }
}
