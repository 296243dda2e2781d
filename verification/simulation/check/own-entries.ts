/**
 * Who waits for new entries of a stream gets none that it has added to it itself, on the same connection, before. COPY
 * may bring those of another stream.
 */
import type { Reply } from '../clients/replies.js';

interface Added {
  readonly connection: number;
  readonly values: Set<string>;
}

export class OwnEntries {
  /** By client: the streams and values of its entries. */
  readonly #added = new Map<string, Added>();

  sent(client: string, connection: number, args: readonly string[]): void {
    let added = this.#added.get(client);
    // What the last connection has sent may run later.
    if (added?.connection !== connection) this.#added.set(client, (added = { connection, values: new Set() }));
    if (args[0] === 'XADD') added.values.add(`${args[1]} $${args.at(-1)!}`);
  }

  /** Why no server gives this reply; null where one may. */
  problem(client: string, args: readonly string[], reply: Reply): string | null {
    if (args[0] !== 'XREAD' || args.at(-1) !== '$' || !Array.isArray(reply)) return null;
    const { values } = this.#added.get(client) ?? {};
    // A map of RESP3, or an array of pairs.
    const streams = (typeof reply[0] === 'string' ? [reply] : reply) as readonly (readonly [string, Reply])[];
    for (const [name, entries] of streams) {
      const own = stringsIn(entries).find((text) => values?.has(`${name.slice(1)} ${text}`));
      if (own !== undefined) return `${args.join(' ')} got an entry that its client had added: ${own.slice(1)}`;
    }
    return null;
  }
}

const stringsIn = (reply: Reply): readonly string[] =>
  Array.isArray(reply) ? (reply as readonly Reply[]).flatMap(stringsIn) : typeof reply === 'string' ? [reply] : [];
