/** How much CPU each thread of a process used during a measurement. Pure. */
import type { Thread } from '../../rig/proc.js';

/** A thread, and the CPU seconds that it used. */
export type Spent = Pick<Thread, 'name' | 'cpu'>;

/**
 * @param before threads of a process; `after`: some time later. A thread that ended in between is in neither
 * @param first the thread for which the process is named: the one with this ID if given, otherwise the busiest
 * @returns all threads that used CPU: `first`, then the busiest
 */
export function spentBy(before: readonly Thread[], after: readonly Thread[], first: number | 'busiest'): Spent[] {
  const earlier = new Map(before.map(({ tid, cpu }) => [tid, cpu]));
  return after
    .map(({ tid, name, cpu }) => ({ tid, name, cpu: cpu - (earlier.get(tid) ?? 0) }))
    .filter(({ tid, cpu }) => cpu > 0 || tid === first)
    .sort((a, b) => Number(b.tid === first) - Number(a.tid === first) || b.cpu - a.cpu)
    .map(({ name, cpu }) => ({ name, cpu }));
}
