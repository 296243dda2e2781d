/**
 * The shards of a cluster: the common refinement of the slot ranges of both sides. Each has one source master, one
 * target master, and the slots that they share.
 *
 *   source   A ─────────────── B ─────────────── C ──────────────
 *   target   X ──────────────────────── Y ───────────────────────
 *   cuts              │
 *   shards   A/X ──── A/X ──── B/X ──── B/Y ──── C/Y ────────────
 */
import { SLOTS } from '../route/slot.js';
import type { SlotRange } from '../route/owner.js';
import { formatAddress, parseAddress, type Address, type Endpoint, type Listen } from './endpoint.js';
import type { ClusterPlan, ClusterSide, Plan, ShardPlan } from './plan.js';

/** A master of a cluster, and its slots in ascending order. */
export interface SlotMaster {
  /** The node's ID. */
  readonly id: string;
  readonly address: Address;
  readonly slots: readonly SlotRange[];
}

/** One shard, as derived from the slots of both sides. */
export interface ClusterShard {
  /** The name is derived from the shard's lowest slot. */
  readonly name: string;
  readonly slots: readonly SlotRange[];
  readonly source: SlotMaster;
  /** Null if the target is one standalone server. */
  readonly target: SlotMaster | null;
}

/**
 * The common refinement of both maps.
 * @param target null if the target is one standalone server, which has every slot
 * @returns the shards, by their lowest slots; slots that one side does not serve are left out (`unserved`)
 */
export function refine(
  source: readonly SlotMaster[],
  target: readonly SlotMaster[] | null,
  cuts: readonly number[],
): ClusterShard[] {
  const [sources, targets] = [bySlot(source), target && bySlot(target)];
  const shards = new Map<string, { source: SlotMaster; target: SlotMaster | null; slots: number[] }>();
  for (let slot = 0; slot < SLOTS; slot++) {
    const from = sources[slot];
    const to = targets === null ? null : targets[slot];
    if (from === undefined || to === undefined) continue;
    const id = `${from.id} ${to?.id ?? ''} ${cuts.filter((cut) => cut <= slot).length}`;
    let shard = shards.get(id);
    if (shard === undefined) shards.set(id, (shard = { source: from, target: to, slots: [] }));
    shard.slots.push(slot);
  }
  // A Map keeps the order of insertion: here, by lowest slot.
  return [...shards.values()].map(({ slots, ...masters }) => ({
    ...masters,
    name: `slots-${slots[0]}`,
    slots: rangesOf(slots),
  }));
}

/** @param slots ascending */
export function rangesOf(slots: readonly number[]): SlotRange[] {
  const ranges: [number, number][] = [];
  for (const slot of slots) {
    const last = ranges.at(-1);
    if (last?.[1] === slot - 1) last[1] = slot;
    else ranges.push([slot, slot]);
  }
  return ranges;
}

/** The master that has the most of the slots; undefined if no master has any. */
export function masterOf<T extends Pick<SlotMaster, 'slots'>>(
  masters: readonly T[],
  slots: readonly SlotRange[],
): T | undefined {
  const shares = masters.map((master) => ({ master, count: countSlots(commonSlots(master.slots, slots)) }));
  const [most] = shares.filter(({ count }) => count > 0).sort((a, b) => b.count - a.count);
  return (most as (typeof shares)[number] | undefined)?.master;
}

export const commonSlots = (a: readonly SlotRange[], b: readonly SlotRange[]): SlotRange[] =>
  a.flatMap(([first, last]) =>
    b.flatMap(([from, to]): SlotRange[] => {
      const common: SlotRange = [Math.max(first, from), Math.min(last, to)];
      return common[0] <= common[1] ? [common] : [];
    }),
  );

/** Slots that no master of the map serves. */
export function unserved(masters: readonly SlotMaster[]): SlotRange[] {
  return rangesOf(bySlot(masters).flatMap((master, slot) => (master === undefined ? [slot] : [])));
}

