/** A master and its replica, which takes over with all that the master had. */
import type { ModelOptions } from '../server/server.js';
import type { Address } from './network.js';
import { WORLD } from './events.js';
import { ServerHost } from './server-host.js';
import type { SimulatedWorld } from './world.js';

export class Group {
  /** Has what the master held when it began to follow; what came later is still on its way. */
  readonly replica: ServerHost;

  constructor(
    private readonly world: SimulatedWorld,
    readonly name: 'source' | 'target',
    readonly master: ServerHost,
    replicaAt: Address,
    options: Omit<ModelOptions, 'port'>,
  ) {
    this.replica = new ServerHost(world, master.engine, replicaAt, options);
    this.#follow();
  }

  /**
   * The master ends; after `ms` the replica is promoted, and the former master is a replica `backMs` later.
   * @param promoted called when the master has its new address
   * @returns whether the master was up
   */
  failOver(ms: number, backMs: number, promoted: () => void): boolean {
    const { master, replica, world } = this;
    if (!master.isUp || !replica.isUp) return false;
    const [from, to] = [master.address, replica.address];
    master.stop();
    world.events.after(ms, WORLD, () => {
      // The master was started again before.
      if (master.isUp) return;
      replica.stop();
      master.address = to;
      replica.address = from;
      master.start(true);
      promoted();
      world.events.after(backMs, WORLD, () => {
        replica.start(true);
        this.#follow();
      });
    });
    return true;
  }

  #follow(): void {
    const { master, replica } = this;
    replica.model.becomeReplica(master.address.host, master.address.port);
    master.model.feed((change) => replica.model.replicate(change))();
  }
}
