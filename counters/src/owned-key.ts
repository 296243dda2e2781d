/** One key that only this writer writes. Its value is held in memory, and always written whole. */
import { CounterError, failedWrite } from './errors.js';
import type { View } from './members.js';
import type { Command, Store } from './store.js';

/** How a value is stored, and how long (Unix ms; null: without expiry). */
export interface Shape<S> {
  readonly empty: S;
  encode(state: S): string;
  expiresAt(state: S): number | null;
  /** Whether the value may be forgotten. Default: once it has expired. */
  isOver?(state: S, now: number): boolean;
}

/** The other writers' values just after this writer's last write. */
export interface Seen {
  readonly view: View;
  /** In the order of `view.ids`. */
  readonly values: readonly (string | null)[];
}

/** What to read together with a write; called when the write is sent. */
export type Look = () => { readonly view: View; readonly keys: readonly string[] };

interface Change<S> {
  readonly change: (state: S) => S;
  readonly look: Look | null;
  readonly resolve: (written: { state: S; seen: Seen | null }) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One write is in flight at a time, and later changes share the next one. So a lost or repeated write cannot overtake
 * another, and a hot key costs one write a round trip, however many increments it gets.
 */
export class OwnedKey<S> {
  #state: S;
  #waiting: Change<S>[] = [];
  #busy = false;

  constructor(
    private readonly store: Store,
    readonly key: string,
    private readonly shape: Shape<S>,
  ) {
    this.#state = shape.empty;
  }

  get state(): S {
    return this.#state;
  }

  get idle(): boolean {
    return !this.#busy && this.#waiting.length === 0;
  }

  /** Whether nothing was ever written: then there is nothing to keep. */
  get untouched(): boolean {
    return this.#state === this.shape.empty;
  }

  /** @param now Unix ms */
  isOver(now: number): boolean {
    if (this.shape.isOver !== undefined) return this.shape.isOver(this.#state, now);
    const expiresAt = this.shape.expiresAt(this.#state);
    return expiresAt !== null && expiresAt <= now;
  }

  /** The value that the store should have. */
  get value(): string {
    return this.shape.encode(this.#state);
  }

  /**
   * Changes the value by `change` and writes it; with `look`, reads other keys right behind.
   * @returns the value right after this change, before later changes of the same write
   * @throws {CounterError} REFUSED, UNCONFIRMED; errors of `change`; if only the reading failed, errors of the client
   * library
   */
  write(change: (state: S) => S, look: Look | null = null): Promise<{ state: S; seen: Seen | null }> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, look, resolve, reject });
      if (!this.#busy) void this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    this.#busy = true;
    // Changes of the same turn of the event loop share a write.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0));
    this.#busy = false;
  }

  async #writeBatch(batch: readonly Change<S>[]): Promise<void> {
    let next = this.#state;
    const done: { of: Change<S>; state: S }[] = [];
    for (const of of batch) {
      try {
        next = of.change(next);
        done.push({ of, state: next });
      } catch (error) {
        of.reject(error);
      }
    }
    if (done.length === 0) return;
    const look = batch.findLast((each) => each.look !== null)?.look?.() ?? null;
    const [written, read] = await Promise.allSettled([this.store.send(this.#set(next)), look && this.#read(look)]);
    const error = written.status === 'rejected' ? failedWrite(written.reason) : null;
    if (error?.code !== 'REFUSED') this.#state = next;
    for (const { of, state } of done) {
      if (error) of.reject(error);
      else if (read.status === 'fulfilled') of.resolve({ state, seen: read.value });
      else of.reject(read.reason);
    }
  }

  async #read({ view, keys }: ReturnType<Look>): Promise<Seen> {
    return { view, values: keys.length === 0 ? [] : ((await this.store.send(['MGET', ...keys])) as (string | null)[]) };
  }

  #set(state: S): Command {
    const expiresAt = this.shape.expiresAt(state);
    const value = this.shape.encode(state);
    return expiresAt === null ? ['SET', this.key, value] : ['SET', this.key, value, 'PXAT', String(expiresAt)];
  }
}

/** @throws {CounterError} OPTION */
export function addSafely(total: number, amount: number): number {
  if (!Number.isSafeInteger(total + amount))
    throw new CounterError('OPTION', `${total} + ${amount} is beyond ${Number.MAX_SAFE_INTEGER}`);
  return total + amount;
}
