/** The weights of each slot: its commands per second, and its bytes. */
import { SLOTS } from '../../route/slot.js';
import type { SlotMaster } from '../../plan/cluster-shards.js';
import type { InstanceFacts } from '../instance-facts.js';
import type { ClusterFacts } from './cluster-facts.js';
import type { SlotTraffic } from './traffic.js';

export interface SlotWeights {
  /** Commands per second. */
  readonly load: Float64Array;
  /** Bytes. */
  readonly memory: Float64Array;
  /** Whether the load of every master was divided among its slots by MONITOR's results, or by their keys. */
  readonly loadBy: 'monitor' | 'keys';
}

/** Fewer commands of a master do not show their distribution over its slots. */
const ENOUGH_COMMANDS = 1_000;

/**
 * Commands per second and memory were measured for each master. Its load is divided among its slots by MONITOR's
 * results, else by their keys; its memory by their keys; without keys, both evenly.
 * @param sources facts of the masters, in their order
 */
export function weigh(
  { masters, keysBySlot }: ClusterFacts,
  sources: readonly InstanceFacts[],
  traffic: ReadonlyMap<number, SlotTraffic> | null,
): SlotWeights {
  const [load, memory] = [new Float64Array(SLOTS), new Float64Array(SLOTS)];
  let monitored = traffic !== null;
  masters.forEach((master, i) => {
    const { opsPerSecond, memory: used } = sources[i];
    const slots = slotsOf(master);
    const seen = slots.map((slot) => traffic?.get(slot)?.commands ?? 0);
    const keys = slots.map((slot) => keysBySlot?.[slot] ?? 0);
    const isSeen = total(seen) >= ENOUGH_COMMANDS;
    if (!isSeen) monitored = false;
    divide(opsPerSecond, slots, isSeen ? seen : keys, load);
    divide(used.dataset ?? used.used, slots, keys, memory);
  });
  return { load, memory, loadBy: monitored ? 'monitor' : 'keys' };
}

function divide(amount: number, slots: readonly number[], by: readonly number[], into: Float64Array): void {
  const sum = total(by);
  slots.forEach((slot, i) => (into[slot] = sum === 0 ? amount / slots.length : (amount * by[i]) / sum));
}

export const slotsOf = ({ slots }: Pick<SlotMaster, 'slots'>): number[] =>
  slots.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));

/** The sum of the weights of these slots. */
export const weightOf = (slots: readonly number[], weights: Float64Array): number =>
  slots.reduce((sum, slot) => sum + weights[slot], 0);

export const total = (values: ArrayLike<number>): number => {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum;
};
