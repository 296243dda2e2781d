/**
 * Reads a Redis Cluster from one of its nodes. Read-only, with small questions.
 *
 *   node ─▶ INFO, CLUSTER NODES ─▶ its masters (readInstance for each) ─▶ their slots
 */
import { countSlots, unserved } from '../../plan/cluster-shards.js';
import { formatAddress, type Address, type Endpoint } from '../../plan/endpoint.js';
import { isError, text } from '../../resp/decode.js';
import { SLOTS } from '../../route/slot.js';
import { AskError, asking, type Asker } from '../../upstream/asker.js';
import { modeOf } from '../../upstream/identity.js';
import { parseInfo } from '../../upstream/info.js';
import { nodesOf, type ListedNode } from '../../upstream/slots.js';
import type { ClusterFacts, MasterFacts } from './cluster-facts.js';

/** Number of slots that are counted in one write. */
const SLOTS_AT_ONCE = 256;

/** A cluster whose slots were not read yet. */
export interface FoundCluster {
  readonly facts: Omit<ClusterFacts, 'keysBySlot' | 'moving'>;
  /** The endpoints of the masters, in the same order. */
  readonly endpoints: readonly Endpoint[];
}

/**
 * The cluster of which the server is a node; null if it is not in cluster mode.
 * @throws {AskError} if it cannot be reached or refuses to answer, or no node has a slot
 */
export const findCluster = (endpoint: Endpoint): Promise<FoundCluster | null> =>
  asking(endpoint, async (asker) => {
    if (modeOf(await asker.info('server')) !== 'cluster') return null;
    const state = parseInfo(text(await asker.must('CLUSTER', 'INFO'))).get('cluster_state') ?? 'unknown';
    return foundIn(await nodesAt(asker), state, endpoint);
  });

function foundIn(nodes: readonly PlacedNode[], state: string, endpoint: Endpoint): FoundCluster {
  const masters = nodes
    .filter(({ isMaster, slots }) => isMaster && slots.length > 0)
    .sort((a, b) => a.slots[0][0] - b.slots[0][0]);
  if (masters.length === 0) throw new AskError(`${endpoint.label} is in cluster mode, but no node has a slot`);
  const replicasOf = (id: string): string[] =>
    nodes.filter(({ masterId }) => masterId === id).map(({ address }) => formatAddress(address));
  return {
    facts: {
      state,
      masters: masters.map(({ id, address, slots }) => ({ id, address, slots, replicas: replicasOf(id) })),
      failed: nodes.filter(({ isFailed }) => isFailed).map(({ address }) => formatAddress(address)),
      unserved: countSlots(unserved(masters)),
    },
    endpoints: masters.map(({ address }) => at(endpoint, address)),
  };
}

type PlacedNode = ListedNode & { readonly address: Address };

/** The nodes that have an address. */
const nodesAt = async (asker: Asker): Promise<PlacedNode[]> =>
  nodesOf(text(await asker.must('CLUSTER', 'NODES'))).flatMap((node) => {
    if (node.address === null) return [];
    const { host, port } = node.address;
    return [{ ...node, address: { host: host === '' ? asker.address.host : host, port } }];
  });

/** The endpoint of another node, with the same login. */
const at = ({ tls, username, password }: Endpoint, address: Address): Endpoint => ({
  kind: 'server',
  label: `redis${tls === null ? '' : 's'}://${formatAddress(address)}`,
  tls,
  username,
  password,
  db: 0,
  ...address,
});

/**
 * `CLUSTER COUNTKEYSINSLOT` of every slot at its master, which reads no key.
 * @throws {AskError} if a master can no longer be reached
 */
export async function readSlots({ facts, endpoints }: FoundCluster): Promise<ClusterFacts> {
  const counts = new Uint32Array(SLOTS);
  const read = await Promise.all(facts.masters.map(({ slots }, i) => readSlotsAt(endpoints[i], slots, counts)));
  return {
    ...facts,
    keysBySlot: read.every(({ counted }) => counted) ? counts : null,
    moving: read.reduce((sum, { leaving }) => sum + leaving, 0),
  };
}

function readSlotsAt(
  endpoint: Endpoint,
  ranges: MasterFacts['slots'],
  counts: Uint32Array,
): Promise<{ counted: boolean; leaving: number }> {
  const slots = ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));
  return asking(endpoint, async (asker) => {
    const leaving = (await nodesAt(asker)).reduce((sum, node) => sum + node.leaving.length, 0);
    for (let from = 0; from < slots.length; from += SLOTS_AT_ONCE) {
      const some = slots.slice(from, from + SLOTS_AT_ONCE);
      const replies = await asker.all(some.map((slot) => ['CLUSTER', 'COUNTKEYSINSLOT', slot]));
      if (replies.some(isError)) return { counted: false, leaving };
      some.forEach((slot, i) => (counts[slot] = Number(text(replies[i]))));
    }
    return { counted: true, leaving };
  });
}
