/** Recommends the layout of the target, from the facts of the source. Pure. */
import { refine, type SlotMaster } from '../../plan/cluster-shards.js';
import { cutsOf } from './cuts.js';
import { layoutsOf, type Layout, type LayoutKind, type Weights } from './layout.js';

export interface Proposal extends Layout {
  /** Slots at which a further shard begins, so that no proxy gets more load than it can handle. */
  readonly cuts: readonly number[];
  /** Number of shards, including those of the cuts. */
  readonly proxies: number;
}

export interface Wanted {
  /** Number of masters of the target. */
  readonly masters: number;
  readonly kind: LayoutKind;
  /** What is distributed evenly. */
  readonly by: keyof Weights;
  /** Commands per second that one proxy may get. */
  readonly capacity: number;
}

export interface Advice {
  /** What is distributed evenly. */
  readonly by: keyof Weights;
  readonly proposals: readonly Proposal[];
  /** The requested layout; the aligned one if there is no even one. */
  readonly chosen: Proposal;
  /** Slots that have more load than one proxy can handle, and cannot be divided. */
  readonly crowded: readonly number[];
}

/** @param source at most 12 masters */
export function advise(source: readonly SlotMaster[], weights: Weights, wanted: Wanted): Advice {
  const { load } = weights;
  const proposals = layoutsOf(source, weights, wanted.by).map((layout): Proposal => {
    const cuts = cutsOf(layout.shards, load, wanted.capacity);
    return { ...layout, cuts, proxies: refine(source, layout.masters, cuts).length };
  });
  const ofSize = proposals.filter(({ masters }) => masters.length === wanted.masters);
  return {
    by: wanted.by,
    proposals,
    chosen: ofSize.find(({ kind }) => kind === wanted.kind) ?? ofSize[0],
    crowded: [...load.keys()].filter((slot) => load[slot] > wanted.capacity),
  };
}
