/** One side's servers, for one unit: a single one, or the nodes of a cluster. */
import { startCluster, type ClusterOptions } from '../../../shadow-proxy/src/local/start-cluster.js';
import {
  startKeydb,
  startRedis,
  type LocalServer,
  type ServerConfig,
} from '../../../shadow-proxy/src/local/servers.js';

export type ClusterLayout = Pick<ClusterOptions, 'masters' | 'replicas' | 'ranges'>;

export interface Nodes {
  /** Those that hold the keys. */
  readonly masters: readonly LocalServer[];
  /** As a plan names them. */
  readonly url: string;
  /** Undefined once one of them has ended. */
  readonly pid: number | undefined;
  log(): string;
  stop(): Promise<void>;
}

export interface NodesOptions {
  readonly config?: ServerConfig;
  /** Of the first node; the others have the next. Free ones where absent. */
  readonly port?: number;
}

/** @param layout of a cluster; undefined for one server */
export async function startNodes(
  program: 'redis' | 'keydb',
  layout: ClusterLayout | undefined,
  options: NodesOptions,
): Promise<Nodes> {
  if (layout === undefined) {
    const server = await (program === 'redis' ? startRedis : startKeydb)(options);
    return nodesOf([server], [server], server.url, () => server.stop());
  }
  const { nodes, masters, seeds, stop } = await startCluster({ program, ...layout, ...options });
  return nodesOf(nodes, masters, `redis://${seeds}`, stop);
}

const nodesOf = (
  all: readonly LocalServer[],
  masters: readonly LocalServer[],
  url: string,
  stop: () => Promise<void>,
): Nodes => ({
  masters,
  url,
  get pid() {
    return all.every(({ pid }) => pid !== undefined) ? all[0].pid : undefined;
  },
  log: () => all.map((node) => node.log()).join('\n'),
  stop,
});
