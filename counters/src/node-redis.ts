/** The store on a client of node-redis (`redis`, `@redis/client`) 4.6 or later. */
import type { Store } from './store.js';

/** The methods that are used of a node-redis client, the result of `createClient`. */
export interface NodeRedisClient {
  sendCommand(args: string[]): Promise<unknown>;
}

/** @param client connected to this region's server; the caller closes it */
export const nodeRedisStore = (client: NodeRedisClient): Store => ({
  send: (command) => client.sendCommand([...command]),
});
