/** The applications' clients: both libraries, each with a connection to every shard; the shard follows from the key. */
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { hashSlot, SLOTS } from '../../../shadow-proxy/src/route/slot.js';
import type { Command } from './model.js';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Login {
  readonly user: string;
  readonly password: string;
}

export interface App {
  readonly library: string;
  call(key: string, command: Command): Promise<unknown>;
  close(): void;
}

/** Hash slots are shared out evenly, in order. */
const shardOf = (key: string, shards: number): number =>
  Math.floor((hashSlot(Buffer.from(key), 0, Buffer.byteLength(key)) * shards) / SLOTS);

/**
 * What was sent and not answered when a connection is lost fails, and is not sent again: the caller looks what became
 * of it.
 */
export async function connectApps(shards: readonly Address[], login: Login): Promise<App[]> {
  return [await withIoredis(shards, login), await withNodeRedis(shards, login)];
}

export async function withIoredis(shards: readonly Address[], { user, password }: Login): Promise<App> {
  const clients = shards.map(
    ({ host, port }) =>
      new Redis({
        host,
        port,
        username: user,
        password,
        lazyConnect: true,
        enableReadyCheck: false,
        // With `autoResendUnfulfilledCommands` alone, such a command would never end.
        autoResendUnfulfilledCommands: false,
        maxRetriesPerRequest: 0,
        retryStrategy: () => 200,
      }),
  );
  for (const client of clients) client.on('error', () => undefined);
  await Promise.all(clients.map((client) => client.connect()));
  return {
    library: 'ioredis',
    call: (key, [name, ...args]) => clients[shardOf(key, clients.length)].call(name, args),
    close: () => clients.forEach((client) => client.disconnect()),
  };
}

async function withNodeRedis(shards: readonly Address[], { user, password }: Login): Promise<App> {
  const clients = shards.map((socket) =>
    createClient({ username: user, password, socket: { ...socket, reconnectStrategy: () => 200 } }),
  );
  for (const client of clients) client.on('error', () => undefined);
  await Promise.all(clients.map((client) => client.connect()));
  return {
    library: 'node-redis',
    call: (key, command) => clients[shardOf(key, clients.length)].sendCommand([...command]),
    close: () => clients.forEach((client) => client.destroy()),
  };
}
