/** What is said of a server that evicts keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evictionNote } from '../../../src/telemetry/server-notes.js';

const NOW = Date.parse('2026-03-04T12:00:00Z');
const at = '2026-03-04T11:59:20Z';

test('evictions are said with their number, how long ago the last was, and the server that keeps the keys', () => {
  const evicted = { evicted: 2, evictedAt: at, evicting: true };
  assert.match(
    evictionNote('source', evicted, NOW),
    /^the source is evicting keys: 2 keys .* the last 40 s ago; the target keeps them/,
  );
  assert.match(
    evictionNote('target', { ...evicted, evicting: false }, NOW),
    /^the target has evicted keys: .* the source keeps them/,
  );
  assert.match(evictionNote('source', evicted, NOW - 60_000), /the last 0 s ago/, 'a clock that went back');
});

test('a server that has evicted nothing needs no word', () => {
  assert.equal(evictionNote('source', { evicted: 0, evictedAt: at, evicting: false }, NOW), '');
  assert.equal(evictionNote('source', { evicted: 3, evictedAt: null, evicting: true }, NOW), '');
});
