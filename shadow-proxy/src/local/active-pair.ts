/** Two active-active KeyDB nodes. */
import { ActiveNodes, type Resyncs as ResyncsOf, type MeshOptions } from './active-nodes.js';

export type { RestartFrom } from './active-nodes.js';

export type Side = 'a' | 'b';
export const SIDES = ['a', 'b'] as const;
export const otherSide = (side: Side): Side => (side === 'a' ? 'b' : 'a');

/** How each side got what it had missed. */
export type Resyncs = ResyncsOf<Side>;

export const RESYNCS: Readonly<Record<'partial' | 'full' | 'asymmetric', Resyncs>> = {
  partial: { a: 'partial', b: 'partial' },
  full: { a: 'full', b: 'full' },
  asymmetric: { a: 'partial', b: 'full' },
};

export type ActivePair = ActiveNodes<Side>;
export const ActivePair = {
  start: (options?: MeshOptions): Promise<ActivePair> => ActiveNodes.start<Side>(SIDES, options),
};
