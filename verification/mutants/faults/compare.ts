/** Two replies that differ are taken for equal, or the other way round. */
import type { Fault } from '../fault.js';

export const COMPARE: readonly Fault[] = [
  {
    id: 'a-set-that-lacks-a-repeated-element-is-equal',
    file: 'shadow-proxy/src/compare/multiset.ts',
    from: '|| --counts[slots[slot]] < 0) return false;',
    to: ') return false;',
    tests: ['unit/compare/multiset'],
  },
  {
    id: 'lone-elements-count-as-the-same-set',
    file: 'shadow-proxy/src/compare/multiset.ts',
    from: 'if (slots[slot] === NONE || --counts',
    to: 'if (slots[slot] !== NONE && --counts',
    tests: ['unit/compare/multiset'],
  },
  {
    id: 'a-full-mirror-is-a-mismatch-of-writes',
    file: 'shadow-proxy/src/compare/compare.ts',
    from: 'const unable = unableTo(command, text(mirror));',
    to: 'const unable = null;',
    tests: ['unit/compare/rules'],
  },
  {
    id: 'a-full-mirror-excuses-reads-too',
    file: 'shadow-proxy/src/compare/compare.ts',
    from: 'if (unable !== null && (!isRead(command) || !OF_WRITES.has(unable))) return unable;',
    to: 'if (unable !== null) return unable;',
    tests: ['unit/compare/rules'],
    unseen: 'No server refuses a read because its memory is full, or because it is a replica.',
  },
  {
    id: 'any-sort-is-inconclusive',
    file: 'shadow-proxy/src/compare/compare.ts',
    from: "return limited || sameElements(...items, 1) ? 'sort-without-order' : null;",
    to: "return 'sort-without-order';",
    tests: ['unit/compare/rules'],
  },
  {
    id: 'a-change-of-order-is-called-a-value',
    file: 'shadow-proxy/src/compare/compare.ts',
    from: "return sameElements(...items, 1) ? 'order' : 'value';",
    to: "return 'value';",
    tests: ['unit/compare/rules'],
  },
  {
    id: 'a-refused-command-is-an-error-like-any',
    file: 'shadow-proxy/src/compare/compare.ts',
    from: "if (refused(authority) !== refused(mirror)) return 'unsupported';",
    to: '',
    tests: ['unit/compare/rules', 'integration/rules/rule-24'],
    unseen:
      'The table of forms names each command that a simulated server lacks; where one refuses others, a run expects both kinds.',
  },
  {
    id: 'scores-of-ranges-are-compared-as-bytes',
    file: 'shadow-proxy/src/compare/scores.ts',
    from: 'return WITHSCORES.has(name) && args.some',
    to: 'return false && args.some',
    tests: ['unit/compare/rules'],
    profile: 'calm',
  },
  {
    id: 'an-edge-is-allowed-whatever-was-written-since',
    file: 'shadow-proxy/src/compare/absence.ts',
    from: 'if (life === null || evidence.writtenSince) return false;',
    to: 'if (life === null) return false;',
    tests: ['unit/compare/absence'],
  },
  {
    id: 'a-key-that-lives-for-long-is-at-its-edge',
    file: 'shadow-proxy/src/compare/absence.ts',
    from: 'return expiresWithin(life, evidence.toleranceMs - elapsed);',
    to: "return life.state === 'expires';",
    tests: ['unit/compare/absence'],
  },
  {
    id: 'a-key-without-a-time-to-live-is-at-its-edge',
    file: 'shadow-proxy/src/compare/absence.ts',
    from: 'return expiresWithin(life, evidence.toleranceMs - elapsed);',
    to: "return life.state === 'persistent' || expiresWithin(life, evidence.toleranceMs - elapsed);",
    tests: ['unit/compare/absence'],
  },
  {
    id: 'evicted-on-one-side-is-enough',
    file: 'shadow-proxy/src/compare/absence.ts',
    from: 'lacking.every((side) => maybeLacked(evidence, side) && evicted',
    to: 'lacking.some((side) => evicted',
    tests: ['unit/compare/absence'],
  },
];
