/**
 * The order of keys where one lane does not tell it. Replies of different connections do not tell in which order
 * their commands ran, so a command waits
 *
 * - where several lanes lead to one database: for those of other lanes on the same key that are in flight, if either
 *   of the two writes;
 * - for keys that are reserved: a command on a private connection, or a write that may wake a client which blocks
 *   (`waking.ts`), has them to itself.
 *
 * First come, first served: a command that may not go yet takes a ticket, and later ones on its keys queue behind that,
 * unless both only read. A ticket holds nothing, so that no two wait for each other. When keys are set free, the
 * tickets on them go in their order.
 *
 * While there is one lane, and nothing is reserved, there is nothing to do.
 */
import { monotonicMs } from '../io/clock.js';
import { OLD_RESERVATION_MS, type ReservationsSnapshot } from '../telemetry/snapshot.js';
import type { Carrier } from './operation.js';

interface Holding {
  /** The lane that holds the key; null where several do, all reading. */
  lane: Carrier | null;
  readers: number;
  writers: number;
}

/** A command that blocks at the server until one of its keys has something for it. */
export interface BlockedClient {
  /** The lane that it has to itself. */
  readonly lane: Carrier;
  /** All its keys. */
  readonly keys: readonly string[];
  /** The keys whose writes may wake it. */
  readonly waitsOn: readonly string[];
  /** The key that it writes when it is woken; null where that is the one that woke it, or none. */
  readonly destination: string | null;
  /** What may have woken it; null where nothing that went through the proxy can have. */
  wakeup: PendingWakeup | null;
  /** A write that declared no such key may have woken it before: what it takes has no known place in the order. */
  unordered: boolean;
}

/** A write that may have woken waiters, until it is known whether it has. */
export interface PendingWakeup {
  /** The waiter has answered; `taken` is null where it took nothing. */
  settled(blockedClient: BlockedClient, taken: Taken | null): void;
  /** Calls `then` when it is over. */
  after(then: () => void): void;
}

/** What a woken client took. */
export interface Taken {
  /** Two of different domains may be sent in any order; `*` in none but the server's, which is not known. */
  readonly domain: string;
  /**
   * Sends the effect to the mirror; `ordered` where the order among those that were woken together is known, or none
   * matters.
   */
  tell(ordered: boolean): void;
}

/** Keys that only the one who reserved them may use. */
export interface Reservation {
  readonly keys: ReadonlySet<string>;
  /** When it was made, in ms of the monotonic clock. */
  readonly since: number;
  readonly then: (() => void)[];
}

/** What waits for its turn. */
export interface Request {
  /** Null where it must have the keys to itself. */
  readonly lane: Carrier | null;
  readonly keys: readonly string[];
  readonly writes: boolean;
  /** Called once nothing is in the way of these keys; the one that is called takes them at once, or waits again. */
  go(): void;
}

/** A place in the queue. */
export interface LockRequest {
  readonly locks: KeyLocks;
  readonly number: number;
  /** When it was first queued, in ms of the monotonic clock. */
  readonly since: number;
  readonly request: Request;
}

/** What the orders have reserved, and who waits; `now` in ms of the monotonic clock. */
export function reservationsOf(allLocks: readonly KeyLocks[], now: number): ReservationsSnapshot {
  const ages = allLocks.flatMap((locks) => locks.reservedSince().map((since) => now - since));
  const waits = allLocks.flatMap((locks) => locks.waitsSince() ?? []).map((since) => now - since);
  const old = ages.filter((age) => age >= OLD_RESERVATION_MS).length;
  const young = ages.filter((age) => age < 1000).length;
  return {
    byAge: { 'under-1s': young, 'under-10s': ages.length - young - old, older: old },
    oldestMs: Math.max(0, ...ages),
    longestWaitMs: Math.max(0, ...waits),
  };
}

export class KeyLocks {
  /** Whether a command has to ask at all. */
  active = false;
  /** Effects of woken clients, which have their replies, that wait for the reply to the write that woke them. */
  withheld = 0;
  #tracking = false;
  readonly #held = new Map<string, Holding>();
  /** Who waits, by key, in the order of their numbers. */
  readonly #queues = new Map<string, LockRequest[]>();
  readonly #waiting = new Set<LockRequest>();
  #lastNumber = 0;
  /** Keys whose queues are to be looked at. */
  readonly #freed = new Set<string>();
  #advancing = false;
  readonly #reserved = new Map<string, number>();
  readonly #reservations = new Set<Reservation>();
  readonly #waitedOn = new Map<string, Set<BlockedClient>>();

