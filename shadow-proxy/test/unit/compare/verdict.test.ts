/** Which of two verdicts is the worse one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isWorse, type Verdict } from '../../../src/compare/verdict.js';

test('a mismatch is worse than inconclusive, that than an allowed difference, that than a match', () => {
  const inOrder: readonly Verdict[] = [
    { kind: 'match' },
    { kind: 'allowed', rule: 'random' },
    { kind: 'inconclusive', reason: 'written-since' },
    { kind: 'mismatch', what: 'value' },
  ];
  for (const [i, a] of inOrder.entries()) {
    for (const [j, b] of inOrder.entries()) assert.equal(isWorse(a, b), i > j, `${a.kind} against ${b.kind}`);
  }
});
