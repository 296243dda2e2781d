/** The store on a client of ioredis 5 or later. */
import type { Store } from './store.js';

/** The methods that are used of an ioredis client. */
export interface IoredisClient {
  call(command: string, args: string[]): Promise<unknown>;
}

/** @param client connected to this region's server; the caller closes it */
export const ioredisStore = (client: IoredisClient): Store => ({
  send: ([name, ...args]) => client.call(name, args),
});
