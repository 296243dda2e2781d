/** Serves clients that may read from replicas: connections to a replica of the source's master, and their lanes. */
import type { Sequencer } from '../pipeline/sequencer.js';
import { ReplicaLanes } from '../pipeline/replica-lanes.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import { Dialer } from '../upstream/dialer.js';
import { ServerConnections } from '../upstream/server-connections.js';

export interface Replica {
  readonly side: 'source';
  readonly dialer: Dialer;
  readonly connections: ServerConnections;
  readonly lanes: ReplicaLanes;
}

/** Connects to nothing yet; null if the plan does not allow it. */
export function replicaOf({ limits }: Plan, shard: ShardPlan, { servers, turn, failures }: Sequencer): Replica | null {
  if (shard.replica === null) return null;
  const { source } = servers;
  const dialer = new Dialer(shard.source, limits.connectMs, 'replica');
  const connections = new ServerConnections({
    side: 'source',
    // Reads need no lease, because they change nothing.
    lease: { dialer, dataName: source.name, connection: undefined },
    turn,
    // If the replica does not answer, the authority does.
    lost: () => undefined,
    knocked: () => undefined,
    refused: () => undefined,
  });
  return { side: 'source', dialer, connections, lanes: new ReplicaLanes({ connections, source, turn, failures }) };
}
