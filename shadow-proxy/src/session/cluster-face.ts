/**
 * The cluster as clients see it. Every shard's proxy is a master with that shard's slots, and also its own replica if
 * the plan allows reads from replicas. Clients never see a server's address. Pure; the commands that read it are in
 * `handlers/cluster.ts`.
 */
import { createHash } from 'node:crypto';
import type { Address } from '../plan/endpoint.js';
import { countSlots } from '../plan/cluster-shards.js';
import type { Plan } from '../plan/plan.js';
import type { SlotRange } from '../route/owner.js';
import { SLOTS } from '../route/slot.js';

export const CROSSSLOT = "CROSSSLOT Keys in request don't hash to the same slot";

/** As a command gets it, or an EXEC for one of its commands. */
const REDIRECTION = /^-(?:EXECABORT Transaction discarded because of: )?(?:MOVED|ASK) (\d+) /;
/** Bytes of an error that may match. */
const REDIRECTION_BYTES = 64;

/** An address at which clients connect, as a node of the cluster. */
export interface FaceListener {
  /** The node's ID: 40 hex digits, the same in every process and after every restart. */
  readonly id: string;
  readonly address: Address;
}

/** One shard's proxy, as a master. */
export interface FaceNode extends FaceListener {
  readonly name: string;
  readonly slots: readonly SlotRange[];
  /** The same proxy as the master's replica; null if clients may not read from replicas. */
  readonly replica: FaceListener | null;
}

export class ClusterFace {
  /** The index of the node that has the slot, by slot. */
  readonly #owners = new Int16Array(SLOTS).fill(-1);
  /** Why commands on a slot of this shard are refused at present, by slot. */
  #frozen: ReadonlyMap<number, string> = new Map();

  constructor(
    readonly nodes: readonly FaceNode[],
    readonly own: FaceNode,
    /** Whether clients connect over TLS. */
    readonly tls = false,
  ) {
    nodes.forEach(({ slots }, i) => slots.forEach(([first, last]) => this.#owners.fill(i, first, last + 1)));
  }

  /** Null for a shard that is not a cluster's. */
  static of({ name: plan, shards, cluster }: Plan, shard: string): ClusterFace | null {
    const nodes = shards.flatMap(({ name, slots, announce, replica }): FaceNode[] => {
      if (slots === null || announce === null) return [];
      const second = replica && { id: idOf(plan, `${name} replica`), address: replica.announce };
      return [{ name, id: idOf(plan, name), address: announce, slots, replica: second }];
    });
    const own = nodes.find(({ name }) => name === shard);
    return own === undefined ? null : new ClusterFace(nodes, own, (cluster?.listen.tls ?? null) !== null);
  }

  isMine(slot: number): boolean {
    return this.nodes[this.#owners[slot]] === this.own;
  }

  /** The error that answers a command on the slot, without the leading `-`; null if this shard has the slot. */
  redirect(slot: number): string | null {
    const node = this.nodes[this.#owners[slot]] as FaceNode | undefined;
    if (node === undefined) return 'CLUSTERDOWN Hash slot not served';
    if (node !== this.own) return this.movedTo(node, slot);
    const why = this.#frozen.get(slot);
    return why === undefined ? null : `TRYAGAIN shadow-proxy: slot ${slot} ${why}`;
  }

  /** The error that sends a client to another master. */
  movedTo({ address: { host, port } }: FaceNode, slot: number): string {
    return `MOVED ${slot} ${host}:${port}`;
  }

  /** Slots whose commands are refused at present. */
  get frozen(): ReadonlyMap<number, string> {
    return this.#frozen;
  }

  /** Refuses commands on these slots from now on, and on no others. */
  freeze(slots: ReadonlyMap<number, string>): void {
    this.#frozen = slots;
  }

  /**
   * The error for the client in place of a server's own redirection; null for any other error. The server has not run
   * the command, or the transaction: the slot is being moved, or a failover is in progress.
   */
  insteadOf(reply: Buffer, start: number, end: number): Buffer | null {
    const [, slot] = REDIRECTION.exec(reply.toString('latin1', start, Math.min(end, start + REDIRECTION_BYTES))) ?? [];
    if (slot === undefined) return null;
    return Buffer.from(`-TRYAGAIN shadow-proxy: slot ${slot} is moving to another node of the cluster\r\n`);
  }

  get assignedSlots(): number {
    return this.nodes.reduce((sum, { slots }) => sum + countSlots(slots), 0);
  }
}

const idOf = (plan: string, shard: string): string => createHash('sha1').update(`${plan}\n${shard}`).digest('hex');
