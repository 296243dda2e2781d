/** Clients of both libraries that write through an outage, and know what was acknowledged. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { LocalServer } from '../../../src/local/servers.js';

export interface Writers {
  /** By key: the value that was acknowledged. Each key is written once. */
  readonly acknowledged: ReadonlyMap<string, string>;
  /** The errors that clients got, other than that the connection was lost. */
  readonly errors: readonly string[];
  /** Increments that were acknowledged, by counter. */
  readonly counted: ReadonlyMap<string, number>;
  stop(): Promise<void>;
  /** Likewise at once, whatever they wait for. */
  kill(): void;
}

/** The errors of both libraries when any server or proxy is lost. */
const LOST =
  /Connection is closed|Socket closed unexpectedly|ECONNREFUSED|ECONNRESET|EPIPE|max retries|Stream isn't writeable|The client is closed/i;
const EACH = 4;

/** Four clients of each library, as they are without options but for a fast reconnect. */
export async function startWriters(port: number, prefix = 'k'): Promise<Writers> {
  const acknowledged = new Map<string, string>();
  const counted = new Map<string, number>();
  const errors: string[] = [];
  /** Who waits for a reply. */
  const waiting = new Set<string>();
  let running = true;
  const note = (problem: Error): void => void (LOST.test(problem.message) || errors.push(problem.message));
  const write = async (
    name: string,
    set: (key: string, value: string) => Promise<unknown>,
    incr: (key: string) => Promise<number>,
  ): Promise<void> => {
    for (let i = 0; running; i++) {
      const [key, value, counter] = [`${prefix}:${name}:${i}`, `v${i}`, `${prefix}:n:${name}`];
      const done = [
        set(key, value).then(() => acknowledged.set(key, value)),
        incr(counter).then(() => counted.set(counter, (counted.get(counter) ?? 0) + 1)),
      ].map((each) =>
        each.then(
          () => true,
          (problem: Error) => (note(problem), false),
        ),
      );
      waiting.add(name);
      const answered = await Promise.all(done);
      waiting.delete(name);
      if (answered.includes(false)) await sleep(20);
    }
  };
  const ioredis = Array.from({ length: EACH }, () => new Redis(port, { retryStrategy: () => 50 }).on('error', note));
  const nodeRedis = Array.from({ length: EACH }, () =>
    createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 50 } }).on('error', note),
  );
  await Promise.all(nodeRedis.map((client) => client.connect()));
  const all = [
    ...ioredis.map((client, i) =>
      write(
        `io${i}`,
        (key, value) => client.set(key, value),
        (key) => client.incr(key),
      ),
    ),
    ...nodeRedis.map((client, i) =>
      write(
        `node${i}`,
        (key, value) => client.set(key, value),
        (key) => client.incr(key),
      ),
    ),
  ];
  const kill = (): void => {
    running = false;
    for (const client of ioredis) client.disconnect();
    for (const client of nodeRedis) if (client.isOpen) client.destroy();
  };
  return {
    ...{ acknowledged, errors, counted },
    async stop() {
      running = false;
      const late = sleep(15_000, undefined, { ref: false }).then(() =>
        Promise.reject(new Error(`no reply within 15 s to ${[...waiting].join(', ')}`)),
      );
      await Promise.race([Promise.all(all), late]).finally(kill);
    },
    kill,
  };
}

/** What was acknowledged and is not there. */
export async function lostOn({ port }: LocalServer, { acknowledged, counted }: Writers): Promise<string[]> {
  const client = new Redis(port);
  try {
    const [keys, counters] = [[...acknowledged.keys()], [...counted.keys()]];
    const values = keys.length === 0 ? [] : await client.mget(keys);
    const counts = counters.length === 0 ? [] : await client.mget(counters);
    return [
      ...keys.filter((key, i) => values[i] !== acknowledged.get(key)),
      // One that was in flight may have run, and been sent again.
      ...counters
        .filter((key, i) => Number(counts[i]) < counted.get(key)!)
        .map((key) => `${key}: fewer than ${counted.get(key)}`),
    ];
  } finally {
    client.disconnect();
  }
}
