/**
 * Prefixes of keys: what stands for an ID is cut off, and what many clients invent does not push out what is frequent.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Prefixes, prefixOf } from '../../../src/telemetry/prefixes.js';

test('names stay, IDs go', () => {
  const cases: Record<string, string> = {
    'rl:user:17': 'rl:user:*',
    'rl:user:alice:minute': 'rl:user:*',
    'rl:17:minute': 'rl:*',
    'rl:a@b.example': 'rl:*',
    'page/views/home': 'page/views/*',
    'hits.2026-11-21': 'hits.*',
    hits: 'hits',
    hits7: 'hits*',
    '17': '*',
    '{user1}:hits': '*',
    '': '*',
  };
  for (const [key, prefix] of Object.entries(cases)) assert.equal(prefixOf(key), prefix, key);
});

test('what is frequent stays, whatever else clients invent', () => {
  const prefixes = new Prefixes(0);
  for (let i = 0; i < 50_000; i++) {
    prefixes.add({ workload: 'default', kind: 'increment', prefix: `made-up-${i}` }, 'incr', 1);
    if (i % 20 === 0) prefixes.add({ workload: 'default', kind: 'increment', prefix: 'rl:*' }, 'incr', 1);
  }
  const found = prefixes.snapshot(1_000);
  assert.ok(found.length <= 256);
  assert.deepEqual([found[0].prefix, found[0].commands], ['rl:*', { incr: 2_500 }]);
});

test('rates are those of the last minutes', () => {
  const prefixes = new Prefixes(0);
  const of = { workload: 'default', kind: 'lock', prefix: 'lock:*' } as const;
  for (let i = 0; i < 600; i++) prefixes.add(of, 'setnx', 2);
  prefixes.turn(60_000);
  assert.equal(prefixes.snapshot(60_000)[0].perSecond, 20);
  prefixes.turn(120_000);
  assert.equal(prefixes.snapshot(120_000)[0].perSecond, 0);
  assert.deepEqual(prefixes.snapshot(120_000)[0].commands, { setnx: 1200 });
});
