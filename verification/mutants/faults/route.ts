/** A key is taken for another workload's, or for another server's. */
import type { Fault } from '../fault.js';

export const ROUTE: readonly Fault[] = [
  {
    id: 'a-percentage-is-one-slot-short',
    file: 'shadow-proxy/src/route/position.ts',
    from: 'this.#liveSlots = Math.ceil((this.#percent * SLOTS) / 100);',
    to: 'this.#liveSlots = Math.floor((this.#percent * SLOTS) / 100) - 1;',
    tests: ['unit/route/router'],
    unseen: 'Two of 16,384 slots stay with the source: their keys get the same replies from either server.',
  },
  {
    id: 'an-open-tag-hides-the-key',
    file: 'shadow-proxy/src/route/slot.ts',
    from: 'if (close < end && close > i + 1) {',
    to: 'if (close > i + 1) {',
    tests: ['unit/route/slot'],
  },
  {
    id: 'the-last-pattern-wins',
    file: 'shadow-proxy/src/route/router.ts',
    from: 'for (let i = 0; i < workloads.length - 1; i++) if (workloads[i].owns(key, start, end)) return workloads[i];',
    to: 'for (let i = workloads.length - 2; i >= 0; i--) if (workloads[i].owns(key, start, end)) return workloads[i];',
    tests: ['unit/route/router'],
    profile: 'apart',
  },
  {
    id: 'keys-of-other-shards-are-ours',
    file: 'shadow-proxy/src/route/owner.ts',
    from: 'if (mine !== null) return (key, start, end) => !mine(key, start, end);',
    to: 'if (mine !== null) return null;',
    tests: ['unit/route/owner'],
  },
  {
    id: 'a-star-takes-nothing',
    file: 'shadow-proxy/src/route/glob.ts',
    from: 'k = ++starKey;',
    to: 'k = starKey + 1;',
    tests: ['unit/route/glob'],
  },
  {
    id: 'rampdown-is-not-mirrored',
    file: 'shadow-proxy/src/route/stage.ts',
    from: "mirrorsWrites: true,\n    mirrorsReads: false,\n    sentence: 'The target answers.",
    to: "mirrorsWrites: false,\n    mirrorsReads: false,\n    sentence: 'The target answers.",
    tests: ['unit/route/stage'],
    profile: 'swaps',
  },
];
