/** A shard whose servers are nodes of clusters: each has the lower half of the slots. */
import { Cluster, CLUSTER_MODE } from '../world/cluster.js';
import { Group } from '../world/group.js';
import type { KeptWorld } from './world.js';

export const CLUSTER_PLAN = {
  cluster: { source: 'redis://10.0.0.2:6379', target: 'redis://10.0.0.3:6379', listen: 'redis://10.0.0.1:7000' },
};

/** Makes both clusters. @returns that of the source */
export function clusterOf(kept: KeptWorld): Cluster {
  const [source] = (['source', 'target'] as const).map((side, i) => {
    kept[side].model.config.set('cluster-enabled', 'yes');
    const [replica, neighbour] = [6 + 2 * i, 7 + 2 * i].map((last) => ({ host: `10.0.0.${last}`, port: 6379 }));
    const group = new Group(kept.world, side, kept[side], replica, { config: CLUSTER_MODE });
    return new Cluster(kept.world, group, neighbour, () => undefined);
  });
  return source;
}
