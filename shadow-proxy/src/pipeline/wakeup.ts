/**
 * Rule 6: what a woken client takes follows the write that woke it. The two replies come on two connections, in any
 * order; nothing may come between them in the mirror's order. So the keys are reserved from the moment that the write
 * is sent until its own effect is appended, and each client that it may have woken has answered, or is seen to block
 * still.
 *
 *   write ─▶ reserve ─▶ answered ─▶ effect ─▶ CLIENT LIST ─┬─ still blocked ─────────────▶ give up the reservation
 *                                                          └─ its reply comes ─▶ effect ─▶ give up the reservation
 *
 * Rule 19: a blocked client belongs to one waking at a time, which alone waits for it and holds its keys.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KeyLocks, Reservation, Taken, BlockedClient, PendingWakeup } from './key-locks.js';
import type { Server } from '../upstream/server.js';
import type { Wakes } from './operation.js';

/** How often, in ms, the server is asked about clients that it woke and that have not answered yet. */
const ASK_MS = [1, 2, 5, 10, 20];

export class Wakeup implements PendingWakeup, Wakes {
  readonly #reservation: Reservation;
  readonly #open: Set<BlockedClient>;
  readonly #taken: Taken[] = [];
  readonly #then: (() => void)[] = [];
  #answered = false;
  #ended = false;

  /**
   * @param keys what the write writes
   * @param woken by `KeyOrder.wokenBy`
   */
  constructor(
    private readonly order: KeyLocks,
    private readonly server: Server,
    keys: Iterable<string>,
    woken: ReadonlySet<BlockedClient>,
  ) {
    // A client that an earlier waking waits for stays with that one: taken over, that one would wait for it forever.
    this.#open = new Set([...woken].filter(({ waking }) => waking === null));
    this.#reservation = order.reserve([...keys, ...[...this.#open].flatMap((waiter) => waiter.keys)]);
    for (const waiter of this.#open) waiter.waking = this;
  }

  /** The write's effect has its place in the order. */
  answered(): void {
    this.#answered = true;
    this.#settle();
    if (!this.#ended) void this.#ask();
  }

  /** The write's connection is lost: what came when, nobody can tell. */
  lost(): void {
    for (const waiter of this.#open) waiter.waking = null;
    this.#open.clear();
    this.#answered = true;
    this.#settle();
  }

  /** A client has answered; `taken` is null where it took nothing. */
  settled(waiter: BlockedClient, taken: Taken | null): void {
    waiter.waking = null;
    this.#open.delete(waiter);
    if (taken !== null) this.#taken.push(taken);
    this.#settle();
  }

  /** Calls `then` when it is over. */
  after(then: () => void): void {
    if (this.#ended) then();
    else this.#then.push(then);
  }

  #settle(): void {
    if (this.#ended || !this.#answered || this.#open.size > 0) return;
    this.#ended = true;
    for (const taken of this.#taken)
      taken.tell(
        this.#taken.every(
          (other) => other === taken || (other.domain !== '*' && taken.domain !== '*' && other.domain !== taken.domain),
        ),
      );
    this.order.giveUp(this.#reservation);
    for (const then of this.#then) then();
  }

  /** What the server says after the write has been answered is the state after the write. */
  async #ask(): Promise<void> {
    for (let i = 0; !this.#ended; i++) {
      if (i > 0) await sleep(ASK_MS[Math.min(i, ASK_MS.length) - 1]);
      if (this.#ended) return;
      const waiters = [...this.#open];
      const blocked = await this.server.connections.blocked(waiters.map(({ lane }) => lane.clientId)).catch(() => null);
      // A server that is disconnected: their lanes report it.
      if (blocked === null) continue;
      for (const waiter of waiters) {
        if (!blocked.has(waiter.lane.clientId) || !this.#open.delete(waiter)) continue;
        waiter.waking = null;
      }
      this.#settle();
    }
  }
}
