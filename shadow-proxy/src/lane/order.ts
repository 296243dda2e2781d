/**
 * The order of keys where one lane does not tell it. Replies of different connections do not tell in which order
 * their commands ran, so a command waits
 *
 * - where several lanes lead to one database: for those of other lanes on the same key that are in flight, if either
 *   of the two writes;
 * - for keys that are reserved: a command on a private connection, or a write that may wake a client which blocks
 *   (`waking.ts`), has them to itself.
 *
 * While there is one lane, and nothing is reserved, there is nothing to do.
 */
import type { Lane } from './lane.js';

interface Holding {
  /** The lane that holds the key; null where several do, all reading. */
  lane: Lane | null;
  readers: number;
  writers: number;
}

/** A command that blocks at the server until one of its keys has something for it. */
export interface Waiter {
  /** The lane that it has to itself. */
  readonly lane: Lane;
  /** All its keys. */
  readonly keys: readonly string[];
  /** The keys whose writes may wake it. */
  readonly waitsOn: readonly string[];
  /** The key that it writes when it is woken; null where that is the one that woke it, or none. */
  readonly destination: string | null;
}

/** Keys that only the one who reserved them may use. */
export interface Reservation {
  readonly keys: ReadonlySet<string>;
  readonly then: (() => void)[];
}

export class KeyOrder {
  /** Whether a command has to ask at all. */
  active = false;
  #tracking = false;
  readonly #held = new Map<string, Holding>();
  readonly #retries = new Set<() => void>();
  readonly #reserved = new Map<string, number>();
  readonly #reservations = new Set<Reservation>();
  readonly #waitedOn = new Map<string, Set<Waiter>>();

  /** True from the moment that a second lane is being opened. */
  get tracking(): boolean {
    return this.#tracking;
  }
  set tracking(on: boolean) {
    this.#tracking = on;
    this.#activate();
  }

  #activate(): void {
    this.active = this.#tracking || this.#reserved.size > 0 || this.#waitedOn.size > 0;
  }

  /** Whether a command of `lane` on these keys may go now; of no lane: one that must have them to itself. */
  admits(lane: Lane | null, keys: readonly string[], writes: boolean): boolean {
    for (const key of keys) {
      if (this.#reserved.has(key)) return false;
      const holding = this.#held.get(key);
      if (holding !== undefined && holding.lane !== lane && (writes || holding.writers > 0)) return false;
    }
    return true;
  }

  hold(lane: Lane, keys: readonly string[], writes: boolean): void {
    for (const key of keys) {
      let holding = this.#held.get(key);
      if (holding === undefined) this.#held.set(key, (holding = { lane, readers: 0, writers: 0 }));
      else if (holding.lane !== lane) holding.lane = null;
      if (writes) holding.writers++;
      else holding.readers++;
    }
  }

  release(keys: readonly string[], writes: boolean): void {
    for (const key of keys) {
      const holding = this.#held.get(key);
      if (holding === undefined) continue;
      if (writes) holding.writers--;
      else holding.readers--;
      if (holding.readers + holding.writers === 0) this.#held.delete(key);
    }
    this.#retry();
  }

  #retry(): void {
    if (this.#retries.size === 0) return;
    const retries = [...this.#retries];
    this.#retries.clear();
    for (const retry of retries) retry();
  }

  /** Calls `retry` after the next release. */
  wait(retry: () => void): void {
    this.#retries.add(retry);
  }

  // ── reservations ────────────────────────────────────────────────────────────────────────────────────────────

  /** From now on, until it is given up, no command on these keys is admitted. */
  reserve(keys: Iterable<string>): Reservation {
    const reservation: Reservation = { keys: new Set(keys), then: [] };
    this.#reservations.add(reservation);
    for (const key of reservation.keys) this.#reserved.set(key, (this.#reserved.get(key) ?? 0) + 1);
    this.#activate();
    return reservation;
  }

  giveUp(reservation: Reservation): void {
    if (!this.#reservations.delete(reservation)) return;
    for (const key of reservation.keys) {
      const count = this.#reserved.get(key)! - 1;
      if (count === 0) this.#reserved.delete(key);
      else this.#reserved.set(key, count);
    }
    this.#activate();
    for (const then of reservation.then) then();
    this.#retry();
  }

  /** Resolves once all that is reserved now is given up. */
  async afterReservations(): Promise<void> {
    await Promise.all([...this.#reservations].map(({ then }) => new Promise<void>((resolve) => then.push(resolve))));
  }

  // ── who blocks ──────────────────────────────────────────────────────────────────────────────────────────────

  block(waiter: Waiter): void {
    for (const key of waiter.waitsOn) {
      const waiters = this.#waitedOn.get(key);
      if (waiters === undefined) this.#waitedOn.set(key, new Set([waiter]));
      else waiters.add(waiter);
    }
    this.#activate();
  }

  unblock(waiter: Waiter): void {
    for (const key of waiter.waitsOn) {
      const waiters = this.#waitedOn.get(key);
      waiters?.delete(waiter);
      if (waiters?.size === 0) this.#waitedOn.delete(key);
    }
    this.#activate();
  }

  /** Who may be woken by a write to these keys; by what the woken ones write in turn, too. */
  wokenBy(keys: Iterable<string>): Set<Waiter> {
    const woken = new Set<Waiter>();
    if (this.#waitedOn.size === 0) return woken;
    const written = [...keys];
    for (const key of written) {
      for (const waiter of this.#waitedOn.get(key) ?? []) {
        if (woken.has(waiter)) continue;
        woken.add(waiter);
        if (waiter.destination !== null) written.push(waiter.destination);
      }
    }
    return woken;
  }

  /** Everyone who blocks in the database. */
  blocked(): Set<Waiter> {
    return new Set([...this.#waitedOn.values()].flatMap((waiters) => [...waiters]));
  }
}
