/**
 * Lanes to a replica of the source's master, for reads of workloads in `off`, if the plan allows it. The mirror gets
 * nothing of such a read, so it has no order with other commands. If no replica serves, there is no lane, and the
 * authority answers.
 *
 *   to(identity) ─▶ open lane │ none, or not yet ─▶ the authority
 *                       ▲
 *   every second: is it a replica still, and up to date? ─ no ─▶ no new reads; closed once they are answered
 */
import { monotonicMs } from '../io/clock.js';
import { isError, text } from '../resp/decode.js';
import type { Turn } from '../io/turn.js';
import { Latencies, LatencyRecorder } from '../io/latency.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { Server } from '../upstream/server.js';
import type { ServerConnections } from '../upstream/server-connections.js';
import type { Failures } from './failures.js';
import { Lane, type LaneEvents } from './lane.js';
import { IDLE_MS, nameOf } from './lanes.js';
import type { LaneIdentity, Operation } from './operation.js';

const CHECK_MS = 1_000;
/** How many lanes may wait to be opened again; beyond that, lanes are opened without a pause. */
const MAX_FAILED = 1_000;

export interface ReplicaContext {
  /** To the replica. */
  readonly connections: Pick<ServerConnections, 'ask' | 'connect' | 'end'>;
  /** Its master: the source. */
  readonly source: Server;
  readonly turn: Turn;
  readonly failures: Failures;
}

export class ReplicaLanes implements LaneEvents {
  /** Reads that were sent to the replica. */
  reads = 0;
  readonly #lanes = new Map<string, Lane>();
  readonly #opening = new Set<string>();
  /** When a lane may be opened again, in ms of the monotonic clock, by lane. */
  readonly #failedUntil = new Map<string, number>();
  readonly #latency = new Latencies();
  readonly #timer: Timer;
  #checking = false;
  #closed = false;

  constructor(private readonly by: ReplicaContext) {
    this.#timer = every(CHECK_MS, () => void this.#checkReplicas()).unref();
  }

  /** The client's lane; null while it is being opened, or if no replica serves the client. No command waits for it. */
  to(identity: LaneIdentity): Lane | null {
    const name = nameOf(identity, 'source');
    const open = this.#lanes.get(name);
    if (open !== undefined) return open;
    const mayTry = !this.#closed && !this.#opening.has(name);
    if (mayTry && this.by.turn.now() >= (this.#failedUntil.get(name) ?? 0)) {
      this.#opening.add(name);
      void this.#open(name, identity).finally(() => this.#opening.delete(name));
    }
    return null;
  }

  /** Sends a read. */
  submit(operation: Operation, lane: Lane): void {
    this.reads++;
    lane.submit(operation);
  }

  /** Never rejects: without a lane, the authority answers. */
  async #open(name: string, identity: LaneIdentity): Promise<void> {
    const { connections, source, turn } = this.by;
    try {
      if (!(await this.#serves())) throw new Error('it is no replica that is connected to its master');
      const { db, protocol, credentials } = identity;
      const connection = await connections.connect({ db, protocol, credentials });
      const allowed = await connection.ask('READONLY');
      if (isError(allowed) || this.#closed) {
        connection.destroy();
        throw new Error(text(allowed));
      }
      const lane = new Lane(source, identity, connection, new LatencyRecorder(this.#latency), this, turn);
      this.#failedUntil.delete(name);
      this.#lanes.set(name, lane);
    } catch {
      if (this.#failedUntil.size >= MAX_FAILED) this.#failedUntil.clear();
      this.#failedUntil.set(name, monotonicMs() + CHECK_MS);
    }
  }

  /** Whether the node is a replica that receives its master's writes. */
  async #serves(): Promise<boolean> {
    const { items } = await this.by.connections.ask('ROLE');
    return items?.length === 5 && text(items[0]) === 'slave' && text(items[3]) === 'connected';
  }

  async #checkReplicas(): Promise<void> {
    if (this.#checking || this.#lanes.size === 0) return;
    this.#checking = true;
    const serves = await this.#serves().catch(() => false);
    const now = this.by.turn.now();
    for (const [name, lane] of this.#lanes) {
      if (!serves) this.#failedUntil.set(name, now + CHECK_MS);
      if (!serves || (lane.inFlight === 0 && now - lane.usedAt > IDLE_MS)) this.#retire(name, lane);
    }
    this.#checking = false;
  }

  #retire(name: string, lane: Lane): void {
    this.#lanes.delete(name);
    lane.retired = true;
    lane.afterInFlight(() => lane.close());
  }

  answered(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void {
    operation.answeredAt = now;
    try {
      operation.sink?.answered(operation, buffer, start, end);
    } catch (thrown) {
      this.#lost(operation, this.by.failures.at(operation, thrown));
    }
  }

  lost(lane: Lane, operations: readonly Operation[], reason: Error): void {
    for (const [name, open] of this.#lanes) if (open === lane) this.#lanes.delete(name);
    for (const operation of operations) this.#lost(operation, reason);
  }

  #lost(operation: Operation, reason: Error): void {
    try {
      operation.sink?.lost(operation, reason);
    } catch (thrown) {
      this.by.failures.at(operation, thrown);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimer(this.#timer);
    for (const lane of this.#lanes.values()) lane.close();
    await this.by.connections.end();
  }
}
