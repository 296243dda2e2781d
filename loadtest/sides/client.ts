/** The runner's own connection to a server, for what is not load: prefill, counts, removal, INFO. */
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import type { Address, TlsFiles } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';

const CONNECT_MS = 5_000;

/** Runs `body` with a connection that is closed afterwards. @throws {LoadtestError} when the server cannot be reached */
export async function withClient<T>(address: Address, body: (client: Redis) => Promise<T>): Promise<T> {
  const { host, port, db, username, password, tls } = address;
  const client = new Redis({
    ...{ host, port, db, lazyConnect: true, connectTimeout: CONNECT_MS, retryStrategy: () => null, maxRetriesPerRequest: 0 },
    ...(username !== null && { username }),
    ...(password !== null && { password }),
    ...(tls !== null && { tls: pems(tls) }),
  });
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

function pems({ ca, cert, key }: TlsFiles): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  const read = (file: string | undefined): Buffer | undefined => (file === undefined ? undefined : readFileSync(file));
  return { ca: read(ca), cert: read(cert), key: read(key) };
}
