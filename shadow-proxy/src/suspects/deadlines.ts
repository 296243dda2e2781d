/**
 * When keys expire, as far as their times to live came through the proxy. A hash table of numbers, without the keys
 * themselves, which are known by 53 bits of their hashes.
 *
 * A moment of expiry is a span: the two servers differ by milliseconds, and neither says when exactly it ran the
 * command. Times are in ms of the monotonic clock.
 */

/** The most slots; three quarters of them are filled at most: 12 MiB. */
const MAX_SLOTS = 1 << 19;
const FIRST_SLOTS = 1 << 10;
/** One slot in this many is sampled to find the median. */
const SAMPLED = 64;

export class Deadlines {
  #hashes = new Float64Array(FIRST_SLOTS);
  #earliest = new Float64Array(FIRST_SLOTS);
  #latest = new Float64Array(FIRST_SLOTS);
  #used = 0;
  /** The last moment at which any noted key may expire. */
  #last = -Infinity;
  /** Deadlines far ahead that were forgotten because the table was full. */
  forgotten = 0;

  /** @param oldest expiries before this moment do not matter any more */
  constructor(private readonly oldest: () => number) {}

  get isEmpty(): boolean {
    return this.#used === 0;
  }

  /** Whether there can be a key that expires at or after `from`. */
  any(from: number): boolean {
    return this.#last >= from;
  }

  /** Notes that the key expires between `earliest` and `latest`. Replaces what was known of the key. */
  note(hash: number, earliest: number, latest: number): void {
    let slot = slotOf(this.#hashes, hash);
    if (this.#hashes[slot] === 0) {
      if (this.#used * 4 >= this.#hashes.length * 3) {
        this.#makeRoom();
        slot = slotOf(this.#hashes, hash);
      }
      this.#hashes[slot] = hash;
      this.#used++;
    }
    this.#earliest[slot] = earliest;
    this.#latest[slot] = Math.max(earliest, latest);
    if (latest > this.#last) this.#last = latest;
  }

  /** Notes that the key may also expire between these two. */
  widen(hash: number, earliest: number, latest: number): void {
    const slot = slotOf(this.#hashes, hash);
    const known = this.#hashes[slot] === 0 ? -Infinity : this.#earliest[slot];
    if (known === -Infinity) this.note(hash, earliest, latest);
    else this.note(hash, Math.min(known, earliest), Math.max(this.#latest[slot], latest));
  }

  /** Whether anything is known of the key: a span, or that it has no time to live. */
  has(hash: number): boolean {
    return this.#hashes[slotOf(this.#hashes, hash)] !== 0;
  }

  /** The key has no time to live. */
  forget(hash: number): void {
    const slot = slotOf(this.#hashes, hash);
    if (this.#hashes[slot] === 0) return;
    this.#earliest[slot] = -Infinity;
    this.#latest[slot] = -Infinity;
  }

  /** Nothing is known of the key any more. */
  remove(hash: number): void {
    const slot = slotOf(this.#hashes, hash);
    if (this.#hashes[slot] === 0) return;
    this.#hashes[slot] = REMOVED;
    this.#earliest[slot] = -Infinity;
    this.#latest[slot] = -Infinity;
  }

  /** Whether the key may expire between `from` and `to`. */
  within(hash: number, from: number, to: number): boolean {
    if (this.#last < from) return false;
    const slot = slotOf(this.#hashes, hash);
    if (this.#hashes[slot] === 0) return false;
    return this.#earliest[slot] <= to && this.#latest[slot] >= from;
  }

  /** What is noted of one key may also hold for the other: the key was renamed or copied. */
  copy(from: number, to: number): void {
    const slot = slotOf(this.#hashes, from);
    const earliest = this.#hashes[slot] === 0 ? -Infinity : this.#earliest[slot];
    if (earliest !== -Infinity) this.widen(to, earliest, this.#latest[slot]);
  }

  /** Drops spans in the past, then grows the table, or drops the half of the spans that is farthest ahead. */
  #makeRoom(): void {
    const [hashes, earliest, latest] = [this.#hashes, this.#earliest, this.#latest];
    const past = this.oldest();
    let live = 0;
    const sample: number[] = [];
    for (let slot = 0; slot < hashes.length; slot++) {
      if (hashes[slot] !== 0 && latest[slot] >= past && live++ % SAMPLED === 0) sample.push(earliest[slot]);
    }
    let slots = hashes.length;
    while (live * 2 > slots && slots < MAX_SLOTS) slots *= 2;
    const nearest =
      live * 2 > slots ? sample.sort((a, b) => a - b)[Math.floor((sample.length * slots) / 2 / live)] : Infinity;
    this.#hashes = new Float64Array(slots);
    this.#earliest = new Float64Array(slots);
    this.#latest = new Float64Array(slots);
    this.#used = 0;
    for (let slot = 0; slot < hashes.length; slot++) {
      if (hashes[slot] === 0 || latest[slot] < past || earliest[slot] > nearest) continue;
      const to = slotOf(this.#hashes, hashes[slot]);
      this.#hashes[to] = hashes[slot];
      this.#earliest[to] = earliest[slot];
      this.#latest[to] = latest[slot];
      this.#used++;
    }
    this.forgotten += live - this.#used;
  }
}

/** No key has this hash. */
export const REMOVED = -1;

/** The slot of the hash, or the empty slot where it belongs. The number of slots is a power of two. */
export function slotOf(hashes: Float64Array, hash: number): number {
  const mask = hashes.length - 1;
  let slot = ((hash | 0) ^ ((hash | 0) >>> 15)) & mask;
  while (hashes[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & mask;
  return slot;
}

/** 53 bits of a key with its database (two FNV-1a of 32 bits); never 0. */
export function hashOfKey(db: number, buffer: Buffer, start = 0, end = buffer.length): number {
  let one = 0x811c9dc5 ^ Math.imul(db, 0x9e3779b1);
  let other = 0x050c5d1f ^ db;
  for (let i = start; i < end; i++) {
    one = Math.imul(one ^ buffer[i], 0x01000193);
    other = Math.imul(other ^ buffer[i], 0x01000193) + 0x3c6ef372;
  }
  return (one >>> 0) * 0x200000 + ((other >>> 11) & 0x1fffff) || 1;
}
