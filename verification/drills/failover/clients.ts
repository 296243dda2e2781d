/**
 * Runs in the network namespace of one host; its order comes as one line of JSON on the standard input, and it ends
 * with that input. Each line that it prints is a JSON array of events.
 *
 *   count  counts keys up through HAProxy, one request at a time for each client
 *   watch  sees which node becomes the primary
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Ack, Promotion } from './ledger.js';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export type Order = { readonly login: { readonly username: string; readonly password: string } } & (
  | {
      readonly what: 'count';
      readonly place: string;
      readonly clients: number;
      readonly haproxy: Address;
      /** Whether a write counts as acknowledged only once a replica has it, too. */
      readonly wait: boolean;
    }
  | { readonly what: 'watch'; readonly nodes: readonly Address[] }
);

/** Between two requests of a client. */
const PAUSE_MS = 4;
/** After which a client gives a request up; it may be executed later, and is not acknowledged. */
const PATIENCE_MS = 1_500;
const WAIT_MS = 500;
const WATCH_MS = 20;
const REPORT_MS = 100;

const lines = createInterface({ input: process.stdin });
const order = JSON.parse(((await once(lines, 'line')) as [string])[0]) as Order;
let running = true;
lines.once('close', () => (running = false));

const events: (Ack | Promotion)[] = [];
const report = (): void => {
  if (events.length > 0) process.stdout.write(`${JSON.stringify(events.splice(0))}\n`);
};
setInterval(report, REPORT_MS);
const now = (): number => performance.timeOrigin + performance.now();

/** A connection for one try: nothing is sent again by itself. */
const open = (address: Address): Redis => {
  const redis = new Redis({
    ...address,
    ...order.login,
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    enableReadyCheck: false,
    connectTimeout: PATIENCE_MS,
    commandTimeout: PATIENCE_MS,
  });
  redis.on('error', () => undefined);
  return redis;
};

async function count(order: Order & { readonly what: 'count' }, client: string): Promise<void> {
  while (running) {
    const redis = open(order.haproxy);
    try {
      await redis.connect();
      // One connection leads to one node for as long as it lives.
      const [, bind] = (await redis.config('GET', 'bind')) as [string, string];
      const node = bind.split(' ')[0];
      while (running) {
        const sentAt = now();
        const value = await redis.incr(client);
        const held = !order.wait || (await redis.wait(1, WAIT_MS)) >= 1;
        if (held) events.push({ client, sentAt, at: now(), value, node });
        await sleep(PAUSE_MS);
      }
    } catch {
      await sleep(50);
    } finally {
      redis.disconnect();
    }
  }
}

async function watch(address: Address): Promise<void> {
  let role = '';
  while (running) {
    const redis = open(address);
    try {
      await redis.connect();
      for (; running; await sleep(WATCH_MS)) {
        const seen = /role:(\w+)/.exec(await redis.info('replication'))?.[1] ?? '';
        if (role === 'slave' && seen === 'master') events.push({ at: now(), node: address.host });
        role = seen;
      }
    } catch {
      await sleep(WATCH_MS);
    } finally {
      redis.disconnect();
    }
  }
}

if (order.what === 'count') {
  const { place, clients } = order;
  await Promise.all(Array.from({ length: clients }, (_, i) => count(order, `drill:${place}:${i}`)));
} else {
  await Promise.all(order.nodes.map(watch));
}
report();
process.exit(0);
