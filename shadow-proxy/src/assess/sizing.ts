/**
 * How much KeyDB is needed, and what it costs: computed from measurements and from prices that the operator gives.
 */
import type { InstanceFacts } from './instance-facts.js';

export interface SizingOptions {
  /** Memory of one KeyDB node, in bytes. */
  readonly nodeMemory: number | null;
  /** Commands per second that one KeyDB node handled in a measurement; null if there is none. */
  readonly nodeOps: number | null;
  /** Price of a month of one Redis, and of one KeyDB node, in any currency. */
  readonly sourcePrice: number | null;
  readonly targetPrice: number | null;
}

export interface Sizing {
  readonly opsPerSecond: number;
  /** Maximum bytes of the data, with a reserve for fragmentation and growth. */
  readonly memory: number;
  /** Number of nodes for the memory, and for the commands; null if unknown. */
  readonly byMemory: number | null;
  readonly byOps: number | null;
  readonly nodes: number | null;
  /** Price of a month; null without prices. */
  readonly costNow: number | null;
  readonly costThen: number | null;
}

/** Reserve for fragmentation, replication buffers and growth. */
const MEMORY_ROOM = 1.5;
/** Maximum load of a node, as a share. */
const LOAD = 0.6;

export function sizingOf(
  sources: readonly InstanceFacts[],
  { nodeMemory, nodeOps, sourcePrice, targetPrice }: SizingOptions,
): Sizing {
  const opsPerSecond = sources.reduce((total, source) => total + source.opsPerSecond, 0);
  const memory = sources.reduce((total, source) => total + source.memory.peak, 0) * MEMORY_ROOM;
  const byMemory = nodeMemory === null ? null : Math.ceil(memory / nodeMemory);
  const byOps = nodeOps === null ? null : Math.ceil(opsPerSecond / (nodeOps * LOAD));
  const nodes = byMemory === null || byOps === null ? null : Math.max(1, byMemory, byOps);
  return {
    opsPerSecond,
    memory,
    byMemory,
    byOps,
    nodes,
    costNow: sourcePrice === null ? null : sourcePrice * sources.length,
    costThen: targetPrice === null || nodes === null ? null : targetPrice * nodes,
  };
}
