/** The share of reads that are compared, as a plan may say it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkReload } from '../../../src/plan/reload.js';
import { problemsOf, smallPlan, toPlan } from '../../support/plans.js';

const withShare = (shadowReads: unknown) => {
  const plan = smallPlan();
  plan.workloads[0].shadowReads = shadowReads;
  return plan;
};

test('a share is a number or a text with %, and all reads without one', () => {
  const { workloads, default: rest } = toPlan(smallPlan());
  assert.deepEqual([workloads[0].shadowReads, rest.shadowReads], [100, 100]);
  for (const [given, read] of [
    [10, 10],
    [0.5, 0.5],
    ['10 %', 10],
    ['2.5%', 2.5],
    ['100 %', 100],
  ])
    assert.equal(toPlan(withShare(given)).workloads[0].shadowReads, read, JSON.stringify(given));
});

test('a share of nothing, or of more than all, is refused', () => {
  for (const given of [0, -1, 101, '0 %', '101 %', '100.5 %', '10', 'all'])
    assert.equal(problemsOf((plan) => (plan.workloads[0].shadowReads = given)).length, 1, JSON.stringify(given));
});

test('a running process takes another share over', () => {
  assert.deepEqual(checkReload(toPlan(smallPlan()), toPlan(withShare(10)), {}), []);
});
