/** One side's cluster: a master with a replica has the lower half of all slots, another master the upper half. */
import type { ClusterNode } from '../server/cluster-view.js';
import { keysIn } from '../server/cluster.js';
import type { ModelOptions } from '../server/server.js';
import { SLOTS, slotOf } from '../server/slots.js';
import { WORLD } from './events.js';
import type { Group } from './group.js';
import type { Address } from './network.js';
import { ServerHost } from './server-host.js';
import type { SimulatedWorld } from './world.js';

export const CLUSTER_MODE: ModelOptions['config'] = { 'cluster-enabled': 'yes' };

/** A key that could not be moved, because its master is down, is tried again after so long. */
const AGAIN_MS = 50;

interface Move {
  readonly slot: number;
  /** Whether the other master has the slot; before that, keys move one by one. */
  hasLeft: boolean;
}

export class Cluster {
  readonly #neighbour: ServerHost;
  /** IDs of nodes by their hosts: a node keeps its ID and its address when its role changes. */
  readonly #ids = new Map<string, string>();
  /** The slot that another master has, or will have. */
  #move: Move | null = null;

  constructor(
    private readonly world: SimulatedWorld,
    readonly group: Group,
    neighbourAt: Address,
    private readonly say: (what: string) => void,
  ) {
    const { master, replica } = group;
    this.#neighbour = new ServerHost(world, master.engine, neighbourAt, { config: CLUSTER_MODE });
    for (const { address, model } of [master, replica, this.#neighbour]) this.#ids.set(address.host, model.newId());
    this.#learnAll();
  }

  get name(): 'source' | 'target' {
    return this.group.name;
  }

  /** The group has another master: its nodes know that, and the other master learns it after `ms`. */
  changed(ms: number): void {
    for (const server of [this.group.master, this.group.replica]) this.#learn(server);
    this.world.events.after(ms, WORLD, () => this.#learn(this.#neighbour));
  }

  /**
   * Moves a slot to the other master, key by key within `leavingMs`, and back with its keys `awayMs` later.
   * @returns whether no other slot moves
   */
  moveSlot(slot: number, leavingMs: number, awayMs: number): boolean {
    if (this.#move !== null) return false;
    const move: Move = { slot, hasLeft: false };
    this.#move = move;
    this.#learnAll();
    const { random } = this.world;
    for (const key of keysIn(this.group.master.model, slot))
      this.#later(move, random.between(0, leavingMs), () => this.#send(key));
    this.#later(move, leavingMs, () => {
      for (const key of keysIn(this.group.master.model, slot)) this.#send(key);
      move.hasLeft = true;
      this.say(`slot ${slot} of the ${this.name} is at another node`);
      this.#learnAll();
      this.#redirectBlocked(slot);
      this.#later(move, awayMs, () => this.settle());
    });
    return true;
  }

  /** The slot that moves, or has moved, is where it was. */
  settle(): void {
    const { master } = this.group;
    if (this.#move === null) return;
    this.#move = null;
    const [database] = master.model.databases;
    for (const [key, { type, value, expireAt }] of master.away) {
      database.add(key, type, value, expireAt);
      database.touch(key);
    }
    master.away.clear();
    this.#learnAll();
    this.say(`all slots of the ${this.name} are where they were`);
  }

  /** Runs it once the master is up, unless the slot has returned. */
  #later(move: Move, ms: number, run: () => void): void {
    this.world.events.after(ms, WORLD, () => {
      if (this.#move !== move) return;
      if (this.group.master.isUp) run();
      else this.#later(move, AGAIN_MS, run);
    });
  }

  /** As MIGRATE does. */
  #send(key: string): void {
    const { model, away } = this.group.master;
    const [database] = model.databases;
    const entry = database.keys.get(key);
    if (entry === undefined) return;
    away.set(key, entry);
    database.delete(key);
    database.touch(key);
  }

  /** Clients that wait for keys of the slot are sent to the other master. */
  #redirectBlocked(slot: number): void {
    const { model } = this.group.master;
    const { host, port } = this.#neighbour.address;
    for (const client of [...model.clients.values()])
      if (client.blocked?.keys.some((key) => slotOf(key) === slot) === true)
        client.unblock(`-MOVED ${slot} ${host}:${port}\r\n`);
    model.resumeClients();
  }

  #learnAll(): void {
    for (const server of [this.group.master, this.group.replica, this.#neighbour]) this.#learn(server);
  }

  #learn({ model, address }: ServerHost): void {
    const nodes = this.#nodes();
    const [own, , other] = nodes;
    const id = this.#ids.get(address.host)!;
    const isLeaving = this.#move?.hasLeft === false && id === own.id;
    model.cluster = { id, nodes, leaving: new Map(isLeaving ? [[this.#move!.slot, other]] : []) };
  }

  #nodes(): readonly ClusterNode[] {
    const { master, replica } = this.group;
    const node = ({ address }: ServerHost, masterId: string | null, slots: ClusterNode['slots']): ClusterNode => ({
      ...address,
      ...{ id: this.#ids.get(address.host)!, masterId, slots },
    });
    const half = SLOTS / 2;
    const away = this.#move?.hasLeft === true ? this.#move.slot : null;
    const lower: ClusterNode['slots'] =
      away === null
        ? [[0, half - 1]]
        : [
            [0, away - 1],
            [away + 1, half - 1],
          ];
    const upper: ClusterNode['slots'] = [...(away === null ? [] : [[away, away] as const]), [half, SLOTS - 1]];
    const own = node(master, null, lower);
    return [own, node(replica, own.id, []), node(this.#neighbour, null, upper)];
  }
}
