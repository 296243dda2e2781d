/** The library on a client of ioredis 5 or later. */
import type { Store } from './store.js';

/** What is used of an ioredis client; its `Redis` has it. */
export interface IoredisClient {
  call(command: string, args: string[]): Promise<unknown>;
  multi(commands: string[][]): { exec(): Promise<[error: Error | null, reply: unknown][] | null> };
}

/** @param client connected to this region's server; stays the caller's to close */
export function ioredisStore(client: IoredisClient): Store {
  return {
    async run(commands) {
      if (commands.length === 1) return [await client.call(commands[0][0], commands[0].slice(1))];
      const replies = await client.multi(commands.map(([name, ...args]) => ['call', name, ...args])).exec();
      if (replies === null) throw new Error('the transaction was given up');
      return replies.map(([error, reply]) => {
        if (error) throw error;
        return reply;
      });
    },
  };
}
