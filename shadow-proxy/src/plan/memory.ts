/** Whether the memory that the limits of a plan allow is there: the cgroup of this process may allow less. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plan } from './plan.js';

/**
 * What a process takes beside what its limits bound: before its first client, for copies, jobs and the status page, and
 * for buffers that are not needed any more and not collected yet: up to 270 MiB in all under `npm run soak --
 * --hostile`.
 */
export const PROCESS_BYTES = 384 * 2 ** 20;

export interface MemoryLimit {
  readonly bytes: number;
  /** The file that says so. */
  readonly file: string;
}

/** The least limit of the cgroup of this process and of those above it, version 2 or 1; null where there is none. */
export function memoryLimit(cgroupFile = '/proc/self/cgroup', root = '/sys/fs/cgroup'): MemoryLimit | null {
  let least: MemoryLimit | null = null;
  for (const line of read(cgroupFile)?.split('\n') ?? []) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined || (controllers !== '' && !controllers.split(',').includes('memory'))) continue;
    const [top, name] = controllers === '' ? [root, 'memory.max'] : [join(root, 'memory'), 'memory.limit_in_bytes'];
    for (let folder = path; ; folder = dirname(folder)) {
      const file = join(top, folder, name);
      const bytes = Number(read(file)?.trim());
      // Without a limit, version 2 says `max`, and version 1 a number beyond all memory.
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

/** What is wrong with the limits where the process may have no more than that; null where nothing is. Pure. */
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
