/** Clients that use many kinds of commands until they are stopped; each counts what it added, and no error passes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Login } from './logins.js';

export interface Work {
  readonly errors: ReadonlySet<string>;
  /** How much was added to `session:count`. */
  stop(): Promise<number>;
}

const SCRIPT = "redis.call('hincrby', KEYS[1], 'n', 1) return redis.call('hget', KEYS[1], 'n')";

export function work(port: number, { username, password }: Login): Work {
  const errors = new Set<string>();
  const [client, blocked] = Array.from(
    { length: 2 },
    () => new Redis({ port, username, password, maxRetriesPerRequest: 0 }),
  );
  for (const each of [client, blocked]) each.on('error', (error: Error) => errors.add(error.message));
  let running = true;
  let added = 0;
  const loop = async (step: (i: number) => Promise<unknown>): Promise<void> => {
    for (let i = 0; running; i++) await step(i).catch((error: Error) => errors.add(error.message));
  };
  const loops = [
    loop(async (i) => {
      await Promise.all([
        client.incr('session:count').then(() => added++),
        client.set(`session:${i % 50}`, `v${i}`, 'EX', 600),
        client.get(`session:${(i * 7) % 50}`),
        client.hset(`session:h:${i % 20}`, 'f', i),
        client.zadd('session:z', i, `m${i % 30}`),
        client.sadd('session:s', `m${i % 100}`),
        client.spop('session:s'),
        client.xadd('session:x', 'MAXLEN', '100', '*', 'i', i),
        client.eval(SCRIPT, 1, 'session:script'),
        client.multi().incr('session:m').expire('session:m', 500).exec(),
        client.rpush('session:queue', i),
      ]);
      // A stage changes when no key is suspect for a moment.
      await sleep(5);
    }),
    loop(() => blocked.blpop('session:queue', 1)),
  ];
  return {
    errors,
    async stop() {
      running = false;
      await Promise.all(loops);
      for (const each of [client, blocked]) each.disconnect();
      return added;
    },
  };
}
