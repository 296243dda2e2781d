/** The library on a client of node-redis (`redis`, `@redis/client`) 4.6 or later. */
import type { Store } from './store.js';

/** What is used of a node-redis client; the result of `createClient` has it. */
export interface NodeRedisClient {
  sendCommand(args: string[]): Promise<unknown>;
}

/** @param client connected to this region's server; stays the caller's to close */
export const nodeRedisStore = (client: NodeRedisClient): Store => ({
  send: (command) => client.sendCommand([...command]),
});