  /** True from the moment that a second lane is being opened. */
  get tracking(): boolean {
    return this.#tracking;
  }
  set tracking(on: boolean) {
    this.#tracking = on;
    this.#activate();
  }

  #activate(): void {
    this.active = this.#tracking || this.#reserved.size > 0 || this.#waitedOn.size > 0 || this.#waiting.size > 0;
  }

  /** Whether, while one lane leads to the database, a command on this key alone has to ask. */
  concerns(key: string): boolean {
    return this.#reserved.has(key) || this.#waitedOn.has(key) || this.#queues.has(key);
  }

  /**
   * Whether a command of `lane` on these keys may go now; of no lane: one that must have them to itself.
   * @param lockRequest its ticket, if it has waited: only earlier ones are before it
   */
  admits(
    lane: Carrier | null,
    keys: readonly string[],
    writes: boolean,
    lockRequest: LockRequest | null = null,
  ): boolean {
    for (const key of keys) {
      if (this.#reserved.has(key)) return false;
      const holding = this.#held.get(key);
      if (holding !== undefined && (lane === null || holding.lane !== lane) && (writes || holding.writers > 0))
        return false;
    }
    return this.#waiting.size === 0 || !this.#isBehind(keys, writes, lockRequest?.number ?? Infinity);
  }

  /** Whether a ticket with a smaller number waits for one of the keys. */
  #isBehind(keys: readonly string[], writes: boolean, number: number): boolean {
    for (const key of keys) {
      for (const lockRequest of this.#queues.get(key) ?? []) {
        if (lockRequest.number >= number) break;
        if (writes || lockRequest.request.writes) return true;
      }
    }
    return false;
  }

  hold(lane: Carrier, keys: readonly string[], writes: boolean): void {
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
    this.#advance(keys);
  }

  // ── who waits ───────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Queues what is not admitted.
   * @param previous the ticket that it had, whose place it keeps
   */
  wait(request: Request, previous: LockRequest | null = null): LockRequest {
    const lockRequest: LockRequest = {
      locks: this,
      number: previous?.number ?? ++this.#lastNumber,
      since: previous?.since ?? monotonicMs(),
      request,
    };
    this.#waiting.add(lockRequest);
    for (const key of new Set(request.keys)) {
      const queue = this.#queues.get(key);
      if (queue === undefined) {
        this.#queues.set(key, [lockRequest]);
        continue;
      }
      let at = queue.length;
      while (at > 0 && queue[at - 1].number > lockRequest.number) at--;
      queue.splice(at, 0, lockRequest);
    }
    this.#activate();
    if (previous !== null) this.leave(previous);
    return lockRequest;
  }

  /** Stops waiting, if it waits. */
  leave(lockRequest: LockRequest): void {
    if (this.#remove(lockRequest)) this.#advance(lockRequest.request.keys);
  }

  /** Does the work when its turn comes, or now; it takes the keys before it first awaits anything. */
  withLock<T>(lane: Carrier | null, keys: readonly string[], writes: boolean, work: () => Promise<T>): Promise<T> {
    // What it throws is its caller's: the turn begins where another client's reply has set the keys free.
    const begin = async (): Promise<T> => work();
    if (!this.active || this.admits(lane, keys, writes)) return begin();
    return new Promise((resolve) => this.wait({ lane, keys, writes, go: () => resolve(begin()) }));
  }

  #remove(lockRequest: LockRequest): boolean {
    if (!this.#waiting.delete(lockRequest)) return false;
    for (const key of new Set(lockRequest.request.keys)) {
      const queue = this.#queues.get(key)!;
      if (queue.length === 1) this.#queues.delete(key);
      else queue.splice(queue.indexOf(lockRequest), 1);
    }
    this.#activate();
    return true;
  }

  /** Something is no longer in the way of these keys. */
  #advance(keys: Iterable<string>): void {
    if (this.#waiting.size === 0) return;
    for (const key of keys) this.#freed.add(key);
    // Who goes may set keys free in turn: they are looked at after that.
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      for (const key of this.#freed) {
        this.#freed.delete(key);
        this.#grantWaiting(key);
      }
    } finally {
      this.#advancing = false;
    }
  }

  /** Lets go who may go of those that wait for the key. */
  #grantWaiting(key: string): void {
    const queue = this.#queues.get(key);
    if (queue === undefined) return;
    for (const lockRequest of [...queue]) {
      if (!this.#waiting.has(lockRequest)) continue;
      const { lane, keys, writes, go } = lockRequest.request;
      if (this.admits(lane, keys, writes, lockRequest)) {
        this.#remove(lockRequest);
        // Who stood behind it for another key, may be first there now.
        for (const each of keys) this.#freed.add(each);
        go();
      } else if (writes) return;
    }
  }

  // ── reservations ────────────────────────────────────────────────────────────────────────────────────────────

  /** From now on, until it is released, no command on these keys is admitted. */
  reserve(keys: Iterable<string>): Reservation {
    const reservation: Reservation = { keys: new Set(keys), since: monotonicMs(), then: [] };
    this.#reservations.add(reservation);
    for (const key of reservation.keys) this.#reserved.set(key, (this.#reserved.get(key) ?? 0) + 1);
    this.#activate();
    return reservation;
  }

  releaseReservation(reservation: Reservation): void {
    if (!this.#reservations.delete(reservation)) return;
    for (const key of reservation.keys) {
      const count = this.#reserved.get(key)! - 1;
      if (count === 0) this.#reserved.delete(key);
      else this.#reserved.set(key, count);
    }
    this.#activate();
    for (const then of reservation.then) then();
    this.#advance(reservation.keys);
  }

  /** When each reservation was made that is not released, in ms of the monotonic clock. */
  reservedSince(): number[] {
    return [...this.#reservations].map(({ since }) => since);
  }

  /** When the command was queued that has waited for its keys for longest; null where none waits. */
  waitsSince(): number | null {
    let first: number | null = null;
    for (const { since } of this.#waiting) if (first === null || since < first) first = since;
    return first;
  }

  /** Resolves once all that is reserved now is released. */
  async afterReservations(): Promise<void> {
    await Promise.all([...this.#reservations].map(({ then }) => new Promise<void>((resolve) => then.push(resolve))));
  }

  // ── who blocks ──────────────────────────────────────────────────────────────────────────────────────────────

  block(blockedClient: BlockedClient): void {
    for (const key of blockedClient.waitsOn) {
      const blockedClients = this.#waitedOn.get(key);
      if (blockedClients === undefined) this.#waitedOn.set(key, new Set([blockedClient]));
      else blockedClients.add(blockedClient);
    }
    this.#activate();
  }

  unblock(blockedClient: BlockedClient): void {
    for (const key of blockedClient.waitsOn) {
      const blockedClients = this.#waitedOn.get(key);
      blockedClients?.delete(blockedClient);
      if (blockedClients?.size === 0) this.#waitedOn.delete(key);
    }
    this.#activate();
  }

  /** Who may be woken by a write to these keys; by what the woken ones write in turn, too. */
  wokenBy(keys: Iterable<string>): Set<BlockedClient> {
    const woken = new Set<BlockedClient>();
    if (this.#waitedOn.size === 0) return woken;
    const written = [...keys];
    for (const key of written) {
      for (const blockedClient of this.#waitedOn.get(key) ?? []) {
        if (woken.has(blockedClient)) continue;
        woken.add(blockedClient);
        if (blockedClient.destination !== null) written.push(blockedClient.destination);
      }
    }
    return woken;
  }

  /** The keys of a command that writes them, and of whom it may wake. */
  withWoken(keys: readonly string[]): readonly string[] {
    const woken = this.wokenBy(keys);
    return woken.size === 0 ? keys : [...keys, ...[...woken].flatMap((blockedClient) => blockedClient.keys)];
  }

  /** Everyone who blocks in the database. */
  blocked(): Set<BlockedClient> {
    return new Set([...this.#waitedOn.values()].flatMap((blockedClients) => [...blockedClients]));
  }
}
