/**
 * `CLIENT TRACKING ON BCAST` without a prefix: each client that asked for it gets the keys that change, whatever their
 * database, as one push after each command. A flush is a push of its own, with null.
 */
import { bulk } from './reply.js';

/** A client, as far as this part needs it. */
interface Tracked {
  /** Sends what comes without a command, once the command at hand is over. */
  pushLater(text: string): void;
}

const PUSH = `>2\r\n${bulk('invalidate')}`;

export class Tracking {
  /** How many messages were sent. */
  sent = 0;
  readonly #clients = new Set<Tracked>();
  #changed = new Set<string>();

  get count(): number {
    return this.#clients.size;
  }

  has(client: Tracked): boolean {
    return this.#clients.has(client);
  }

  start(client: Tracked): void {
    this.#clients.add(client);
  }

  stop(client: Tracked): void {
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
      client.pushLater(message);
    }
  }
}
