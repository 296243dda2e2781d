/**
 * Clients that count their replies: each increment is acknowledged, or its result is unknown. Afterwards the server
 * must have at least the acknowledged ones, and at most all of them, whatever happened in between. The load generator
 * cannot do this: after a lost connection it starts again without its counts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Address } from '../driver/driver.js';
import { clientFor, withClient } from '../sides/client.js';

const CLIENTS = 8;
/** Pause of each client between two increments, in ms: it only observes, and should cause no load. */
const PACE_MS = 5;

export interface Tally {
  readonly acknowledged: number;
  /** Acknowledged increments, and those with an unknown result. */
  readonly attempted: number;
  /** The longest time that a client was without an acknowledgement, in ms. */
  readonly longestWaitMs: number;
}

export class Tallier {
  #acknowledged = 0;
  #attempted = 0;
  #longestWaitMs = 0;
  #stopped = false;
  readonly #clients: Promise<void>[];

  constructor(
    private readonly address: Address,
    private readonly prefix: string,
  ) {
    this.#clients = Array.from({ length: CLIENTS }, (_, i) => this.#count(this.#key(i)));
  }

  /** Ends when every client has its last reply. */
  async stop(): Promise<Tally> {
    this.#stopped = true;
    await Promise.all(this.#clients);
    return { acknowledged: this.#acknowledged, attempted: this.#attempted, longestWaitMs: this.#longestWaitMs };
  }

  /** What a server has of the increments. */
  found(address: Address): Promise<number> {
    return withClient(address, async (client) => {
      const values = await Promise.all(this.#keys().map((key) => client.get(key)));
      return values.reduce((sum, value) => sum + Number(value ?? 0), 0);
    });
  }

  async remove(): Promise<void> {
    await withClient(this.address, (client) => client.unlink(...this.#keys()));
  }

  async #count(key: string): Promise<void> {
    const client = clientFor(this.address, {
      retryStrategy: () => 50,
      autoResendUnfulfilledCommands: false,
      enableOfflineQueue: false,
    });
    client.on('error', () => undefined);
    await client.connect().catch(() => undefined);
    let last = performance.now();
    while (!this.#stopped) {
      if (client.status === 'ready' && (await this.#increment(client, key))) {
        this.#longestWaitMs = Math.max(this.#longestWaitMs, performance.now() - last);
        last = performance.now();
      }
      await sleep(PACE_MS);
    }
    this.#longestWaitMs = Math.max(this.#longestWaitMs, performance.now() - last);
    client.disconnect();
  }

  async #increment(client: Redis, key: string): Promise<boolean> {
    this.#attempted++;
    try {
      await client.incr(key);
      this.#acknowledged++;
      return true;
    } catch {
      return false;
    }
  }

  readonly #key = (i: number): string => `${this.prefix}tally:${i}`;
  readonly #keys = (): string[] => Array.from({ length: CLIENTS }, (_, i) => this.#key(i));
}
