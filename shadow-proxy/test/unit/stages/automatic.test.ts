/** The limits of the guard, what it leaves behind, and the times at which a rollout takes a step. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GuardPlan } from '../../../src/plan/plan.js';
import { isWithin } from '../../../src/stages/automatic.js';
import { holdsAfter, type Holds } from '../../../src/stages/holds.js';
import { judgeLimits, type LimitFacts } from '../../../src/stages/limits.js';

const GUARD: GuardPlan = {
  ...{ action: 'rollback', forSeconds: 60, maxErrorShare: 0.05, maxP99Ratio: 3, maxP99Ms: 20, maxMismatches: 1 },
  ...{ checks: ['orders'], workloads: null },
};
const times = (p99: number, count = 10) => ({ p50: p99, p99, p999: p99, count });
const facts = (change: Partial<LimitFacts> = {}): LimitFacts => ({
  latency: { source: times(2_000), target: times(2_000) },
  ...{ replies: 100, errors: 0, mismatches: 0, checks: [] },
  ...change,
});
const exceeded = (change: Partial<LimitFacts>): string[] =>
  [...judgeLimits(GUARD, facts(change))].flatMap(([limit, evidence]) => (evidence === null ? [] : [limit]));

test('each limit is exceeded by more than it allows, and by no less', () => {
  assert.deepEqual(exceeded({}), []);
  assert.deepEqual([exceeded({ errors: 5 }), exceeded({ errors: 6 })], [[], ['errors']]);
  assert.deepEqual([exceeded({ mismatches: 1 }), exceeded({ mismatches: 2 })], [[], ['mismatches']]);
  const latency = (source: number, target: number) => ({ latency: { source: times(source), target: times(target) } });
  assert.deepEqual([exceeded(latency(2_000, 6_000)), exceeded(latency(2_000, 6_001))], [[], ['p99 ratio']]);
  assert.deepEqual(exceeded(latency(10, 3_000)), [], 'both count as 1 ms at least');
  assert.deepEqual([exceeded(latency(9_000, 20_000)), exceeded(latency(9_000, 20_001))], [[], ['p99']]);
  const check = (answer: 'yes' | 'no' | 'unknown') => ({ checks: [{ name: 'orders', answer, evidence: '7' }] });
  assert.deepEqual(
    [exceeded(check('yes')), exceeded(check('no')), exceeded(check('unknown'))],
    [[], ['check orders'], []],
  );
});

test('what nothing was seen of neither begins nor ends anything', () => {
  const none = { source: times(0, 0), target: times(0, 0) };
  assert.deepEqual([...judgeLimits(GUARD, facts({ latency: none, replies: 0 })).keys()], ['mismatches']);
});

test('what the guard or a failover has moved waits until an operator promotes it', () => {
  const shadow = { stage: 'shadow', percent: 100 } as const;
  const live = { stage: 'live', percent: 1 } as const;
  const after = (holds: Holds, up: boolean, note: Readonly<Record<string, unknown>>): string | undefined =>
    holdsAfter(holds, 'a', up ? shadow : live, up ? live : shadow, note).a?.why;
  const held = (why: Holds[string]['why']): Holds => ({ a: { why, at: '', reason: '', by: null } });
  assert.equal(after({}, false, { automatic: 'guard' }), 'rolled-back');
  assert.equal(after({}, true, { by: 'failover' }), 'failover');
  assert.equal(after({}, false, { by: 'ada', rollback: true }), undefined);
  for (const why of ['rolled-back', 'stopped', 'failover'] as const) {
    assert.equal(after(held(why), true, { by: 'ada' }), undefined, `${why} ends with a promotion`);
    assert.equal(after(held(why), true, { by: 'ada', drill: true }), why, 'a drill is none');
    assert.equal(after(held(why), true, { automatic: 'rollout' }), why, 'nor is a step of the rollout');
    assert.equal(after(held(why), false, { by: 'ada' }), why, 'nor is a rollback');
  }
  assert.equal(after(held('paused'), true, { by: 'ada' }), 'paused', 'only resume ends a pause');
});

test('a window may go over midnight; its end is not in it', () => {
  const at = (time: string): number => Date.parse(`2026-03-04T${time}:00Z`);
  const window = { from: 22 * 60, to: 5 * 60 };
  assert.deepEqual(
    ['21:59', '22:00', '00:00', '04:59', '05:00', '12:00'].map((time) => isWithin(window, at(time))),
    [false, true, true, true, false, false],
  );
  assert.equal(isWithin(null, at('12:00')), true);
});
