/**
 * Which master of a cluster has which slots, as one of its nodes says.
 * Source: CLUSTER SLOTS and CLUSTER NODES of Redis 4.0 and later.
 */
import type { Address, ClientTls } from '../plan/endpoint.js';
import { masterOf, type SlotMaster } from '../plan/cluster-shards.js';
import { isError, isNull, text, type Reply, errorText } from '../resp/decode.js';
import type { SlotRange } from '../route/owner.js';
import { askOnce, type Credentials } from './ask-once.js';

/**
 * @returns the masters that have slots, in the order of their lowest slot, with the address for this kind of
 * connection; null if the server is not in cluster mode
 * @throws {Error} if the node does not answer, or refuses
 */
export async function readSlots(
  node: Address,
  tls: ClientTls | null,
  credentials: Credentials | undefined,
): Promise<SlotMaster[] | null> {
  const reply = await askSlots(node, tls, credentials);
  return reply && mastersOf(reply, node.host);
}

/**
 * The addresses of the replicas of the master that has most of the slots; failed replicas are left out.
 * @throws {Error} as `readSlots`
 */
export async function readReplicas(
  node: Address,
  tls: ClientTls | null,
  credentials: Credentials | undefined,
  slots: readonly SlotRange[],
): Promise<Address[]> {
  const reply = await askSlots(node, tls, credentials);
  return reply === null ? [] : replicasOf(reply, node.host, slots);
}

/** Null if the server is not in cluster mode. @throws {Error} if the node does not answer, or refuses */
async function askSlots(
  node: Address,
  tls: ClientTls | null,
  credentials: Credentials | undefined,
): Promise<Reply | null> {
  const reply = await askOnce(node, tls, credentials, 'CLUSTER', 'SLOTS');
  if (!isError(reply)) return reply;
  if (/cluster support disabled/i.test(text(reply))) return null;
  throw new Error(errorText(reply));
}

/** @param asked host of the node that answered: it may not know its own */
export function mastersOf({ items }: Reply, asked: string): SlotMaster[] {
  const masters = new Map<string, { id: string; address: Address; slots: SlotRange[] }>();
  const ranges = items!.map(({ items: range }) => range!);
  ranges.sort((a, b) => Number(text(a[0])) - Number(text(b[0])));
  for (const [first, last, master] of ranges) {
    const id = text(master.items![2]);
    const address = addressOf(master, asked);
    const known = masters.get(id) ?? { id, address, slots: [] };
    known.slots.push([Number(text(first)), Number(text(last))]);
    masters.set(id, known);
  }
  return [...masters.values()];
}

function addressOf({ items }: Reply, asked: string): Address {
  const [host, port] = items!;
  const named = isNull(host) ? '' : text(host);
  return { host: named === '' || named === '?' ? asked : named, port: Number(text(port)) };
}

/** The replicas of the master that has most of the slots. @param asked host of the node that answered */
export function replicasOf(reply: Reply, asked: string, slots: readonly SlotRange[]): Address[] {
  const master = masterOf(mastersOf(reply, asked), slots);
  const range = reply.items!.find(({ items }) => text(items![2].items![2]) === master?.id);
  return (range?.items ?? []).slice(3).map((replica) => addressOf(replica, asked));
}

/** A node in a reply of CLUSTER NODES. */
export interface ListedNode {
  readonly id: string;
  /** Null if other nodes do not know the address; the host is empty for a node that does not know its own. */
  readonly address: Address | null;
  /** The node that was asked. */
  readonly isAsked: boolean;
  readonly isMaster: boolean;
  /** The ID of its master; null for a master. */
  readonly masterId: string | null;
  /** The node has failed, is suspected to have failed, or cannot be reached. */
  readonly isFailed: boolean;
  readonly slots: readonly SlotRange[];
  /** Slots that the node is moving to another node now; known only for the node that was asked. */
  readonly leaving: readonly number[];
}

/**
 * Takes a reply of CLUSTER NODES apart. Source of the format: its documentation, "Serialization format":
 * `id host:port@cport[,hostname] flags master ping pong epoch link slot…`, where `[93->-id]` is a slot that leaves.
 */
export const nodesOf = (listed: string): ListedNode[] => listed.trim().split('\n').map(nodeOf);

function nodeOf(line: string): ListedNode {
  const [id, place, words, master, , , , link, ...slots] = line.split(' ');
  const flags = new Set(words.split(','));
  const [, host, port] = /^([^,]*):(\d+)/.exec(place) ?? [];
  const isAsked = flags.has('myself');
  return {
    id,
    address: host === undefined || port === '0' || flags.has('noaddr') ? null : { host, port: Number(port) },
    isAsked,
    isMaster: flags.has('master'),
    masterId: flags.has('master') || master === '-' ? null : master,
    isFailed: flags.has('fail') || flags.has('fail?') || (link === 'disconnected' && !isAsked),
    slots: slots
      .filter((slot) => /^\d/.test(slot))
      .map((range): SlotRange => {
        const [first, last = first] = range.split('-').map(Number);
        return [first, last];
      }),
    leaving: slots.flatMap((slot) => Number(/^\[(\d+)->-/.exec(slot)?.[1] ?? NaN)).filter((slot) => slot >= 0),
  };
}
