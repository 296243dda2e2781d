/**
 * `CLIENT TRACKING ON BCAST` without a prefix: each client that asked for it gets the keys that change, whatever their
 * database, as one push after each command. A flush is a push of its own, with null.
 */
import { bulk } from './reply.js';
import type { Client } from './state.js';

const PUSH = `>2\r\n${bulk('invalidate')}`;

export class Tracking {
  /** How many messages were sent. */
  sent = 0;
  readonly #clients = new Set<Client>();
  #changed = new Set<string>();

  get count(): number {
    return this.#clients.size;
  }

  has(client: Client): boolean {
    return this.#clients.has(client);
  }

  start(client: Client): void {
    this.#clients.add(client);
  }

  stop(client: Client): void {
    this.#clients.delete(client);
  }

  changed(key: string): void {
    if (this.#clients.size > 0) this.#changed.add(key);
  }

  /** A command has removed all keys of a database, or of all. */
  flushed(): void {
    this.#push(`${PUSH}_\r\n`);
  }

  /** The command is over. */
  broadcast(): void {
    if (this.#changed.size === 0) return;
    const keys = [...this.#changed].sort();
    this.#changed = new Set();
    this.#push(`${PUSH}*${keys.length}\r\n${keys.map(bulk).join('')}`);
  }

  #push(message: string): void {
    for (const client of this.#clients) {
      this.sent++;
      client.push(message);
      client.server.flushLater(client);
    }
  }
}
