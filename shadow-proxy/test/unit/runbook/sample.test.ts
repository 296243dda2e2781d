/** A sample holds where only figures differ, and nowhere else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shows } from '../../integration/runbook/sample.js';

test('figures, units, wrapped tables and the rules that allowed a difference may change; words may not', () => {
  assert.ok(
    shows('practice: backfill done: 2,008 keys copied (166.1 KiB)', 'practice: backfill done: 9 keys copied (1.2 MiB)'),
  );
  assert.ok(
    shows(
      '│ yes │ allowed │ 0.00 % of the pairs, at most 100 % │',
      '│ yes │ allowed │ 12 % of the pairs      │\n│     │         │ (unordered 3, random 4), at most 100 %  │',
    ),
  );
  assert.ok(
    shows(
      'connected to the source directly, and for 1 min the source counted only the writes of the proxy',
      'connected to the source directly; call counts could not be compared (scripts run)',
    ),
  );
  const busy = '│ increment: incr │\n│ 10 writing now: │\n│ shadow-proxy:a… │\n│ (set)           │';
  assert.ok(
    shows('│ increment: incr │\n│ 9               │', busy) && shows(busy, '│ increment: incr │\n│ 9               │'),
  );
  assert.ok(!shows('0 differ', '0 differ, 1 failed'));
  assert.ok(!shows('│ yes │ verify │', '│ NO │ verify │'));
  assert.ok(!shows('', 'something'));
});

test('a line … is whatever is there', () => {
  assert.ok(shows('a 1\n…\nc', 'a 2\nb\nb\nc'));
  assert.ok(shows('a\n…\n', 'a\nb'));
  assert.ok(shows('…\nc', 'a\nc'));
  assert.ok(!shows('b\n…', 'a\nb'), 'what comes first comes first');
  assert.ok(!shows('a\n…\nc', 'a\nc\nd'), 'what comes last comes last');
});
