/** The progress of a job in words: counts that add up, and a line that fits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { renderBar, renderProgress } from '../../../src/cli/job-progress.js';
import { jobSnapshot } from '../../support/snapshots.js';

const shown = (change: Parameters<typeof jobSnapshot>[0]): string =>
  renderProgress({ shard: 'cache-0', job: jobSnapshot({ bytes: 0, ...change }) });

test('a line has what is known, and nothing else', () => {
  const cases: [Parameters<typeof jobSnapshot>[0], string][] = [
    [{ total: 0, scanned: 0, keysPerSecond: 0, etaSeconds: null }, 'counting the keys'],
    [{ total: 997, scanned: 0, keysPerSecond: 0, etaSeconds: null }, '0 of 997 keys'],
    [{ total: 997, scanned: 500, bytes: 2048 }, '500 of 997 keys, 2.0 KiB, 100 keys/s, 5 s left'],
    [{ total: 997, scanned: 997, etaSeconds: null }, '997 of 997 keys, 100 keys/s, reading what only the mirror has'],
    [
      { total: 1, scanned: 0, failed: 2, reason: 'the target is full' },
      '0 of 1 key, 100 keys/s, 5 s left, 2 failed, the target is full',
    ],
  ];
  for (const [change, says] of cases) assert.equal(shown(change), `cache-0: verify running: ${says}`);
});

test('a bar fits its terminal, and at 80 columns has counts, unit, rate and time left', () => {
  const keys = fc.nat(9_999_999);
  fc.assert(
    fc.property(
      fc.integer({ min: 20, max: 200 }),
      keys,
      keys,
      fc.nat(99_999),
      fc.nat(1_000),
      fc.string(),
      (columns, a, b, rate, failed, reason) => {
        const job = jobSnapshot({
          scanned: Math.min(a, b),
          total: Math.max(a, b),
          keysPerSecond: rate + 1,
          failed,
          reason,
        });
        const bar = renderBar(columns, 'practice', job);
        assert.ok(bar.length <= columns, `${bar.length} > ${columns}: ${bar}`);
        if (columns >= 80 && job.total > 0)
          assert.match(bar, /^practice .*\[[=-]{6,}\] [\d,]+ of [\d,]+ keys?, [\d,]+ keys\/s, 5 s left/);
      },
    ),
  );
});

test('the bar is full at the end, and empty at the beginning', () => {
  assert.match(renderBar(80, 'a', jobSnapshot({ scanned: 0 })), /\[-+\]/);
  assert.match(renderBar(80, 'a', jobSnapshot({ state: 'done', scanned: 1000 })), /\[=+\] 1,000 of 1,000 keys, .*done/);
  assert.match(renderBar(80, 'a', jobSnapshot({ state: 'done', scanned: 0, total: 0 })), /\[=+\] 0 of 0 keys/);
});