function bySlot(masters: readonly SlotMaster[]): (SlotMaster | undefined)[] {
  const owners: (SlotMaster | undefined)[] = Array.from({ length: SLOTS });
  for (const master of masters) for (const [first, last] of master.slots) owners.fill(master, first, last + 1);
  return owners;
}

/** `0-5460,7000`, as a plan and the servers write it. */
export const formatSlots = (slots: readonly SlotRange[]): string =>
  slots.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',');

export const countSlots = (slots: readonly SlotRange[]): number =>
  slots.reduce((sum, [first, last]) => sum + last - first + 1, 0);

/** The address at which clients find the shard with this index and name. */
export function announced(announce: string, name: string, index: number): string {
  if (announce.includes('{shard}')) return announce.replaceAll('{shard}', name);
  const colon = announce.lastIndexOf(':');
  return `${announce.slice(0, colon)}:${Number(announce.slice(colon + 1)) + index}`;
}

/** The slots as text; if there are more than two ranges, only the first two. */
const shortSlots = (slots: readonly SlotRange[]): string =>
  slots.length > 2 ? `${formatSlots(slots.slice(0, 2))},…` : formatSlots(slots);

/** The endpoint of a shard on one side. */
export function endpointOf(side: ClusterSide, master: SlotMaster | null, slots: readonly SlotRange[]): Endpoint {
  const { seeds, label, tls, username, password } = side;
  const common = { tls, username, password, db: 0 };
  if (master === null) return { kind: 'server', label, ...common, ...seeds[0] };
  return {
    kind: 'cluster',
    label: `${label.replace(/,.*/, '')} (slots ${shortSlots(slots)})`,
    ...common,
    seeds,
    slots,
    master: master.id,
    at: master.address,
  };
}

/** The plan with the shards that were derived for its cluster; their ports and addresses count up. */
export function withShards(plan: Plan, cluster: ClusterPlan, refined: readonly ClusterShard[]): Plan {
  const shards = refined.map((shard, index): ShardPlan => {
    const { name, slots, source, target } = shard;
    const { listen, replicas, admin } = cluster;
    const door = (first: number): Listen => {
      const own = port({ port: first }, index);
      return { ...listen, port: own, label: `${listen.label.replace(/:\d+$/, '')}:${own}` };
    };
    const exact = (master: SlotMaster | null): boolean =>
      master === null ? refined.length === 1 : sameSlots(master.slots, slots);
    const sharedSource = !exact(source);
    const shared = sharedSource || !exact(target);
    return {
      name,
      listen: door(listen.port),
      source: endpointOf(cluster.source, source, slots),
      target: endpointOf(cluster.target, target, slots),
      // If no other shard uses either server, every key belongs to the shard.
      owns: shared ? { slots } : null,
      sharedTarget: shared,
      slots,
      sharedSource,
      announce: parseAddress(announced(cluster.announce, name, index)),
      replica: replicas && {
        listen: door(replicas.port),
        announce: parseAddress(announced(replicas.announce, name, index)),
      },
      region: null,
      admin: admin && { ...admin, port: port(admin, index) },
    };
  });
  return { ...plan, shards };
}

const port = ({ port: first }: { readonly port: number }, index: number): number => (first === 0 ? 0 : first + index);

const sameSlots = (a: readonly SlotRange[], b: readonly SlotRange[]): boolean => formatSlots(a) === formatSlots(b);

/** For people: one line for each shard, with its slots, servers and address for clients. */
export const describeShards = (shards: readonly ShardPlan[]): string[] =>
  shards.flatMap(({ name, slots, source, target, announce, replica }) => [
    `  ${name}: ${countSlots(slots!)} slots (${formatSlots(slots!)})`,
    `    source ${placeOf(source)}, target ${placeOf(target)}, clients connect to ${formatAddress(announce!)}` +
      (replica === null ? '' : `, or to ${formatAddress(replica.announce)} to read from a replica`),
  ]);

const placeOf = (endpoint: Endpoint): string =>
  endpoint.kind === 'cluster' ? formatAddress(endpoint.at) : endpoint.label;
