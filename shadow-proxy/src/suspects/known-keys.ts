/**
 * Keys that are known, by their hashes, to have no time to live: both servers have said so, or a copy has. It remembers
 * the newest of them in two tables: a full table becomes the older one, and the one before it is forgotten.
 */
import { REMOVED, slotOf } from './deadlines.js';

/** The most slots of each of the two tables; three quarters of them are filled at most: 4 MiB. */
const MAX_SLOTS = 1 << 19;
const FIRST_SLOTS = 1 << 10;

export class KnownKeys {
  #newer = new Float64Array(FIRST_SLOTS);
  #older = new Float64Array(0);
  #used = 0;

  has(hash: number): boolean {
    return contains(this.#newer, hash) || contains(this.#older, hash);
  }

  remove(hash: number): void {
    remove(this.#newer, hash);
    remove(this.#older, hash);
  }

  add(hash: number): void {
    if (!insert(this.#newer, hash)) return;
    this.#used++;
    if (this.#used * 4 < this.#newer.length * 3) return;
    if (this.#newer.length < MAX_SLOTS) {
      const grown = new Float64Array(this.#newer.length * 2);
      for (const each of this.#newer) if (each > 0) insert(grown, each);
      this.#newer = grown;
      return;
    }
    this.#older = this.#newer;
    this.#newer = new Float64Array(MAX_SLOTS);
    this.#used = 0;
  }
}

function remove(slots: Float64Array, hash: number): void {
  if (contains(slots, hash)) slots[slotOf(slots, hash)] = REMOVED;
}

const contains = (slots: Float64Array, hash: number): boolean =>
  slots.length > 0 && slots[slotOf(slots, hash)] === hash;

/** @returns whether the hash was not there yet */
function insert(slots: Float64Array, hash: number): boolean {
  const slot = slotOf(slots, hash);
  if (slots[slot] === hash) return false;
  slots[slot] = hash;
  return true;
}
