/**
 * Pairs of replies that differ while a key is a suspect: the mirror lacks what the authority has. They say nothing
 * then, and wait until the key is copied. After that the read is sent to both servers again; for a write, which cannot
 * be, the key's values are compared (`copy/repair/recheck.ts`).
 */
import type { Workload } from '../route/router.js';
import { keyId, type Suspect, type Suspects } from './suspects.js';

export interface DeferredPair {
  readonly db: number;
  readonly workload: Workload;
  /** The read that is sent again, as a whole frame; null where the values of the key are compared. */
  readonly read: Buffer | null;
  /** Its keys; one where values are compared. */
  readonly keys: readonly Buffer[];
  /** How many pairs it stands for: a read that clients repeat is sent once. */
  pairs: number;
  /** How often it was compared again, and a key was a suspect by then. */
  tries: number;
}

/** A key has so many different reads that wait; beyond that its values are compared. */
const MAX_READS = 16;
/** A longer read is not kept: the values of its key are compared. */
const MAX_READ_BYTES = 4_096;
/** So many wait in all. */
const MAX_PAIRS = 10_000;
/** So often a pair is compared again. */
const MAX_TRIES = 5;

export class DeferredPairs {
  /** By the id of a suspect, then by what is compared. */
  readonly #byKey = new Map<string, Map<string, DeferredPair>>();
  #waiting = 0;
  /** Pairs that are being compared again now. */
  asked = 0;
  /** Called when a key is no suspect any more, and pairs wait for it. */
  ready: (db: number, key: Buffer) => void = () => undefined;

  constructor(private readonly suspects: Suspects) {}

  /** Pairs without a verdict yet. */
  get pending(): number {
    return this.#waiting + this.asked;
  }

  /** The first of the keys that is a suspect; undefined where none is. */
  suspectOf(db: number, keys: readonly Buffer[]): Suspect | undefined {
    for (const key of keys) {
      const suspect = this.suspects.get(keyId(db, key));
      if (suspect !== undefined) return suspect;
    }
    return undefined;
  }

  /** Has the pair wait for the suspect, which is one of its keys; false where it cannot. */
  add(suspect: Suspect, pair: DeferredPair): boolean {
    if (pair.tries > MAX_TRIES) return false;
    const id = keyId(suspect.db, suspect.key);
    let pairs = this.#byKey.get(id);
    if (pairs === undefined) {
      if (this.#waiting >= MAX_PAIRS) return false;
      this.#byKey.set(id, (pairs = new Map()));
    }
    let what = pair.read?.toString('latin1') ?? '';
    let added = pair;
    if (!pairs.has(what) && (what.length > MAX_READ_BYTES || pairs.size >= MAX_READS)) {
      // Equal values give equal replies; of another key than this one they say nothing.
      if (pair.keys.length > 1) return false;
      what = '';
      added = { ...pair, read: null };
    }
    const known = pairs.get(what);
    if (known !== undefined) {
      known.pairs += pair.pairs;
      known.tries = Math.max(known.tries, pair.tries);
      return true;
    }
    pairs.set(what, added);
    this.#waiting++;
    return true;
  }

  /** Takes out what waits for the key; `asked` counts it until it has a verdict. */
  take(db: number, key: Buffer): DeferredPair[] {
    const id = keyId(db, key);
    const pairs = [...(this.#byKey.get(id)?.values() ?? [])];
    this.#byKey.delete(id);
    this.#waiting -= pairs.length;
    this.asked += pairs.length;
    return pairs;
  }

  /** A key is no suspect any more. */
  cleared({ db, key }: Suspect): void {
    if (this.#waiting > 0 && this.#byKey.has(keyId(db, key))) this.ready(db, key);
  }
}
