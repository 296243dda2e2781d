/** What the replies to clients say between WATCH and EXEC: which commands are queued, and what EXEC may answer then. */
import { isError, type Reply } from '../clients/replies.js';
import { wrongType, wrongTypesOfExec } from './reply-types.js';

export class Transactions {
  /** By client between MULTI and EXEC: what was queued. Replies of one connection come in order. */
  readonly #queued = new Map<string, (readonly string[])[]>();
  /** Clients in whose transaction a command was refused. */
  readonly #refused = new Set<string>();
  /** Clients whose WATCH was answered with OK. */
  readonly #watching = new Set<string>();

  /** What the client has queued; undefined outside a transaction. */
  queuedBy(client: string): readonly (readonly string[])[] | undefined {
    return this.#queued.get(client);
  }

  /** Its connection has ended, or is a new one. */
  forget(client: string): void {
    this.#queued.delete(client);
    this.#refused.delete(client);
    this.#watching.delete(client);
  }

  /** All connections are new. */
  /** Why no server gives this reply here; null where one may. */
  problem(client: string, args: readonly string[], reply: Reply): string | null {
    const [name] = args;
    const queued = this.#queued.get(client);
    if (queued === undefined) {
      if (name === 'WATCH' && !isError(reply)) this.#watching.add(client);
      if (name === 'UNWATCH' && !isError(reply)) this.#watching.delete(client);
      if (name === 'MULTI' && !isError(reply)) this.#queued.set(client, []);
      return wrongType(args, reply);
    }
    if (name === 'MULTI') return wrongType(args, reply);
    if (name === 'EXEC' || name === 'DISCARD') {
      const wrong = name === 'EXEC' ? this.#wrongExec(client, reply) : null;
      this.forget(client);
      return wrong ?? wrongType(args, reply) ?? wrongTypesOfExec(queued, reply);
    }
    if (reply === '+QUEUED') queued.push(args);
    else if (isError(reply)) this.#refused.add(client);
    else return `${args.join(' ')} in a transaction got ${JSON.stringify(reply)}`;
    return null;
  }

  #wrongExec(client: string, reply: Reply): string | null {
    if (isError(reply)) return null;
    if (this.#refused.has(client)) return `EXEC behind a command that was refused got ${JSON.stringify(reply)}`;
    return reply === null && !this.#watching.has(client) ? 'EXEC got nil, and its client watches nothing' : null;
  }
}
