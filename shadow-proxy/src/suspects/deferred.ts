/**
 * Pairs of replies that differ while a key is a suspect: the mirror lacks what the authority has. Such a difference
 * shows nothing, and waits until the key is copied. Then a read is sent to both servers again. A write cannot be sent
 * again: the values of its key are compared (`copy/repair/recheck.ts`).
 */
import type { Workload } from '../route/router.js';
import { keyId, type Suspect, type Suspects } from './suspects.js';

export interface DeferredPair {
  readonly db: number;
  readonly workload: Workload;
  /** The read that is sent again, as a whole frame; null if the values of the key are compared. */
  readonly read: Buffer | null;
  /** The keys of the read, or the one key whose values are compared. */
  readonly keys: readonly Buffer[];
  /** How many pairs this one stands for: a read that clients repeat is sent once. */
  pairs: number;
  /** How many times the pair was compared again while a key had become a suspect. */
  tries: number;
}

/** How many different reads may wait for one key; beyond that its values are compared. */
const MAX_READS = 16;
/** Longest read that is kept, in bytes. Instead of a longer one, the values of its key are compared. */
const MAX_READ_BYTES = 4_096;
/** How many pairs may wait in all. */
const MAX_PAIRS = 10_000;
/** How many times a pair is compared again. */
const MAX_TRIES = 5;

export class DeferredPairs {
  /** The pairs by the id of the suspect, then by what is compared. */
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

  /** The first of the keys that is a suspect; undefined if none is. */
  suspectOf(db: number, keys: readonly Buffer[]): Suspect | undefined {
    for (const key of keys) {
      const suspect = this.suspects.get(keyId(db, key));
      if (suspect !== undefined) return suspect;
    }
    return undefined;
  }

  /** Lets the pair wait for the suspect, which is one of its keys. @returns false if it cannot */
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
      // Equal values of this key give equal replies only if the command has no other key.
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

  /** Removes the pairs that wait for the key; `asked` counts them until they have a verdict. */
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
