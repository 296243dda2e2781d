/** Determines how many front threads a shard has, and whether they are native. */
import { availableParallelism } from 'node:os';

const MOST = 4;
/** The first version with `reusePort`, with which sockets of several threads may listen at one address. */
const NODE = [22, 12] as const;

export interface Surroundings {
  readonly cores: number;
  /** Node's version, as in `process.versions.node`. */
  readonly node: string;
  readonly platform: string;
}

const here = (): Surroundings => ({
  cores: availableParallelism(),
  node: process.versions.node,
  platform: process.platform,
});

/** Whether several threads of this process may listen at one address. */
function mayShareAddress({ node, platform }: Surroundings): boolean {
  const [major, minor] = node.split('.').map(Number);
  return platform === 'linux' && (major > NODE[0] || (major === NODE[0] && minor >= NODE[1]));
}

/**
 * How many front threads a shard gets if the process has this number of shards; with a warning if it gets fewer than
 * requested. Native front threads may share an address on every version of Node.
 *
 * `auto` leaves the sequencing thread and both servers a core for each front thread: half of the cores, shared among
 * the shards, and none on two cores. It is also none if threads cannot share an address: a single front thread causes
 * more work than it takes over.
 */
export function frontThreads(
  wanted: 'auto' | number,
  shards: number,
  native: boolean,
  surroundings = here(),
): { readonly threads: number; readonly problem: string | null } {
  const { cores, node } = surroundings;
  const most = native || mayShareAddress(surroundings) ? Infinity : 1;
  if (wanted === 'auto') {
    const threads = cores <= 2 || most === 1 ? 0 : Math.min(MOST, Math.floor(cores / 2 / shards));
    return { threads, problem: null };
  }
  const threads = Math.min(wanted, most);
  const problem =
    threads < wanted
      ? `threads is ${wanted}, and there is ${threads}: more need native sockets, or Linux and Node ${NODE.join('.')} or newer, this is ${node}`
      : null;
  return { threads, problem };
}
