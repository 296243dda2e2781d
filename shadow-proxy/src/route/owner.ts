/**
 * The shard to which a key belongs, if several shards have keys on one target: the shard whose `owns` matches the key,
 * or none.
 */
import { compileGlob, type Matcher } from './glob.js';
import { hashSlot, SLOTS } from './slot.js';

export type SlotRange = readonly [first: number, last: number];
/** The keys of a shard: those that match a pattern, or those of some hash slots. */
export type Owns = { readonly patterns: readonly string[] } | { readonly slots: readonly SlotRange[] };

export type Owner = 'mine' | 'another' | 'nobody';

export class Owners {
  readonly #mine: Matcher | null;
  readonly #others: readonly Matcher[];

  /**
   * @param mine the shard's own claim; null if the plan does not say
   * @param others the claims of the shards that have the same target; null as above
   * @param partitioned whether the shards are parts of one cluster: then another shard's keys belong to it on both
   * servers
   */
  constructor(
    mine: Owns | null,
    others: readonly (Owns | null)[],
    readonly partitioned = false,
  ) {
    this.#mine = mine && compileOwns(mine);
    this.#others = others.filter((each) => each !== null).map(compileOwns);
  }

  /** Matches the shard's own keys, whatever the other shards claim; null if the shard has no claim. */
  get mine(): Matcher | null {
    return this.#mine;
  }

  of(key: Buffer, start: number, end: number): Owner {
    if (this.#mine?.(key, start, end) === true) return 'mine';
    return this.partitioned || this.#others.some((has) => has(key, start, end)) ? 'another' : 'nobody';
  }

  /**
   * Matches keys that are not this shard's: another shard claims the key, or this shard has a claim without it. Null if
   * no shard has a claim.
   */
  get ofOtherShards(): Matcher | null {
    const mine = this.#mine;
    if (mine !== null) return (key, start, end) => !mine(key, start, end);
    return this.#others.length === 0 ? null : (key, start, end) => this.of(key, start, end) === 'another';
  }
}

function compileOwns(owns: Owns): Matcher {
  if ('slots' in owns) {
    const has = new Uint8Array(SLOTS);
    for (const [first, last] of owns.slots) has.fill(1, first, last + 1);
    return (key, start, end) => has[hashSlot(key, start, end)] === 1;
  }
  const matchers = owns.patterns.map(compileGlob);
  return (key, start, end) => matchers.some((matches) => matches(key, start, end));
}
