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
   * @param mine what this shard has; null where it does not say
   * @param others likewise, of the shards that have the same target
   * @param partitioned whether they are parts of one cluster: what another has on either server is where it belongs
   */
  constructor(
    mine: Owns | null,
    others: readonly (Owns | null)[],
    readonly partitioned = false,
  ) {
    this.#mine = mine && compileOwns(mine);
    this.#others = others.filter((each) => each !== null).map(compileOwns);
  }

  /** Which keys are this shard's, whatever the others say; null where it does not say. */
  get mine(): Matcher | null {
    return this.#mine;
  }

  of(key: Buffer, start: number, end: number): Owner {
    if (this.#mine?.(key, start, end) === true) return 'mine';
    return this.partitioned || this.#others.some((has) => has(key, start, end)) ? 'another' : 'nobody';
  }

  /**
   * Whether a key is not this shard's: another one has it, or this one says which it has, and does not name it. Null
   * where none says anything.
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
