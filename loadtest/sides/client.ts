/** The runner's own connection to a server, for everything except load: prefill, counts, removal, INFO. */
import { readFileSync } from 'node:fs';
import { Redis, type RedisOptions } from 'ioredis';
import type { Address, TlsFiles } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';

const CONNECT_MS = 5_000;

/** Runs `body` with a connection that is closed afterwards. @throws {LoadtestError} if the server cannot be reached */
export async function withClient<T>(address: Address, body: (client: Redis) => Promise<T>): Promise<T> {
  const { host, port } = address;
  const client = clientFor(address, { retryStrategy: () => null });
  let cause: Error | null = null;
  client.on('error', (error: Error) => (cause ??= error));
  try {
    await client.connect().catch((error: Error) => {
      throw new LoadtestError('NOT_READY', `${host}:${port} does not answer: ${(cause ?? error).message}`);
    });
    return await body(client);
  } finally {
    client.disconnect();
  }
}

/** A client that is not connected yet, and never retries a command. */
export function clientFor({ host, port, db, username, password, tls }: Address, options: RedisOptions): Redis {
  return new Redis({
    ...{ host, port, db, lazyConnect: true, connectTimeout: CONNECT_MS, maxRetriesPerRequest: 0 },
    ...(username !== null && { username }),
    ...(password !== null && { password }),
    ...(tls !== null && { tls: pems(tls) }),
    ...options,
  });
}

function pems({ ca, cert, key }: TlsFiles): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  const read = (file: string | undefined): Buffer | undefined => (file === undefined ? undefined : readFileSync(file));
  return { ca: read(ca), cert: read(cert), key: read(key) };
}
