/**
 * SWAPDB gives databases other numbers on the two servers at two moments, and what scans them reads on connections that
 * are in no order. Such a reader waits while a swap is under way, repeats what it read meanwhile, and knows a database
 * by an id that stays.
 *
 *   begin ─▶ SWAPDB on the authority ─▶ SWAPDB on the mirror ─▶ end: the ids have other numbers
 *      └───────────── under way: no copy begins, what is read counts for nothing ──┘
 */

/** The numbers of two databases. */
export type Swapped = readonly [number, number];

/**
 * - `none`: the authority has refused.
 * - `unknown`: which databases, or whether both servers have swapped them. All that is written twice is suspect then.
 */
export type SwapOutcome = Swapped | 'none' | 'unknown';

/** The databases that the arguments of SWAPDB name. */
export function swappedBy(args: readonly Buffer[]): Swapped {
  const [a, b] = args.slice(1).map((arg) => Number(arg.toString('latin1')));
  return [a, b];
}

/** What stays of a database as its number changes: the number that it had in the beginning. */
export class DatabaseIds {
  /** By number, and by id, where the two are not the same. */
  readonly #ids = new Map<number, number>();
  readonly #numbers = new Map<number, number>();

  /** The id of the database that has the number now. */
  idOf(db: number): number {
    return this.#ids.size === 0 ? db : (this.#ids.get(db) ?? db);
  }

  numberOf(id: number): number {
    return this.#numbers.size === 0 ? id : (this.#numbers.get(id) ?? id);
  }

  swap([a, b]: Swapped): void {
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
  /** As both servers have them while none is under way. */
  readonly ids = new DatabaseIds();
  /** How many were begun. */
  begun = 0;
  /** How many have an unknown outcome. */
  unknown = 0;
  #underWay = 0;
  #waiting: (() => void)[] = [];
  readonly #listeners = new Set<() => void>();

  /** Whether the numbers of databases may be different on the two servers. */
  get underWay(): boolean {
    return this.#underWay > 0;
  }

  /**
   * SWAPDB, or a script that may call it, is about to be sent to the authority.
   * @returns to be called once, when both servers have run it, or its outcome is unknown
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

  /** Calls `listener` when one begins, and when one has ended, until what is returned is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Resolves when none is under way: what was read before is known to be of the database that was meant, or not.
   * @throws the signal's reason, instead of waiting
   */
  async settled(signal?: AbortSignal): Promise<void> {
    while (this.underWay) await this.#end(signal);
  }

  /**
   * What the work resolves with; where a swap was under way meanwhile, it is done again.
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

  /** Resolves when none is under way. */
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
