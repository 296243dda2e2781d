/** How long a test waits for an event: it times out when something hangs, never because a machine is busy. */
import { availableParallelism, loadavg } from 'node:os';

/** @param ms as long as it may take on a quiet machine @returns longer by as much as the cores are shared now */
export const patienceMs = (ms: number): number => ms * Math.max(1, loadavg()[0] / availableParallelism());
