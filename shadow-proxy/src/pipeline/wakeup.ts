/**
 * Rule 6: what a woken client takes follows the write that woke it. The two replies come on two connections, in any
 * order; nothing may come between them in the mirror's order. So the keys are reserved from the moment that the write
 * is sent until its own effect is appended, and each client that it may have woken has answered, or is seen to block
 * still.
 *
 *   write ─▶ reserve ─▶ answered ─▶ effect ─▶ CLIENT LIST ─┬─ still blocked ─────────────▶ give up the reservation
 *                                                          └─ its reply comes ─▶ effect ─▶ give up the reservation
 *
 * A push into an empty list wakes no more clients than it has elements. Once as many have taken one, the others still
 * block, and the server is not asked: most queues have more workers than jobs.
 *
 * Rule 19: a blocked client belongs to one waking at a time, which alone waits for it and holds its keys.
 */
import { sleep } from '../io/timers.js';
import { decodeReply, text } from '../resp/decode.js';
import type { KeyLocks, Reservation, Taken, BlockedClient, PendingWakeup } from './key-locks.js';
import type { Server } from '../upstream/server.js';
import type { Wakes } from './operation.js';

/** How often, in ms, the server is asked about clients that it woke and that have not answered yet. */
const ASK_MS = [1, 2, 5, 10, 20];
/** How long, in ms, the replies of clients that a push has woken are waited for before the server is asked. */
const REPLIES_MS = 2;

export class Wakeup implements PendingWakeup, Wakes {
  readonly #reservation: Reservation;
  readonly #open: Set<BlockedClient>;
  /** Whether all its clients wait on one key, and none writes another one when it is woken. */
  readonly #onOneKey: boolean;
  readonly #taken: Taken[] = [];
  readonly #then: (() => void)[] = [];
  #answered = false;
  #ended = false;
  /** How many more clients can have been woken; not limited where the write does not tell it. */
  #mayTake = Infinity;

  /**
   * @param keys what the write writes
   * @param woken by `KeyLocks.wokenBy`
   * @param pushed elements that the write gives to its one key, a list; 0 for any other write
   */
  constructor(
    private readonly locks: KeyLocks,
    private readonly server: Server,
    keys: Iterable<string>,
    woken: ReadonlySet<BlockedClient>,
    private readonly pushed = 0,
  ) {
    // A client that an earlier waking waits for stays with that one: taken over, that one would wait for it forever.
    this.#open = new Set([...woken].filter(({ wakeup }) => wakeup === null));
    this.#reservation = locks.reserve([...keys, ...[...this.#open].flatMap((blockedClient) => blockedClient.keys)]);
    this.#onOneKey = [...woken].every(({ keys, destination }) => keys.length === 1 && destination === null);
    for (const blockedClient of this.#open) blockedClient.wakeup = this;
  }

  /**
   * The write's effect has its place in the order.
   * @param buffer with the authority's reply at `start`; absent where the write was none
   */
  answered(buffer?: Buffer, start = 0): void {
    this.#answered = true;
    const limited = buffer !== undefined && this.#wakesOneEach(buffer, start);
    if (limited) this.#mayTake = this.pushed - this.#taken.length;
    this.#settle();
    if (!this.#ended) void this.#ask(limited ? REPLIES_MS : 0);
  }

  /**
   * Whether the list was empty before the push, and each client that it may have woken takes from that list alone and
   * gives nothing to another.
   */
  #wakesOneEach(buffer: Buffer, start: number): boolean {
    if (this.pushed === 0 || !this.#onOneKey) return false;
    return Number(text(decodeReply(buffer, start).reply)) === this.pushed;
  }

  /** The write's connection is lost: what came when, nobody can tell. */
  lost(): void {
    this.#letGo();
    this.#answered = true;
    this.#settle();
  }

  /** The clients that have not answered are not waited for. */
  #letGo(): void {
    for (const blockedClient of this.#open) blockedClient.wakeup = null;
    this.#open.clear();
  }

  /** A client has answered; `taken` is null where it took nothing. */
  settled(blockedClient: BlockedClient, taken: Taken | null): void {
    blockedClient.wakeup = null;
    this.#open.delete(blockedClient);
    if (taken !== null) {
      this.#taken.push(taken);
      this.locks.withheld++;
      this.#mayTake--;
    }
    this.#settle();
  }

  /** Calls `then` when it is over. */
  after(then: () => void): void {
    if (this.#ended) then();
    else this.#then.push(then);
  }

  #settle(): void {
    if (this.#ended || !this.#answered) return;
    if (this.#mayTake <= 0) this.#letGo();
    if (this.#open.size > 0) return;
    this.#ended = true;
    this.locks.withheld -= this.#taken.length;
    for (const taken of this.#taken)
      taken.tell(
        this.#taken.every(
          (other) => other === taken || (other.domain !== '*' && taken.domain !== '*' && other.domain !== taken.domain),
        ),
      );
    this.locks.releaseReservation(this.#reservation);
    for (const then of this.#then) then();
  }

  /** What the server says after the write has been answered is the state after the write. */
  async #ask(afterMs: number): Promise<void> {
    if (afterMs > 0) await sleep(afterMs);
    for (let i = 0; !this.#ended; i++) {
      if (i > 0) await sleep(ASK_MS[Math.min(i, ASK_MS.length) - 1]);
      if (this.#ended) return;
      const blockedClients = [...this.#open];
      const blocked = await this.server.connections
        .blocked(blockedClients.map(({ lane }) => lane.clientId))
        .catch(() => null);
      // A server that is disconnected: their lanes report it.
      if (blocked === null) continue;
      for (const blockedClient of blockedClients) {
        if (!blocked.has(blockedClient.lane.clientId) || !this.#open.delete(blockedClient)) continue;
        blockedClient.wakeup = null;
      }
      this.#settle();
    }
  }
}
