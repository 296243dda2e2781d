/** Two replies that differ are taken for equal, or the other way round. */
import type { Fault } from '../fault.js';

export const MULTISET: readonly Fault[] = [
  {
    id: 'a-set-that-lacks-a-repeated-element-is-equal',
    file: 'shadow-proxy/src/compare/multiset.ts',
    from: '|| --counts[slots[slot]] < 0) return false;',
    to: ') return false;',
    tests: ['unit/compare/multiset'],
  },
];
