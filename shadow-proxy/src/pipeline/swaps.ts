/**
 * The two servers run SWAPDB at different moments, and keyspace scans read on connections without an order. So a reader
 * waits while a swap is in progress, repeats what it read meanwhile, and knows each database by an id that stays.
 *
 *   begin ─▶ SWAPDB on the authority ─▶ SWAPDB on the mirror ─▶ end: the ids have other numbers
 *      └───────────── under way: no copy begins, what is read counts for nothing ──┘
 */

/** The numbers of two databases. */
export type DatabasePair = readonly [number, number];

/**
 * - `none`: the authority has refused the SWAPDB.
 * - `unknown`: it is unknown which databases were swapped, or whether both servers have. All keys that are written
 *   twice are suspects then.
 */
export type SwapOutcome = DatabasePair | 'none' | 'unknown';

/** The databases that the arguments of SWAPDB name. */
export function swappedBy(args: readonly Buffer[]): DatabasePair {
  const [a, b] = args.slice(1).map((arg) => Number(arg.toString('latin1')));
  return [a, b];
}

/** What stays of a database when its number changes: its number at the start. */
export class DatabaseIds {
  /** The ids by number, and the numbers by id, where the two differ. */
  readonly #ids = new Map<number, number>();
  readonly #numbers = new Map<number, number>();

  /** The id of the database that has the number now. */
  idOf(db: number): number {
    return this.#ids.size === 0 ? db : (this.#ids.get(db) ?? db);
  }

  numberOf(id: number): number {
    return this.#numbers.size === 0 ? id : (this.#numbers.get(id) ?? id);
  }

  swap([a, b]: DatabasePair): void {
    const [first, second] = [this.idOf(a), this.idOf(b)];
    this.#give(second, a);
    this.#give(first, b);
  }

  #give(id: number, db: number): void {
    if (id === db) {
      this.#ids.delete(db);
      this.#numbers.delete(id);
      return;
    }
    this.#ids.set(db, id);
    this.#numbers.set(id, db);
  }
}

export class Swaps {
  /** The databases as both servers have them while no swap is in progress. */
  readonly ids = new DatabaseIds();
  /** How many swaps were begun. */
  begun = 0;
  /** How many swaps had an unknown outcome. */
  unknown = 0;
  #underWay = 0;
  #waiting: (() => void)[] = [];
  readonly #listeners = new Set<() => void>();

  /** Whether databases may have different numbers on the two servers. */
  get underWay(): boolean {
    return this.#underWay > 0;
  }

  /**
   * SWAPDB, or a script that may call it, is about to be sent to the authority.
   * @returns a function to be called once, when both servers have run it or its outcome is unknown
   */
  begin(): (outcome: SwapOutcome) => void {
    this.begun++;
    this.#underWay++;
    for (const listener of this.#listeners) listener();
    return (outcome) => {
      this.#underWay--;
      if (outcome === 'unknown') this.unknown++;
      else if (outcome !== 'none') this.ids.swap(outcome);
      for (const listener of this.#listeners) listener();
      if (this.#underWay > 0) return;
      for (const go of this.#waiting.splice(0)) go();
    };
  }

  /** Calls `listener` when a swap begins, and when it has ended. @returns a function that ends this */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Resolves when no swap is in progress. Then it is known which database earlier reads belong to.
   * @throws the signal's reason, instead of waiting
   */
  async settled(signal?: AbortSignal): Promise<void> {
    while (this.underWay) await this.#end(signal);
  }

  /**
   * Does the work, and repeats it if a swap was in progress meanwhile.
   * @returns what the work resolves with
   * @throws the signal's reason, instead of waiting
   */
  async undisturbed<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      await this.settled(signal);
      const { begun } = this;
      const done = await work();
      if (this.begun === begun) return done;
    }
  }

  /** Resolves when no swap is in progress. */
  async #end(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const aborted = new AbortController();
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      signal?.addEventListener('abort', () => resolve(), { signal: aborted.signal });
    });
    aborted.abort();
    signal?.throwIfAborted();
  }
}
