/** The clients of a test: of the proxy, wherever it listens at the time, or of one of the servers. */
import { Redis, type RedisOptions } from 'ioredis';
import type { LocalServer } from '../../src/local/servers.js';
import { Wire } from './wire.js';

export interface Clients {
  /** A connection of bytes to the proxy, or to one of the servers; closed with the others. */
  wire(of?: LocalServer): Promise<Wire>;
  /** An ioredis client of the proxy, or of one of the servers; closed with the others. */
  client(options?: RedisOptions & { readonly of?: LocalServer }): Redis;
}

/** @param port where the proxy listens now */
export function clientsOf(port: () => number): Clients & { closeAll(): void } {
  const open: { destroy(): void }[] = [];
  return {
    async wire(of) {
      const wire = await Wire.open({ port: of?.port ?? port() });
      open.push(wire);
      return wire;
    },
    client({ of, ...more } = {}) {
      const client = new Redis({ host: '127.0.0.1', port: of?.port ?? port(), maxRetriesPerRequest: null, ...more });
      client.on('error', () => undefined);
      open.push({ destroy: () => client.disconnect() });
      return client;
    },
    closeAll() {
      for (const each of open) each.destroy();
    },
  };
}
