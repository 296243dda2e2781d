/**
 * Rule 6: on the mirror, what a woken client takes comes right after the write that woke it. The two replies come on
 * two connections, in any order. So the keys are reserved from the moment when the write is sent, until its own effect
 * is appended, and each client that it may have woken was answered or is seen to be still blocked.
 *
 *   write ─▶ reserve ─▶ answered ─▶ effect ─▶ CLIENT LIST ─┬─ still blocked ─────────────▶ give up the reservation
 *                                                          └─ its reply comes ─▶ effect ─▶ give up the reservation
 *
 * A push into an empty list wakes no more clients than it has elements. Once that many clients have taken one, the
 * others must still be blocked, and the server is not asked: most queues have more workers than jobs.
 *
 * A blocking command that moves an element may be the write. Then the server is asked about that command alone, until
 * it is seen to be blocked, and has written nothing, or is answered. What the server says of the others before may be
 * the state before the command.
 *
 * Rule 19: a blocked client belongs to one wakeup at a time. Only that one waits for it and reserves its keys.
 */
import { sleep } from '../io/timers.js';
import { decodeReply, text } from '../resp/decode.js';
import type { KeyLocks, Reservation, WakeupEffect, BlockedClient, PendingWakeup } from './key-locks.js';
import type { Server } from '../upstream/server.js';
import type { Wakes } from './operation.js';

/** How often, in ms, the server is asked about clients that may have been woken and are not answered yet. */
const ASK_MS = [1, 2, 5, 10, 20];
/** How long, in ms, to wait for the replies of clients that a push has woken, before the server is asked. */
const REPLIES_MS = 2;

export class Wakeup implements PendingWakeup, Wakes {
  readonly #reservation: Reservation;
  readonly #open: Set<BlockedClient>;
  /** Whether all clients wait for one key, and none of them writes another key when it is woken. */
  readonly #onOneKey: boolean;
  /** What the writer took, if it is a blocking command that was served at once. */
  #writerEffect: WakeupEffect | null = null;
  readonly #effects: WakeupEffect[] = [];
  readonly #then: (() => void)[] = [];
  #answered = false;
  #ended = false;
  /** How many more clients can have been woken; Infinity if the write does not limit it. */
  #mayTake = Infinity;

  /**
   * @param keys the keys of the write
   * @param woken by `KeyLocks.wokenBy`
   * @param pushed elements that the write gives to its one key, a list; 0 for any other write
   * @param writer the blocking command that is the write; null if the write does not block
   */
  constructor(
    private readonly locks: KeyLocks,
    private readonly server: Server,
    keys: Iterable<string>,
    woken: ReadonlySet<BlockedClient>,
    private readonly pushed = 0,
    private readonly writer: BlockedClient | null = null,
  ) {
    // A client that an earlier wakeup waits for stays with that one. Otherwise the earlier one would wait for it
    // forever.
    this.#open = new Set([...woken].filter(({ wakeup }) => wakeup === null));
    if (writer !== null) this.#open.add(writer);
    this.#reservation = locks.reserve([...keys, ...[...this.#open].flatMap((blockedClient) => blockedClient.keys)]);
    this.#onOneKey = [...woken].every(({ keys, destination }) => keys.length === 1 && destination === null);
    for (const blockedClient of this.#open) blockedClient.wakeup = this;
  }

  /**
   * The write's effect has its place in the order; or the write is the blocking command, and is sent.
   * @param buffer has the authority's reply at `start`; absent if there was no write
   */
  answered(buffer?: Buffer, start = 0): void {
    this.#answered = true;
    const limited = buffer !== undefined && this.#wakesOneEach(buffer, start);
    if (limited) this.#mayTake = this.pushed - this.#effects.length;
    this.#settle();
    if (!this.#ended) void this.#ask(limited ? REPLIES_MS : 0);
  }

  /**
   * Whether the list was empty before the push, and each client that it may have woken takes from that list alone and
   * pushes to no other.
   */
  #wakesOneEach(buffer: Buffer, start: number): boolean {
    if (this.pushed === 0 || !this.#onOneKey) return false;
    return Number(text(decodeReply(buffer, start).reply)) === this.pushed;
  }

  /** The connection of the write is lost: the order of what happened is unknown. */
  lost(): void {
    this.#letGo();
    this.#answered = true;
    this.#settle();
  }

  /** Stops waiting for clients that were not answered. */
  #letGo(): void {
    for (const blockedClient of this.#open) blockedClient.wakeup = null;
    this.#open.clear();
  }

  /** A client was answered. @param effect null if it took nothing */
  settled(blockedClient: BlockedClient, effect: WakeupEffect | null): void {
    blockedClient.wakeup = null;
    this.#open.delete(blockedClient);
    if (effect !== null) {
      if (blockedClient === this.writer) this.#writerEffect = effect;
      else this.#effects.push(effect);
      this.locks.withheld++;
      this.#mayTake--;
    }
    this.#settle();
  }

  /** Calls `then` when the wakeup is over. */
  after(then: () => void): void {
    if (this.#ended) then();
    else this.#then.push(then);
  }

  #settle(): void {
    if (this.#ended || !this.#answered) return;
    if (this.#mayTake <= 0) this.#letGo();
    if (this.#open.size > 0) return;
    this.#ended = true;
    this.locks.withheld -= this.#effects.length + (this.#writerEffect === null ? 0 : 1);
    this.#writerEffect?.replicate(true);
    for (const effect of this.#effects)
      effect.replicate(this.#effects.every((other) => other === effect || areApart(other, effect)));
    this.locks.releaseReservation(this.#reservation);
    for (const then of this.#then) then();
  }

  /** What the server says once it has answered the write, or has blocked it, is the state after the write. */
  async #ask(afterMs: number): Promise<void> {
    if (afterMs > 0) await sleep(afterMs);
    for (let i = 0; !this.#ended; i++) {
      if (i > 0) await sleep(ASK_MS[Math.min(i, ASK_MS.length) - 1]);
      if (this.#ended) return;
      const { writer } = this;
      const blockedClients = writer !== null && this.#open.has(writer) ? [writer] : [...this.#open];
      const blocked = await this.server.connections
        .blocked(blockedClients.map(({ lane }) => lane.clientId))
        .catch(() => null);
      // The server is disconnected: the clients' lanes report that.
      if (blocked === null) continue;
      for (const blockedClient of blockedClients) {
        if (!blocked.has(blockedClient.lane.clientId) || !this.#open.delete(blockedClient)) continue;
        blockedClient.wakeup = null;
        if (blockedClient === writer) this.#letGo();
      }
      this.#settle();
    }
  }
}

/** Whether both effects may be sent in any order. */
const areApart = (one: WakeupEffect, other: WakeupEffect): boolean =>
  one.domains !== null && other.domains !== null && !one.domains.some((domain) => other.domains!.includes(domain));
