/** Computes how many commands per second one shard could serve on a number of cores, from measured CPU time. Pure. */

/** CPU seconds per million commands, of the whole process, and of its busiest thread. */
export interface Costs {
  readonly load: number;
  readonly redis: number;
  readonly redisThread: number;
  readonly keydb: number;
  readonly keydbThread: number;
  readonly proxy: number;
  readonly sequencingThread: number;
  /** The proxy's busiest thread other than the sequencing thread. */
  readonly otherThread: number;
}

export interface Scaled {
  readonly cores: number;
  /** Commands per second with the load on the same cores, and with the load on another host. */
  readonly withLoad: number;
  readonly withoutLoad: number;
  /** What is the bottleneck with the load on another host. */
  readonly limit: string;
}

export const CORES = [2, 4, 8] as const;

/** The assumption of the table. */
export const ASSUMPTION =
  'Assumed: a command costs the CPU time that was measured, a thread uses at most one core, and threads share the cores ' +
  'without loss. All cores together limit the sum; one core limits the slowest thread. The load can have any number of ' +
  'threads; Redis and KeyDB have one for commands.';

export function scaled(costs: Costs, cores: number): Scaled {
  const threads: [name: string, cost: number][] = [
    ['the sequencing thread', costs.sequencingThread],
    ['another thread of the proxy', costs.otherThread],
    ['Redis', costs.redisThread],
    ['KeyDB', costs.keydbThread],
  ];
  const [slowest, slowestCost] = threads.reduce((a, b) => (b[1] > a[1] ? b : a));
  const shared = (sum: number): number => sum / cores;
  const sum = costs.redis + costs.keydb + costs.proxy;
  return {
    cores,
    withLoad: 1e6 / Math.max(shared(sum + costs.load), slowestCost),
    withoutLoad: 1e6 / Math.max(shared(sum), slowestCost),
    limit: shared(sum) > slowestCost ? 'all cores' : slowest,
  };
}
