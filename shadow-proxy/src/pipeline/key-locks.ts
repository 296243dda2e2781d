/**
 * The order of keys that one lane alone does not give. Replies on different connections do not show in which order
 * their commands ran. So a command waits
 *
 * - if several lanes lead to one database: for commands of other lanes on the same key, if one of the two writes;
 * - for reserved keys: a command on a private connection, or a write that may wake a blocked client (`wakeup.ts`), has
 *   them to itself.
 *
 * First come, first served: a command that has to wait makes a lock request, and later commands on its keys queue
 * behind that request, unless both only read. A lock request holds no keys, so no two commands wait for each other.
 * When keys become free, the requests for them are granted in their order.
 *
 * With one lane, and nothing reserved, no command asks.
 */
import { monotonicMs } from '../io/clock.js';
import { OLD_RESERVATION_MS, type ReservationsSnapshot } from '../telemetry/snapshot.js';
import type { Carrier } from './operation.js';

interface Holding {
  /** The lane that holds the key; null if several lanes do, all reading. */
  lane: Carrier | null;
  readers: number;
  writers: number;
}

/** A command that is blocked at the server until one of its keys has data for it. */
export interface BlockedClient {
  /** The private lane that carries the command. */
  readonly lane: Carrier;
  /** All keys of the command. */
  readonly keys: readonly string[];
  /** The keys whose writes may wake the command. */
  readonly waitsOn: readonly string[];
  /** The key that the command writes when it is woken; null if that is the key that woke it, or none. */
  readonly destination: string | null;
  /** The write that may have woken the command; null if no write through the proxy can have. */
  wakeup: PendingWakeup | null;
  /**
   * A write that did not declare the key may have woken the command before: the place of what it takes in the order is
   * unknown.
   */
  unordered: boolean;
}

/** A write that may have woken blocked clients, until it is known whether it has. */
export interface PendingWakeup {
  /** The blocked client was answered. @param effect null if it took nothing */
  settled(blockedClient: BlockedClient, effect: WakeupEffect | null): void;
  /** Calls `then` when the wakeup is over. */
  after(then: () => void): void;
}

/** What a woken client took. */
export interface WakeupEffect {
  /**
   * Effects without a domain in common may be sent in any order. Those with one have the server's order, which is
   * unknown; null: a domain in common with every other effect.
   */
  readonly domains: readonly string[] | null;
  /**
   * Sends the effect to the mirror.
   * @param ordered whether the order among the clients that were woken together is known, or does not matter
   */
  replicate(ordered: boolean): void;
}

/** Keys that only their holder may use. */
export interface Reservation {
  readonly keys: ReadonlySet<string>;
  /** When the reservation was made, in ms of the monotonic clock. */
  readonly since: number;
  readonly then: (() => void)[];
}

/** A command that waits for keys. */
export interface Request {
  /** Null if the command must have the keys to itself. */
  readonly lane: Carrier | null;
  readonly keys: readonly string[];
  readonly writes: boolean;
  /** Called once the keys are free. The function takes the keys at once, or waits again. */
  go(): void;
}

/** A place in the queue. */
export interface LockRequest {
  readonly locks: KeyLocks;
  readonly number: number;
  /** When the command was first queued, in ms of the monotonic clock. */
  readonly since: number;
  readonly request: Request;
}

/** The reservations of all databases, and the commands that wait. @param now in ms of the monotonic clock */
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
  /** Whether commands have to ask for their keys at all. */
  active = false;
  /** How many effects of woken clients, which have their replies, wait for the reply to the write that woke them. */
  withheld = 0;
  #tracking = false;
  readonly #held = new Map<string, Holding>();
  /** The waiting requests by key, in the order of their numbers. */
  readonly #queues = new Map<string, LockRequest[]>();
  readonly #waiting = new Set<LockRequest>();
  #lastNumber = 0;
  /** Keys whose queues are to be checked. */
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

  /** With one lane to the database: whether a command on this key has to ask. */
  concerns(key: string): boolean {
    return this.#reserved.has(key) || this.#waitedOn.has(key) || this.#queues.has(key);
  }

  /**
   * Whether a command on these keys may be sent now.
   * @param lane null if the command must have the keys to itself
   * @param lockRequest its request, if it has waited: only earlier requests are ahead of it
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

  /** Whether a request with a smaller number waits for one of the keys. */
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
   * Queues a command that is not admitted.
   * @param previous its earlier request, whose place it keeps
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

  /** Withdraws a request, if it still waits. */
  leave(lockRequest: LockRequest): void {
    if (this.#remove(lockRequest)) this.#advance(lockRequest.request.keys);
  }

  /** Does the work when the keys are free. The work takes the keys before its first `await`. */
  withLock<T>(lane: Carrier | null, keys: readonly string[], writes: boolean, work: () => Promise<T>): Promise<T> {
    // An exception of the work rejects the caller's promise: it must not reach the reply that has freed the keys.
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

  /** Checks who waits for these keys: one obstacle less is in their way. */
  #advance(keys: Iterable<string>): void {
    if (this.#waiting.size === 0) return;
    for (const key of keys) this.#freed.add(key);
    // A granted command may free keys in turn: they are checked after it.
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

  /** Grants the requests for the key that can be granted. */
  #grantWaiting(key: string): void {
    const queue = this.#queues.get(key);
    if (queue === undefined) return;
    for (const lockRequest of [...queue]) {
      if (!this.#waiting.has(lockRequest)) continue;
      const { lane, keys, writes, go } = lockRequest.request;
      if (this.admits(lane, keys, writes, lockRequest)) {
        this.#remove(lockRequest);
        // A request that waited behind this one for another key may be the first there now.
        for (const each of keys) this.#freed.add(each);
        go();
      } else if (writes) return;
    }
  }

  // ── reservations ────────────────────────────────────────────────────────────────────────────────────────────

  /** Reserves the keys: until they are released, no command on them is admitted. */
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

  /** When each open reservation was made, in ms of the monotonic clock. */
  reservedSince(): number[] {
    return [...this.#reservations].map(({ since }) => since);
  }

  /** When the longest waiting command was queued; null if none waits. */
  waitsSince(): number | null {
    let first: number | null = null;
    for (const { since } of this.#waiting) if (first === null || since < first) first = since;
    return first;
  }

  /** Resolves once all present reservations are released. */
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

  /** The blocked clients that a write to these keys may wake, and those that their writes may wake in turn. */
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

  /** The keys of a write, and those of the clients that it may wake. */
  withWoken(keys: readonly string[]): readonly string[] {
    const woken = this.wokenBy(keys);
    return woken.size === 0 ? keys : [...keys, ...[...woken].flatMap((blockedClient) => blockedClient.keys)];
  }

  /** All blocked clients of the database. */
  blocked(): Set<BlockedClient> {
    return new Set([...this.#waitedOn.values()].flatMap((blockedClients) => [...blockedClients]));
  }
}
