/** Whether the clients that the limits of a plan allow find a file descriptor each. */
import { readFileSync } from 'node:fs';
import type { Plan } from './plan.js';

/** Connections to the admin API at a time. */
export const ADMIN_CONNECTIONS = 256;
/** What a process opens beside its clients and the admin API: connections to the servers, files, sockets to listen. */
const OWN = 256;

/** How many descriptors this process may have: Node raises it to the hard limit. Null where the system does not say. */
export function descriptorLimit(file = '/proc/self/limits'): number | null {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync(file, 'utf8')) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}

/** What is wrong with the limits where the process may open no more than that; null where nothing is. Pure. */
export function descriptorProblem({ limits }: Plan, shards: number, limit: number | null): string | null {
  const needed = shards * limits.clients + ADMIN_CONNECTIONS + OWN;
  if (limit === null || needed <= limit) return null;
  return (
    `allow ${limits.clients} clients for each of ${shards} shards: with ${ADMIN_CONNECTIONS + OWN} for the admin API, servers and files ` +
    `that is ${needed} file descriptors, and this process may open ${limit}; lower limits.clients, or raise that (LimitNOFILE of the unit, ulimit -n)`
  );
}
