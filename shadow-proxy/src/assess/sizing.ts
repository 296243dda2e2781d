/**
 * How much KeyDB it takes, and what that costs: reckoned from what was measured and from prices that the operator
 * gives.
 */
import type { InstanceFacts } from './facts.js';

export interface SizingOptions {
  /** Memory of one KeyDB node, in bytes. */
  readonly nodeMemory: number | null;
  /** Commands a second that one KeyDB node was measured to take; null if nobody has measured. */
  readonly nodeOps: number | null;
  /** A month of one Redis, and of one KeyDB node, in any currency. */
  readonly sourcePrice: number | null;
  readonly targetPrice: number | null;
}

export interface Sizing {
  readonly opsPerSecond: number;
  /** Bytes that the data took at most, with room for fragmentation and growth. */
  readonly memory: number;
  /** Nodes that memory, and commands, ask for; null if unknown. */
  readonly byMemory: number | null;
  readonly byOps: number | null;
  readonly nodes: number | null;
  /** A month; null without prices. */
  readonly costNow: number | null;
  readonly costThen: number | null;
}

/** Room for fragmentation, replication buffers and growth. */
const MEMORY_ROOM = 1.5;
/** A node is loaded no further. */
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
