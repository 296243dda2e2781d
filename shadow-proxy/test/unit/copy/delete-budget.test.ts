/** How many keys that only the mirror has a job may delete. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Permissions } from '../../../src/copy/foreign/permissions.js';
import { DeleteBudget, type DeleteBudgetContext } from '../../../src/copy/job/delete-budget.js';
import { Router } from '../../../src/route/router.js';

const router = new Router([{ name: 'a', keys: ['a:*'], stage: 'shadow', percent: 100 }], {
  stage: 'shadow',
  percent: 100,
});
const [a, rest] = router.workloads;
const BACKFILL = { kind: 'backfill', automatic: false, deletes: 0, dryRun: false } as const;

function budget(
  deletable: number,
  change: Partial<ReturnType<DeleteBudgetContext['request']>> = {},
  resumed?: ConstructorParameters<typeof DeleteBudget>[2],
): { readonly budget: DeleteBudget; readonly saved: unknown[] } {
  const permissions = new Permissions(router);
  permissions.set(a, { deletable, mayOverwrite: true });
  const saved: unknown[] = [];
  const made: DeleteBudget = new DeleteBudget(
    { permissions, request: () => ({ ...BACKFILL, ...change }), save: () => saved.push(made.record(true)) },
    [a, rest],
    resumed,
  );
  return { budget: made, saved };
}

test('whether a delete is allowed may be asked as often as one likes: only a delete is counted', () => {
  const { budget: two } = budget(2);
  for (let i = 0; i < 5; i++) assert.deepEqual([two.allows(a), two.allows(rest)], [true, false]);
  assert.deepEqual(two.record(false), { confirmed: 0, workloads: { a: 0, default: 0 } });
  two.spend(a);
  assert.equal(two.allows(a), true);
  two.spend(a);
  assert.equal(two.allows(a), false);
  assert.deepEqual(two.record(false), { confirmed: 0, workloads: { a: 2, default: 0 } });
});

test('a repair that an operator asked for deletes only what was confirmed with it; other jobs, that after their own', () => {
  const { budget: repair } = budget(Infinity, { kind: 'verify', deletes: 1 });
  assert.equal(repair.allows(a), true);
  repair.spend(a);
  assert.equal(repair.allows(a), false);
  assert.deepEqual(repair.record(false), { confirmed: 1, workloads: { a: 0, default: 0 } });
  const { budget: automatic } = budget(1, { kind: 'verify', automatic: true, deletes: 1 });
  automatic.spend(a);
  automatic.spend(a);
  assert.equal(automatic.allows(a), false);
  assert.deepEqual(automatic.record(false), { confirmed: 1, workloads: { a: 1, default: 0 } });
});

test('the record names 100 deletes before the first is sent, and what was not made once the job is suspended', () => {
  const { budget: many, saved } = budget(1_000);
  for (let i = 0; i < 101; i++) many.spend(a);
  assert.deepEqual(saved, [
    { confirmed: 99, workloads: { a: 100, default: 99 } },
    { confirmed: 99, workloads: { a: 200, default: 99 } },
  ]);
  many.forgetNoted();
  assert.deepEqual(many.record(true), { confirmed: 0, workloads: { a: 101, default: 0 } });
  const { budget: ours, saved: none } = budget(Infinity);
  ours.spend(a);
  assert.deepEqual(none, [], 'keys that the kit wrote have no bound to go beyond');
  const { budget: dry, saved: ofDry } = budget(5, { dryRun: true });
  dry.spend(a);
  assert.deepEqual(ofDry, []);
  dry.reset();
  assert.deepEqual(dry.record(false), { confirmed: 0, workloads: {} });
});

test('a job that continues another one has what that left', () => {
  const { budget: left } = budget(5, { deletes: 3 }, { confirmed: 3, workloads: { a: 4 } });
  assert.equal(left.allows(rest), false);
  assert.equal(left.allows(a), true);
  left.spend(a);
  assert.equal(left.allows(a), false);
});
