/** The nodes of the drill. */
import type { ActiveNodes } from '../../../shadow-proxy/src/local/active-nodes.js';

/** The first two, or all three. */
export const NAMES = ['a', 'b', 'c'] as const;
export type Name = (typeof NAMES)[number];
export type Mesh = ActiveNodes<Name>;
