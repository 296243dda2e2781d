/**
 * Which keys clients may have written to a shard since a moment, in memory of a fixed size: a Bloom filter, which may
 * take a key for written that is not.
 */
import { WRITE, type Operation } from '../../pipeline/operation.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { DatabaseIds, swappedBy } from '../../pipeline/swaps.js';
import { otherDatabase } from '../../script/frame-keys.js';
import { hashOfKey } from '../../suspects/deadlines.js';

/** Two for each key: with 1,000,000 keys, 5 % of the others are taken for written, too. */
const BITS = 1 << 23;

export class WrittenKeys {
  readonly #bits = new Uint32Array(BITS / 32);
  /** Whether there can be any. */
  any = false;
  /** A write whose keys are not known may have been to any. */
  #all = false;
  /** Keys are noted under the ids of their databases, as of the last operation in the order. */
  readonly #ids = new DatabaseIds();
  readonly #unlisten: readonly (() => void)[];

  constructor(private readonly sequencer: Sequencer) {
    const { source, target } = sequencer.mirrors;
    this.#unlisten = [source, target].map((mirror) => mirror.listen((operation) => this.#ordered(operation)));
  }

  /** @param db its number while no swap is under way */
  has(db: number, key: Buffer): boolean {
    return (
      this.#all || bitsOf(this.#ids.idOf(db), key).every((bit) => (this.#bits[bit >>> 5] & (1 << (bit & 31))) !== 0)
    );
  }

  end(): void {
    for (const unlisten of this.#unlisten) unlisten();
  }

  #ordered(operation: Operation): void {
    // The kit's own copies wait for their answers.
    if (operation.confirmed !== null) return;
    if (operation.spec?.name === 'swapdb') return this.#ids.swap(swappedBy(operation.command.args));
    const all = eachWrittenKey(this.sequencer, operation, (db, key) => {
      this.any = true;
      for (const bit of bitsOf(this.#ids.idOf(db), key)) this.#bits[bit >>> 5] |= 1 << (bit & 31);
    });
    if (!all) this.any = this.#all = true;
  }
}

function bitsOf(db: number, key: Buffer): [number, number] {
  const hash = hashOfKey(db, key);
  return [hash % BITS, Math.floor(hash / BITS) % BITS];
}

/** Calls `visit` for each key that the operation may write; whether these are all. */
export function eachWrittenKey(
  sequencer: Sequencer,
  operation: Operation,
  visit: (db: number, key: Buffer) => void,
): boolean {
  if (operation.follow !== WRITE) return true;
  if (operation.bundle?.keys) {
    for (const key of operation.bundle.keys) visit(operation.db, key);
    return true;
  }
  const { original } = operation;
  const all = sequencer.keys.eachPlaced(operation.db, original, visit);
  return all && (operation.spec?.handling !== 'exclusive' || otherDatabase(original) !== null);
}
