/**
 * What the clients of a shard may cost together. Their memory is bounded: past `limits.totalClientBytes` the client
 * that takes most is closed, and then the next. A client that does not log in, or is idle for too long, is closed as
 * well. Who is closed, is counted by reason.
 */
import { monotonicMs } from '../io/clock.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { Limits } from '../plan/plan.js';
import type { ClientState } from './client-state.js';

/** A client, by what it costs. */
export interface Weighed {
  readonly client: Pick<ClientState, 'socket' | 'connectedAt' | 'activeAt'>;
  /** Bytes of memory that it takes. */
  readonly bytes: number;
  /** Whether its next command is refused, as far as is known, unless it logs in. */
  readonly mustLogIn: boolean;
  /** Whether it waits for nothing: no command, no message. */
  readonly isIdle: boolean;
}

export type ClientBounds = Pick<
  Limits,
  'clientOutputBytes' | 'totalClientBytes' | 'transactionBytes' | 'loginMs' | 'idleMs'
>;

/**
 * Why clients are closed: `output` and `memory` for what they take, `connections` beyond `limits.clients`, `failure`
 * where the proxy has thrown at a command of theirs.
 */
export const CLOSED_FOR = ['output', 'memory', 'connections', 'login', 'idle', 'failure'] as const;
export type ClosedFor = (typeof CLOSED_FOR)[number];

const LOOK_MS = 1_000;
/**
 * Memory is added up again when clients may have taken this share of the bound more; and the least that is worth it.
 */
const GROWTH_SHARE = 1 / 16;
const MIN_GROWTH = 1 << 20;
/** Failed logins from one address that are answered at once, and for how long they are remembered. */
const FREE_LOGINS = 10;
const LOGIN_MEMORY_MS = 60_000;
/** How long the answer to a failed login takes after that. */
const LATE_LOGIN_MS = 1_000;
const MAX_ADDRESSES = 10_000;

export class ClientLimits {
  readonly closed: Record<ClosedFor, number> = { output: 0, memory: 0, connections: 0, login: 0, idle: 0, failure: 0 };
  /** Bytes that clients took when they were added up last. */
  bytes = 0;
  #grown = 0;
  #bounds: ClientBounds;
  readonly #failures = new Map<string, { count: number; readonly since: number }>();
  readonly #timer: Timer;

  constructor(
    private readonly sessions: ReadonlyMap<number, Weighed>,
    bounds: ClientBounds,
  ) {
    this.#bounds = bounds;
    this.#timer = every(LOOK_MS, () => this.#look()).unref();
  }

  /** A client has sent, or been sent, so many bytes that may stay in memory. */
  grew(bytes: number): void {
    this.#grown += bytes;
    if (this.#grown > Math.max(this.bounds.totalClientBytes * GROWTH_SHARE, MIN_GROWTH)) this.#weigh();
  }

  /** Closes a client at once, without what it has not read. */
  close({ client: { socket } }: Weighed, why: ClosedFor): void {
    if (socket.destroyed) return;
    this.closed[why]++;
    socket.destroy();
  }

  /** How long the answer to a failed login from there is to wait, in ms. */
  loginFailed(address: string, now = monotonicMs()): number {
    const failures = this.#failures;
    let known = failures.get(address);
    if (known === undefined || now - known.since > LOGIN_MEMORY_MS) {
      failures.delete(address);
      // The first is the oldest.
      for (const oldest of failures.keys()) if (failures.size >= MAX_ADDRESSES) failures.delete(oldest);
      failures.set(address, (known = { count: 0, since: now }));
    }
    return ++known.count > FREE_LOGINS ? LATE_LOGIN_MS : 0;
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
      const weighed = [...this.sessions.values()]
        .map((session) => ({ session, bytes: session.bytes }))
        .sort((a, b) => b.bytes - a.bytes);
      for (const each of weighed) {
        if (bytes <= totalClientBytes) break;
        this.close(each.session, 'memory');
        bytes -= each.bytes;
      }
    }
    this.bytes = bytes;
  }

  #look(): void {
    this.#weigh();
    const now = monotonicMs();
    const { loginMs, idleMs } = this.bounds;
    for (const session of this.sessions.values()) {
      if (now - session.client.connectedAt > loginMs && session.mustLogIn) this.close(session, 'login');
      else if (idleMs > 0 && now - session.client.activeAt > idleMs && session.isIdle) this.close(session, 'idle');
    }
  }
}
