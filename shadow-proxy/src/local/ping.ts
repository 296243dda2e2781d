/** Checks whether a server is ready, with a minimal client. */
import { readFileSync } from 'node:fs';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  /** Paths of PEM files: the certificate for a server that requires one of its clients. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/**
 * Asks until the server answers PING (`NOAUTH` counts), the clock passes `deadline` (Unix ms), or `alive` returns
 * false.
 * @returns whether the server answered
 */
export async function ping(endpoint: Endpoint, deadline: number, alive: () => boolean = () => true): Promise<boolean> {
  while (alive() && Date.now() < deadline) {
    if (await answers(endpoint)) return true;
    await sleep(20);
  }
  return false;
}

/** A connection to a server on this machine, whose certificate is not verified. */
export function connectTo({ host, port, tls }: Endpoint): Socket {
  if (tls === undefined) return connectPlain({ host, port });
  const own = { cert: readFileSync(tls.cert), key: readFileSync(tls.key) };
  return connectTls({ host, port, rejectUnauthorized: false, ...own });
}

function answers(endpoint: Endpoint): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTo(endpoint);
    const finish = (ready: boolean): void => {
      socket.destroy();
      resolve(ready);
    };
    socket.setTimeout(1000, () => finish(false));
    socket.once('error', () => finish(false));
    socket.once('close', () => finish(false));
    socket.once('data', (reply) => finish(/^(\+PONG|-NOAUTH|-NOPERM)/.test(reply.toString('latin1'))));
    socket.write('PING\r\n');
  });
}
