/** Which tests of a suite are lost through the proxy, held against a run without it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import type { TestException } from '../exceptions.js';
import { judge, lossesOf } from '../run/compare.js';
import type { Outcome, TestResult, UnitResult, Way, WayResult } from '../run/result.js';
import { parseLines } from '../suites/vitest.js';

const results = (text: string): TestResult[] =>
  text
    .split(' ')
    .filter(Boolean)
    .map((word) => ({
      name: word.slice(1),
      status: ({ '+': 'ok', '-': 'failed', '?': 'skipped' } as const)[word[0] as '+'],
    }));
/** `+name` passes, `-name` fails, `?name` is left out. */
const outcome = (text: string, cutShort: string | null = null): Outcome => ({
  tests: results(text),
  aborts: [],
  cutShort,
});
const way = (name: Way, what: Outcome, more: Partial<WayResult> = {}): WayResult => ({
  way: name,
  outcome: what,
  seconds: 1,
  mirror: null,
  died: null,
  ...more,
});
const unit = (direct: string, proxied: string, differences: string[] = []): UnitResult => {
  const mirror = { unsettled: null, differences, mismatches: {}, samples: [], shards: [] as ShardSnapshot[] };
  return { unit: 'unit/one', ways: [way('redis', outcome(direct)), way('shadow', outcome(proxied), { mirror })] };
};
const lost = (direct: string, proxied: string): string[] =>
  lossesOf(outcome(direct), outcome(proxied)).map(({ test: name, how }) => `${name} ${how}`);
const listed = (test: string | RegExp, more: Partial<TestException> = {}): TestException => ({
  suite: 'redis',
  unit: 'unit/one',
  test,
  reason: 'a reason',
  ...more,
});
const failures = (units: UnitResult[], tests: TestException[] = []): readonly string[] =>
  judge(units, { suite: 'redis', tests, keys: [] }).failures;

test('a test is lost that passes directly and fails, is left out or is not reached through the proxy', () => {
  assert.deepEqual(lost('+a +b +c +d', '+a -b ?c'), ['b failed', 'c skipped', 'd not reached']);
});

test('what does not pass directly cannot be lost', () => {
  assert.deepEqual(lost('-a ?b', ''), []);
  assert.deepEqual(lost('-a', '+a'), []);
});

test('tests with one name are compared in their order', () => {
  assert.deepEqual(lost('+a +a +a', '+a -a'), ['a failed', 'a not reached']);
  assert.deepEqual(lost('-a +a', '-a +a'), []);
});

test('a lost test fails the run, unless it is listed', () => {
  assert.deepEqual(failures([unit('+a +b', '+a -b')]), [
    'unit/one (shadow): 1 tests pass directly and not through the proxy',
  ]);
  assert.deepEqual(failures([unit('+a +b', '+a -b')], [listed('b')]), []);
  assert.deepEqual(failures([unit('+a +b', '+a -b')], [listed(/^b$/)]), []);
});

test('a listed exception that matches no lost test fails the run, if its unit was run', () => {
  assert.deepEqual(failures([unit('+a', '+a')], [listed('a')]), ['an exception excuses nothing: unit/one a']);
  assert.deepEqual(failures([unit('+a', '+a')], [listed('a', { unit: 'unit/two' })]), []);
  assert.deepEqual(failures([unit('+a', '+a')], [listed('a', { unit: /one$/ })]), [
    'an exception excuses nothing: /one$/ a',
  ]);
  assert.deepEqual(failures([unit('+a', '+a')], [listed('a', { way: 'live' })]), []);
  assert.deepEqual(failures([unit('+a', '+a')], [listed('a', { suite: 'bullmq' })]), []);
  assert.deepEqual(failures([unit('+a', '+a')], [listed('a', { sometimes: true })]), []);
  // The suite leaves it out itself; one that it does not know any more is stale.
  assert.deepEqual(failures([unit('+a ?b', '+a ?b')], [listed('b')]), []);
  assert.deepEqual(failures([unit('+a', '+a')], [listed('b')]), ['an exception excuses nothing: unit/one b']);
});

test('a key that differs at the end fails the run, unless it is listed', () => {
  const units = [unit('+a', '+a', ['9:k is on the target only'])];
  assert.deepEqual(failures(units), ['unit/one (shadow): 1 keys differ at the end']);
  const keys = [{ suite: 'redis', unit: 'unit/one', difference: /^9:k /, reason: 'a reason' } as const];
  assert.deepEqual(judge(units, { suite: 'redis', tests: [], keys }).failures, []);
});

test('of several tries, a test is lost that all of them lost', () => {
  const tries: UnitResult = {
    unit: 'unit/one',
    ways: [way('redis', outcome('+a +b +c')), way('shadow', outcome('-a -b +c')), way('shadow', outcome('-a +b -c'))],
  };
  const { comparisons, failures: failed } = judge([tries], { suite: 'redis', tests: [], keys: [] });
  assert.deepEqual(
    comparisons[0].losses.map(({ test: name }) => name),
    ['a'],
  );
  assert.deepEqual(comparisons[0].unsteady, ['b', 'c']);
  assert.deepEqual(failed, ['unit/one (shadow): 1 tests pass directly and not through the proxy']);
  assert.deepEqual(failures([tries], [listed('a'), listed('b')]), []);
});

test('a proxy or a server that ended by itself fails the run', () => {
  const died: UnitResult = {
    unit: 'unit/one',
    ways: [way('keydb', outcome('+a')), way('live', outcome('+a'), { died: 'proxy, with the last words:\nthe end' })],
  };
  assert.deepEqual(failures([died]), ['unit/one (live): ended by itself: proxy']);
});

test('a direct run that was cut short leaves it open', () => {
  const cut: UnitResult = {
    unit: 'unit/one',
    ways: [way('redis', outcome('+a', 'no progress')), way('shadow', outcome('+a'))],
  };
  const judgement = judge([cut], { suite: 'redis', tests: [], keys: [] });
  assert.deepEqual(judgement.failures, []);
  assert.equal(judgement.open.length, 1);
});

test('the lines of the reporter are read as far as they came', () => {
  const line = (what: object): string => `${JSON.stringify(what)}\n`;
  const passed = line({ test: { name: 'a', status: 'ok' } });
  assert.deepEqual(parseLines(passed + line({ end: true })), outcome('+a'));
  assert.deepEqual(parseLines(passed).cutShort, 'it did not come to its end');
  assert.deepEqual(parseLines(passed + line({ error: 'outside' }) + line({ end: true })).aborts, ['outside']);
});
