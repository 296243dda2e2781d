/** A client that blocks gets what is there: no key that it waits for holds elements for long. */
import type { Client } from '../clients/client.js';
import type { Entry } from '../server/values.js';
import type { KeyName } from '../world/key-name.js';

/** By command: what it takes from, and whether its last key is where it puts the element. */
const TAKES: Readonly<Record<string, { readonly type: Entry['type']; readonly puts?: true }>> = {
  ...{ BLPOP: { type: 'list' }, BRPOP: { type: 'list' }, BZPOPMIN: { type: 'zset' }, BZPOPMAX: { type: 'zset' } },
  ...{ BLMOVE: { type: 'list', puts: true }, BRPOPLPUSH: { type: 'list', puts: true } },
};
/** A change of stage holds commands for about so long at the most. */
const BOUND_MS = 1_200;

export class Unserved {
  /** By command: since when elements are there. */
  readonly #since = new Map<number, number>();

  /** To be called often. @param typesOf the types of the key on both servers, where they have it */
  problem(
    now: number,
    clients: readonly Client[],
    typesOf: (key: KeyName) => readonly (Entry['type'] | undefined)[],
  ): string | null {
    for (const { name, waiting } of clients) {
      const [first] = waiting;
      const takes = first && first.command.inTransaction !== true ? TAKES[first.args[0]] : undefined;
      if (takes === undefined) continue;
      const from = takes.puts === true ? first.keys.slice(0, -1) : first.keys;
      const isThere = from.some((key) => typesOf(key).every((type) => type === takes.type));
      if (!isThere) {
        this.#since.delete(first.id);
        continue;
      }
      const since = this.#since.get(first.id);
      if (since === undefined) this.#since.set(first.id, now);
      else if (now - since > BOUND_MS)
        return `${name} waits for ${first.args.join(' ')}, and elements are there for ${(now - since).toFixed(0)} ms`;
    }
    return null;
  }
}
