/** Checks that the process may use as much memory as the plan's limits allow: its cgroup may allow less. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plan } from './plan.js';

/**
 * Memory that a process needs besides what its limits bound. It covers the start, copies, jobs, the status page, and
 * buffers that are not collected yet. `npm run soak -- --hostile` shows up to 270 MiB.
 */
export const PROCESS_BYTES = 384 * 2 ** 20;

export interface MemoryLimit {
  readonly bytes: number;
  /** The file that has the limit. */
  readonly file: string;
}

/**
 * The lowest limit of the cgroup of this process and of the cgroups above it, version 2 or 1; null if there is none.
 */
export function memoryLimit(cgroupFile = '/proc/self/cgroup', root = '/sys/fs/cgroup'): MemoryLimit | null {
  let least: MemoryLimit | null = null;
  for (const line of read(cgroupFile)?.split('\n') ?? []) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined || (controllers !== '' && !controllers.split(',').includes('memory'))) continue;
    const [top, name] = controllers === '' ? [root, 'memory.max'] : [join(root, 'memory'), 'memory.limit_in_bytes'];
    for (let folder = path; ; folder = dirname(folder)) {
      const file = join(top, folder, name);
      const bytes = Number(read(file)?.trim());
      // If there is no limit, version 2 says `max`, and version 1 a number larger than any memory.
      if (bytes > 0 && bytes < 2 ** 60 && bytes < (least?.bytes ?? Infinity)) least = { bytes, file };
      if (folder === '/') break;
    }
  }
  return least;
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** The problem if the plan's limits need more memory than `limit`; null if there is none. Pure. */
export function memoryProblem({ limits }: Plan, shards: number, limit: MemoryLimit | null): string | null {
  if (limit === null) return null;
  const { totalClientBytes, queueBytes } = limits;
  const needed = PROCESS_BYTES + shards * (totalClientBytes + queueBytes);
  if (needed <= limit.bytes) return null;
  return (
    `allow ${mib(needed)}, more than the memory limit of this process, ${mib(limit.bytes)} (${limit.file}): ${mib(PROCESS_BYTES)}, and for each of ${shards} shards totalClientBytes ` +
    `(${mib(totalClientBytes)}) and queueBytes (${mib(queueBytes)}); lower these, run fewer shards in one process, or raise the memory limit (MemoryMax of the unit)`
  );
}

const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`;
