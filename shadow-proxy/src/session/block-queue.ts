/**
 * Clients that are about to block: their first attempt found nothing, and the command is not sent yet, because its
 * connection is being opened or its keys are not free. A client that asks for one of these keys later must not take
 * what arrived for an earlier one.
 */
export class BlockQueue {
  /** How many of these clients wait for a key, by database and key. */
  readonly #counts = new Map<string, number>();

  add(db: number, keys: readonly string[]): void {
    for (const key of keys) this.#counts.set(`${db} ${key}`, this.#count(db, key) + 1);
  }

  remove(db: number, keys: readonly string[]): void {
    for (const key of keys) {
      const left = this.#count(db, key) - 1;
      if (left > 0) this.#counts.set(`${db} ${key}`, left);
      else this.#counts.delete(`${db} ${key}`);
    }
  }

  /** Whether a client waits for one of the keys. */
  has(db: number, keys: readonly string[]): boolean {
    return this.#counts.size > 0 && keys.some((key) => this.#count(db, key) > 0);
  }

  #count(db: number, key: string): number {
    return this.#counts.get(`${db} ${key}`) ?? 0;
  }
}
