/**
 * Bounds what the clients of a shard may use together. Beyond `limits.totalClientBytes` of memory the client that uses
 * most is closed, then the next. A client that does not log in, or is idle for too long, is closed as well. Closed
 * clients are counted by reason.
 */
import { monotonicMs } from '../io/clock.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { Limits } from '../plan/plan.js';
import type { ClientState } from './client-state.js';
import { FailedLogins } from './failed-logins.js';

/** A client and the memory that it uses. */
export interface ClientUsage {
  readonly client: Pick<ClientState, 'socket' | 'connectedAt' | 'activeAt'>;
  /** Bytes of memory that the client uses. */
  readonly bytes: number;
  /** Whether the client's next command is refused unless it logs in, as far as the proxy knows. */
  readonly mustLogIn: boolean;
  /** Whether the client waits neither for a reply nor for a message. */
  readonly isIdle: boolean;
}

export type ClientBounds = Pick<
  Limits,
  'clientOutputBytes' | 'totalClientBytes' | 'transactionBytes' | 'loginMs' | 'idleMs'
>;

/**
 * Why clients are closed. `output` and `memory`: they use too much. `connections`: beyond `limits.clients`. `failure`:
 * the proxy threw at one of their commands. `header`: their connection began without the PROXY header that the plan
 * wants.
 */
export const CLOSED_FOR = ['output', 'memory', 'connections', 'login', 'idle', 'failure', 'header'] as const;
export type ClosedFor = (typeof CLOSED_FOR)[number];

const CHECK_MS = 1_000;
/** Memory is added up again when clients may use this share of the bound more than before, or so many bytes. */
const GROWTH_SHARE = 1 / 16;
const MIN_GROWTH = 1 << 20;
export class ClientLimits {
  readonly closed: Record<ClosedFor, number> = {
    output: 0,
    memory: 0,
    connections: 0,
    login: 0,
    idle: 0,
    failure: 0,
    header: 0,
  };
  /** Bytes that all clients used when they were last added up. */
  bytes = 0;
  readonly failedLogins = new FailedLogins();
  #grown = 0;
  #bounds: ClientBounds;
  readonly #timer: Timer;

  constructor(
    private readonly sessions: ReadonlyMap<number, ClientUsage>,
    bounds: ClientBounds,
  ) {
    this.#bounds = bounds;
    this.#timer = every(CHECK_MS, () => this.#check()).unref();
  }

  /** A client has sent, or was sent, `bytes` bytes that may stay in memory. */
  grew(bytes: number): void {
    this.#grown += bytes;
    if (this.#grown > Math.max(this.bounds.totalClientBytes * GROWTH_SHARE, MIN_GROWTH)) this.#weigh();
  }

  /** Closes a client at once. Replies that it has not read are dropped. */
  close({ client: { socket } }: ClientUsage, why: ClosedFor): void {
    if (socket.destroyed) return;
    this.closed[why]++;
    socket.destroy();
  }

  /** Takes over the bounds of a reloaded plan. */
  reload(bounds: ClientBounds): void {
    this.#bounds = bounds;
  }

  get bounds(): ClientBounds {
    return this.#bounds;
  }

  end(): void {
    clearTimer(this.#timer);
  }

  #weigh(): void {
    this.#grown = 0;
    const { totalClientBytes } = this.bounds;
    let bytes = 0;
    for (const session of this.sessions.values()) bytes += session.bytes;
    if (bytes > totalClientBytes) {
      const usages = [...this.sessions.values()]
        .map((session) => ({ session, bytes: session.bytes }))
        .sort((a, b) => b.bytes - a.bytes);
      for (const each of usages) {
        if (bytes <= totalClientBytes) break;
        this.close(each.session, 'memory');
        bytes -= each.bytes;
      }
    }
    this.bytes = bytes;
  }

  #check(): void {
    this.#weigh();
    const now = monotonicMs();
    const { loginMs, idleMs } = this.bounds;
    for (const session of this.sessions.values()) {
      if (now - session.client.connectedAt > loginMs && session.mustLogIn) this.close(session, 'login');
      else if (idleMs > 0 && now - session.client.activeAt > idleMs && session.isIdle) this.close(session, 'idle');
    }
  }
}
