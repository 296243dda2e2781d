/** Counters that two nodes would lose are called safe. */
import type { Fault } from '../fault.js';

export const GUARD: readonly Fault[] = [
  {
    id: 'two-writable-nodes-are-safe',
    file: 'shadow-proxy/src/guard/judge.ts',
    from: 'if (writable.length < 2) {',
    to: 'if (writable.length < 3) {',
    tests: ['unit/guard/judge'],
  },
  {
    id: 'a-node-that-was-not-read-is-a-replica',
    file: 'shadow-proxy/src/guard/judge.ts',
    from: '    if (unread !== undefined)\n',
    to: '    if (unread === null)\n',
    tests: ['unit/guard/judge'],
  },
  {
    id: 'writes-from-another-region-are-fine',
    file: 'shadow-proxy/src/guard/judge.ts',
    from: '  if (writes > 0)\n',
    to: '  if (writes > 1_000_000)\n',
    tests: ['unit/guard/judge'],
  },
  {
    id: 'plain-keys-beside-the-parts-are-fine',
    file: 'shadow-proxy/src/guard/judge.ts',
    from: "if (counterLayout === 'per-region' && plainKeys > 0) {",
    to: "if (counterLayout === 'library' && plainKeys > 0) {",
    tests: ['unit/guard/judge'],
  },
  {
    id: 'a-node-that-hides-its-clients-has-none',
    file: 'shadow-proxy/src/guard/judge.ts',
    from: 'others.find(({ writers }) => writers === null)',
    to: 'others.find(() => false)',
    tests: ['unit/guard/judge'],
  },
  {
    id: 'shared-integers-are-fine',
    file: 'shadow-proxy/src/guard/judge.ts',
    from: 'if (shared.length > 0) {',
    to: 'if (shared.length > 9) {',
    tests: ['unit/guard/judge'],
  },
];
