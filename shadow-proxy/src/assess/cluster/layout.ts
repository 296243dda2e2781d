/**
 * Determines the slots of each master of the target. A shard consists of the slots that one master of the source and
 * one of the target have in common (plan/cluster-shards.ts), and needs a proxy of its own. There are fewest shards if
 * every master of the target has whole masters of the source, or every master of the source has whole ones of the
 * target.
 */
import { rangesOf, refine, type ClusterShard, type SlotMaster } from '../../plan/cluster-shards.js';
import { groupMasters } from './groups.js';
import { slotsOf, total, weightOf } from './weights.js';

/**
 * - `aligned`: the fewest shards.
 * - `even`: masters of the source are divided, so that those of the target have equal weights.
 */
export type LayoutKind = 'aligned' | 'even';

export interface Layout {
  readonly kind: LayoutKind;
  /** The masters of the target, by their lowest slots. */
  readonly masters: readonly SlotMaster[];
  /** The shards, without cuts. */
  readonly shards: readonly ClusterShard[];
  /** Share of the most loaded master, and of the master with the most data: 0 to 1. */
  readonly largest: { readonly load: number; readonly memory: number };
}

export interface Weights {
  readonly load: Float64Array;
  readonly memory: Float64Array;
}

export const MAX_MASTERS = 6;
/** If the largest master of the target has this many times an equal share, an even layout is offered, too. */
const UNEVEN = 1.25;
/** A master of an even layout ends at a bound of the source if one is as near as this share of it. */
const NEAR = 0.1;

/**
 * Layouts for 1 to `MAX_MASTERS` masters: the aligned one of each number, and an even one if the aligned one is uneven.
 * @param by the weight that is distributed evenly
 */
export function layoutsOf(source: readonly SlotMaster[], weights: Weights, by: keyof Weights): Layout[] {
  const weight = orEqual(weights[by]);
  return Array.from({ length: MAX_MASTERS }, (_, i) => i + 1).flatMap((count) => {
    const layout = (kind: LayoutKind, parts: readonly (readonly number[])[]): Layout =>
      describe(kind, parts, source, weights);
    const aligned = layout('aligned', align(source, weight, count));
    if (aligned.largest[by] * count <= UNEVEN) return [aligned];
    const even = layout('even', spread(source, weight, count));
    return even.largest[by] < aligned.largest[by] ? [aligned, even] : [aligned];
  });
}

/** If all weights are 0, every slot has the same weight. */
const orEqual = (weight: Float64Array): Float64Array =>
  total(weight) > 0 ? weight : new Float64Array(weight.length).fill(1);

function describe(
  kind: LayoutKind,
  parts: readonly (readonly number[])[],
  source: readonly SlotMaster[],
  { load, memory }: Weights,
): Layout {
  const sorted = parts.map((slots) => [...slots].sort((a, b) => a - b)).sort((a, b) => a[0] - b[0]);
  const masters = sorted.map((slots, i): SlotMaster => {
    const id = `keydb-${i + 1}`;
    return { id, address: { host: id, port: 6379 }, slots: rangesOf(slots) };
  });
  const largest = (weight: Float64Array): number =>
    Math.max(...sorted.map((slots) => weightOf(slots, weight))) / total(weight);
  return {
    kind,
    masters,
    shards: refine(source, masters, []),
    largest: { load: largest(orEqual(load)), memory: largest(orEqual(memory)) },
  };
}

/** Joins whole masters; if there are fewer than requested, the heaviest ones are divided. */
function align(source: readonly SlotMaster[], weight: Float64Array, count: number): number[][] {
  const slots = source.map(slotsOf);
  const weights = slots.map((each) => weightOf(each, weight));
  if (count <= source.length)
    return groupMasters(weights, count).map((group) => group.flatMap((master) => slots[master]));
  const parts = source.map(() => 1);
  for (let more = count - source.length; more > 0; more--) {
    const each = (i: number): number => (parts[i] < slots[i].length ? weights[i] / parts[i] : -1);
    const heaviest = parts.reduce((best, _, i) => (each(i) > each(best) ? i : best), 0);
    parts[heaviest]++;
  }
  return slots.flatMap((each, i) => divide(each, weight, parts[i]));
}

/** Divides slots into `parts` of about equal weight, each with at least one slot. */
export function divide(slots: readonly number[], weight: Float64Array, parts: number): number[][] {
  const share = weightOf(slots, weight) / parts;
  const divided: number[][] = [];
  let at = 0;
  let passed = 0;
  for (let part = 1; part < parts; part++) {
    const from = at;
    const until = slots.length - (parts - part);
    // A slot belongs to the part that contains the larger share of it.
    while (at < until && (at === from || passed + weight[slots[at]] / 2 <= part * share)) passed += weight[slots[at++]];
    divided.push(slots.slice(from, at));
  }
  return [...divided, slots.slice(at)];
}

/**
 * Fills each master of the target in the order of the source's, and ends it at a bound of the source if one is near.
 */
function spread(source: readonly SlotMaster[], weight: Float64Array, count: number): number[][] {
  const masters = source.map(slotsOf);
  const share = total(weight) / count;
  const parts: number[][] = [[]];
  let room = share;
  const next = (): void => {
    parts.push([]);
    room += share;
  };
  for (const slots of masters) {
    let left = slots;
    for (;;) {
      const weighs = weightOf(left, weight);
      const isLast = parts.length === count;
      if (isLast || weighs <= room + share * NEAR) {
        parts.at(-1)!.push(...left);
        room -= weighs;
        if (!isLast && room <= share * NEAR) next();
        break;
      }
      // A slot that is heavier than a share has a master of its own.
      const fits = Math.max(fitting(left, weight, room), parts.at(-1)!.length === 0 ? 1 : 0);
      parts.at(-1)!.push(...left.slice(0, fits));
      room -= weightOf(left.slice(0, fits), weight);
      left = left.slice(fits);
      next();
    }
  }
  return parts.filter((slots) => slots.length > 0);
}

/** How many of the first slots weigh at most `room`. */
function fitting(slots: readonly number[], weight: Float64Array, room: number): number {
  let at = 0;
  for (let left = room; at < slots.length && weight[slots[at]] <= left; at++) left -= weight[slots[at]];
  return at;
}
