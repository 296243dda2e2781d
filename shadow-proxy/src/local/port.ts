/**
 * Free ports of loopback, below those that systems use for outgoing connections (from 32,768 on): such a connection
 * could take the port of a server that is briefly down.
 *
 * A process reserves whole ranges, and keeps each as long as it runs, by listening on the range's first port. So two
 * processes never choose the same port, even if nothing listens on it yet.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Ports of a Redis Cluster's bus are 10,000 higher: they are below 32,768, too, and in no range. */
const LOWEST = 10_000;
const HIGHEST = 19_999;
const RANGE = 100;
const RANGES = (HIGHEST + 1 - LOWEST) / RANGE;

/** The present range, and the port that was used last. A range starts again once all its ports were used. */
let range = { first: 0, last: 0 };
let choosing: Promise<unknown> = Promise.resolve();

/** @returns the first of `count` adjoining ports. @throws {Error} if every range is reserved */
export function freePorts(count: number): Promise<number> {
  const chosen = choosing.then(() => choose(count));
  choosing = chosen.catch(() => {});
  return chosen;
}

export const freePort = (): Promise<number> => freePorts(1);

async function choose(count: number): Promise<number> {
  if (range.first === 0) range = await takeRange();
  for (let restarted = false; ;) {
    const port = range.last + 1;
    if (port + count > range.first + RANGE) {
      // All ports of the range were used, so it starts again: ports on which something listens are skipped.
      range = restarted ? await takeRange() : { first: range.first, last: range.first };
      restarted = true;
      continue;
    }
    const free = await Promise.all(Array.from({ length: count }, (_, i) => isFree(port + i)));
    const taken = free.lastIndexOf(false);
    range.last = taken === -1 ? port + count - 1 : port + taken;
    if (taken === -1) return port;
  }
}

/** Starts from a random range, so that two processes seldom try the same. */
async function takeRange(): Promise<{ first: number; last: number }> {
  const start = Math.floor(Math.random() * RANGES);
  for (let i = 0; i < RANGES; i++) {
    const first = LOWEST + ((start + i) % RANGES) * RANGE;
    const guard = await listenOn(first);
    if (guard === null) continue;
    guard.unref();
    return { first, last: first };
  }
  throw new Error(`no free port from ${LOWEST} to ${HIGHEST}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = await listenOn(port);
  if (server === null) return false;
  await once(server.close(), 'close');
  return true;
}

/** Null if another program listens on the port. */
async function listenOn(port: number): Promise<Server | null> {
  const server = createServer((socket) => socket.destroy());
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return server;
  } catch {
    return null;
  }
}
