/** The slots at which further shards begin, if a shard has more load than one proxy can handle. */
import type { ClusterShard } from '../../plan/cluster-shards.js';
import { divide } from './layout.js';
import { slotsOf, weightOf } from './weights.js';

/** No master needs more proxies than this, because it has one thread. */
const MAX_PARTS = 16;

/**
 * @param load commands per second of each slot
 * @param capacity commands per second that one proxy may get
 */
export const cutsOf = (shards: readonly ClusterShard[], load: Float64Array, capacity: number): number[] =>
  shards
    .flatMap((shard) => partsOf(slotsOf(shard), load, capacity).slice(1))
    .map(([first]) => first)
    .sort((a, b) => a - b);

function partsOf(slots: readonly number[], load: Float64Array, capacity: number): readonly (readonly number[])[] {
  const most = Math.min(MAX_PARTS, slots.length);
  const fits = (part: readonly number[]): boolean => part.length === 1 || weightOf(part, load) <= capacity;
  let parts: readonly (readonly number[])[] = [slots];
  for (let count = 2; count <= most && !parts.every(fits); count++) parts = divide(slots, load, count);
  return parts;
}
