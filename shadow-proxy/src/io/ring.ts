/** A first-in-first-out queue on a growing ring: no shifting, no garbage while it does not grow. */
export class Ring<T> {
  #items: (T | undefined)[] = new Array<T | undefined>(64);
  #mask = 63;
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(item: T): void {
    if (this.#length > this.#mask) this.#grow();
    this.#items[(this.#head + this.#length) & this.#mask] = item;
    this.#length++;
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head = (this.#head + 1) & this.#mask;
    this.#length--;
    return item;
  }

  /** The item that `index` shifts would reach; undefined past the end. */
  at(index: number): T | undefined {
    return index < this.#length ? this.#items[(this.#head + index) & this.#mask] : undefined;
  }

  /** Removes all items, in order. */
  drain(): T[] {
    const all: T[] = [];
    for (let item = this.shift(); item !== undefined; item = this.shift()) all.push(item);
    return all;
  }

  #grow(): void {
    const items = new Array<T | undefined>((this.#mask + 1) * 2);
    for (let i = 0; i < this.#length; i++) items[i] = this.#items[(this.#head + i) & this.#mask];
    this.#items = items;
    this.#mask = items.length - 1;
    this.#head = 0;
  }
}
