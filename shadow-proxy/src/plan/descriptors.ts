/** Checks that the process may open enough file descriptors for as many clients as the plan allows. */
import { readFileSync } from 'node:fs';
import type { Plan } from './plan.js';

/** How many connections to the admin API may be open at a time. */
export const ADMIN_CONNECTIONS = 256;
/**
 * Descriptors that a process needs besides those of its clients and the admin API: connections to servers, files,
 * listening sockets.
 */
const OWN = 256;

/**
 * How many descriptors this process may open; Node raises the soft limit to the hard one. Null if the system does not
 * show it.
 */
export function descriptorLimit(file = '/proc/self/limits'): number | null {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync(file, 'utf8')) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}

/** The problem if the plan's limits need more descriptors than `limit`; null if there is none. Pure. */
export function descriptorProblem({ limits, sentinel }: Plan, shards: number, limit: number | null): string | null {
  // Each client of a shard may ask the Sentinel, too.
  const asking = sentinel === null ? 0 : limits.clients;
  const needed = shards * limits.clients + asking + ADMIN_CONNECTIONS + OWN;
  if (limit === null || needed <= limit) return null;
  return (
    `allow ${limits.clients} clients for each of ${shards} shards${asking === 0 ? '' : ', and for the Sentinel'}: with ${ADMIN_CONNECTIONS + OWN} for the admin API, servers and files ` +
    `that is ${needed} file descriptors, and this process may open ${limit}; lower limits.clients, or raise that (LimitNOFILE of the unit, ulimit -n)`
  );
}
