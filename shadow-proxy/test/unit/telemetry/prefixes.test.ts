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
  prefixes.rotate(60_000);
  assert.equal(prefixes.snapshot(60_000)[0].perSecond, 20);
  prefixes.rotate(120_000);
  assert.equal(prefixes.snapshot(120_000)[0].perSecond, 0);
  assert.deepEqual(prefixes.snapshot(120_000)[0].commands, { setnx: 1200 });
});

const of = (prefix: string) => ({ workload: 'default', kind: 'increment', prefix }) as const;

test('256 prefixes are kept; a new one pushes out what brings no more than it, and lowers the others', () => {
  const prefixes = new Prefixes(0);
  for (let i = 0; i < 256; i++) prefixes.add(of(`p${i}`), 'incr', i < 128 ? 2 : 4);
  assert.equal(prefixes.snapshot(1_000).length, 256);
  // Nobody has so little that it would have to go.
  prefixes.add(of('new'), 'incr', 1);
  assert.deepEqual([prefixes.snapshot(1_000).length, has(prefixes, 'new')], [256, false]);
  // Those with 2 have 1 left, and go now.
  prefixes.add(of('new'), 'incr', 1);
  assert.deepEqual([prefixes.snapshot(1_000).length, has(prefixes, 'new'), has(prefixes, 'p0')], [129, true, false]);
  // What is known is counted, and makes no room.
  prefixes.add(of('p200'), 'incr', 1);
  assert.equal(prefixes.snapshot(1_000).length, 129);
});

const has = (prefixes: Prefixes, prefix: string): boolean =>
  prefixes.snapshot(1_000).some((each) => each.prefix === prefix);

test('the same prefix of another kind or workload is another one', () => {
  const prefixes = new Prefixes(0);
  prefixes.add(of('a'), 'incr', 1);
  prefixes.add({ ...of('a'), kind: 'lock' }, 'setnx', 1);
  prefixes.add({ ...of('a'), workload: 'sessions' }, 'incr', 1);
  assert.equal(prefixes.snapshot(1_000).length, 3);
});

test('the most frequent comes first, by all of its commands', () => {
  const prefixes = new Prefixes(0);
  prefixes.add(of('one'), 'incr', 3);
  prefixes.add(of('two'), 'incr', 2);
  prefixes.add(of('two'), 'decr', 2.4);
  prefixes.add(of('three'), 'incr', 5);
  assert.deepEqual(
    prefixes.snapshot(1_000).map(({ prefix, commands }) => [prefix, commands]),
    [
      ['three', { incr: 5 }],
      ['two', { incr: 2, decr: 2 }],
      ['one', { incr: 3 }],
    ],
  );
});

test('a window is a minute, and the rate is that of the window before and of this one', () => {
  const prefixes = new Prefixes(1_000);
  prefixes.add(of('a'), 'incr', 600);
  prefixes.rotate(60_999);
  assert.equal(prefixes.snapshot(60_999)[0].perSecond, 600 / 59.999, 'the first window goes on');
  prefixes.rotate(61_000);
  prefixes.add(of('a'), 'incr', 300);
  assert.equal(prefixes.snapshot(91_000)[0].perSecond, 10, '900 in 90 s');
  assert.equal(new Prefixes(0).snapshot(0).length, 0);
  const young = new Prefixes(0);
  young.add(of('a'), 'incr', 5);
  assert.equal(young.snapshot(10)[0].perSecond, 5, 'of less than a second, as of one');
});

test('of long keys the beginning alone is looked at, and a name begins the key', () => {
  assert.equal(prefixOf(`${'x'.repeat(20)}:${'y'.repeat(200)}:z`), `${'x'.repeat(20)}:*`);
  assert.equal(prefixOf(`${'1'.repeat(130)}:a`), '*');
  assert.equal(prefixOf('17hits7'), '*');
  assert.equal(prefixOf('a:b:c:d'), 'a:b:*');
  assert.equal(prefixOf('a:b'), 'a:*');
  assert.equal(prefixOf('x'.repeat(25)), '*');
});
