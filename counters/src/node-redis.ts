/** The library on a client of node-redis (`redis`, `@redis/client`) 4.6 or later. */
import type { Store } from './store.js';

/** What is used of a node-redis client; the result of `createClient` has it. */
export interface NodeRedisClient {
  sendCommand(args: string[]): Promise<unknown>;
  multi(): NodeRedisTransaction;
}

interface NodeRedisTransaction {
  addCommand(args: string[]): unknown;
  exec(): Promise<unknown>;
}

/** @param client connected to this region's server; stays the caller's to close */
export function nodeRedisStore(client: NodeRedisClient): Store {
  return {
    async run(commands) {
      if (commands.length === 1) return [await client.sendCommand([...commands[0]])];
      const transaction = client.multi();
      for (const command of commands) transaction.addCommand([...command]);
      const replies = (await transaction.exec()) as unknown[];
      for (const reply of replies) if (reply instanceof Error) throw reply;
      return replies;
    },
  };
}
