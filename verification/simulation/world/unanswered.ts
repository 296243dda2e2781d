/**
 * Changes of a server's keys whose replies have not arrived yet: what made them has not been acknowledged to anyone. A
 * change is over when its reply has arrived whole at the other end of its connection, or when that end is closed.
 */
import type { Client } from '../server/state.js';
import type { End } from './network.js';
import type { KeyName } from './key-name.js';

interface Change {
  /** The end at which the reply arrives. */
  readonly end: End;
  /** The reply has arrived with so many bytes; Infinity while the server has not written it. */
  at: number;
}

export class Unanswered {
  readonly #ends = new WeakMap<Client, End>();
  readonly #changes = new Map<KeyName, Change[]>();
  /** By client: changes whose replies are not written yet. */
  readonly #unwritten = new Map<Client, Change[]>();
  /** Clients whose last command has a reply that the next reply completes. */
  readonly #asksMore = new WeakSet<Client>();
  /** Keys of changes whose replies were lost: nobody knows of them. */
  readonly lost = new Set<KeyName>();
  #actor: Client | null = null;

  connected(client: Client, end: End): void {
    this.#ends.set(client, end);
  }

  /**
   * The client sends this command. The reply does not say what `~` has trimmed: a client that must know it asks for
   * the length right behind, and acknowledges nothing before it has both replies.
   */
  asks(client: Client, args: readonly string[]): void {
    if (args.length > 3 && /^x(add|trim)$/i.test(args[0]) && args.includes('~')) this.#asksMore.add(client);
    else this.#asksMore.delete(client);
  }

  /** Runs what a client has asked for. */
  as<T>(client: Client, run: () => T): T {
    const before = this.#actor;
    this.#actor = client;
    try {
      return run();
    } finally {
      this.#actor = before;
    }
  }

  changed(key: KeyName): void {
    const client = this.#actor;
    const end = client && this.#ends.get(client);
    if (client === null || end === undefined || end === null) return;
    const change = { end: end.other, at: Infinity };
    const changes = this.#changes.get(key);
    if (changes === undefined) this.#changes.set(key, [change]);
    else if (!changes.some((each) => each.end === end.other && each.at === Infinity)) changes.push(change);
    const unwritten = this.#unwritten.get(client);
    if (unwritten === undefined) this.#unwritten.set(client, [change]);
    else unwritten.push(change);
  }

  /** The server has written the client's replies so far. */
  replied(client: Client): void {
    const unwritten = this.#unwritten.get(client);
    if (unwritten === undefined || this.#asksMore.has(client)) return;
    for (const change of unwritten) change.at = change.end.other.bytesSent;
    this.#unwritten.delete(client);
  }

  has(key: KeyName): boolean {
    const changes = this.#changes.get(key);
    if (changes === undefined) return false;
    if (changes.every(({ end, at }) => end.bytesArrived < at && !end.isClosed)) return true;
    const unseen = changes.filter(({ end, at }) => end.bytesArrived < at);
    const left = unseen.filter(({ end }) => !end.isClosed);
    if (left.length < unseen.length) this.lost.add(key);
    if (left.length > 0) this.#changes.set(key, left);
    else this.#changes.delete(key);
    return left.length > 0;
  }
}
