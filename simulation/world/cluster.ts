/** One side's cluster: a master with a replica has the lower half of all slots, another master the upper half. */
import type { ClusterNode } from '../server/cluster.js';
import type { ModelOptions } from '../server/server.js';
import { SLOTS } from '../server/slots.js';
import { WORLD } from './events.js';
import type { Group } from './group.js';
import type { Address } from './network.js';
import { ServerHost } from './server-host.js';
import type { SimulatedWorld } from './world.js';

export const CLUSTER_MODE: ModelOptions['config'] = { 'cluster-enabled': 'yes' };

export class Cluster {
  readonly #neighbour: ServerHost;
  /** IDs of nodes by their hosts: a node keeps its ID and its address when its role changes. */
  readonly #ids = new Map<string, string>();

  constructor(
    private readonly world: SimulatedWorld,
    private readonly group: Group,
    neighbourAt: Address,
  ) {
    const { master, replica } = group;
    this.#neighbour = new ServerHost(world, master.engine, neighbourAt, { config: CLUSTER_MODE });
    for (const { address, model } of [master, replica, this.#neighbour]) this.#ids.set(address.host, model.newId());
    for (const server of [master, replica, this.#neighbour]) this.#learn(server);
  }

  /** The group has another master: its nodes know that, and the other master learns it after `ms`. */
  changed(ms: number): void {
    for (const server of [this.group.master, this.group.replica]) this.#learn(server);
    this.world.events.after(ms, WORLD, () => this.#learn(this.#neighbour));
  }

  #learn({ model, address }: ServerHost): void {
    model.cluster = { id: this.#ids.get(address.host)!, nodes: this.#nodes() };
  }

  #nodes(): readonly ClusterNode[] {
    const { master, replica } = this.group;
    const node = ({ address }: ServerHost, masterId: string | null, slots: ClusterNode['slots']): ClusterNode => ({
      ...address,
      ...{ id: this.#ids.get(address.host)!, masterId, slots },
    });
    const lower = node(master, null, [[0, SLOTS / 2 - 1]]);
    return [lower, node(replica, lower.id, []), node(this.#neighbour, null, [[SLOTS / 2, SLOTS - 1]])];
  }
}
