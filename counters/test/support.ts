/** Processes that count, for tests: each with a client of its own. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Counters, type CountersOptions, type Store } from '../src/index.js';
import { ioredisStore } from '../src/ioredis.js';
import { nodeRedisStore } from '../src/node-redis.js';

export type Library = 'ioredis' | 'node-redis' | 'node-redis, RESP3';
export const LIBRARIES: readonly Library[] = ['ioredis', 'node-redis', 'node-redis, RESP3'];

export interface Client {
  readonly store: Store;
  /** Cuts the connection for good, as the end of the process does. */
  end(): void;
}

export async function connect(port: number, library: Library = 'ioredis'): Promise<Client> {
  if (library === 'ioredis') {
    const client = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null, retryStrategy: () => 50 });
    client.on('error', () => undefined);
    return { store: ioredisStore(client), end: () => client.disconnect() };
  }
  const client = createClient({
    RESP: library === 'node-redis' ? 2 : 3,
    socket: { host: '127.0.0.1', port, reconnectStrategy: 50 },
  });
  client.on('error', () => undefined);
  await client.connect();
  return { store: nodeRedisStore(client), end: () => client.destroy() };
}

export interface Process {
  readonly counters: Counters;
  /** Ends it with no farewell. */
  crash(): void;
  close(): Promise<void>;
}

/**
 * A process that counts and soon learns of others; it repairs only when the test calls repair(), unless `options` says
 * otherwise.
 */
export async function startProcess(
  port: number,
  options: CountersOptions,
  library: Library = 'ioredis',
): Promise<Process> {
  const client = await connect(port, library);
  const counters = await Counters.open(client.store, { refreshMs: 200, repairMs: 0, ...options });
  return {
    counters,
    crash: () => client.end(),
    close: async () => {
      await counters.close();
      client.end();
    },
  };
}

/** Waits for a condition, for a minute at the most. @throws after that, with what it waited for */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within a minute: ${what}`);
    await sleep(20);
  }
}
