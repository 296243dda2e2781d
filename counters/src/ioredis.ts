/** The library on a client of ioredis 5 or later. */
import type { Store } from './store.js';

/** What is used of an ioredis client; its `Redis` has it. */
export interface IoredisClient {
  call(command: string, args: string[]): Promise<unknown>;
}

/** @param client connected to this region's server; stays the caller's to close */
export const ioredisStore = (client: IoredisClient): Store => ({
  send: ([name, ...args]) => client.call(name, args),
});
