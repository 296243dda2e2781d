/** What the kit may do with keys on the target. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Permissions } from '../../../src/copy/foreign/permissions.js';
import { Router } from '../../../src/route/router.js';
import type { Stage } from '../../../src/route/stage.js';

const router = (stage: Stage, percent = 100): Router =>
  new Router([{ name: 'a', keys: ['a:*'], stage, percent }], { stage: 'off', percent: 100 });

test('without a durable admission nothing may be deleted, and a copy may overwrite foreign keys', () => {
  const { workloads } = router('shadow');
  const permissions = new Permissions({ workloads });
  assert.deepEqual(permissions.of(workloads[0]), { deletable: 0, mayOverwrite: true });
  permissions.set(workloads[0], { deletable: 3, mayOverwrite: false });
  assert.deepEqual(permissions.of(workloads[0]), { deletable: 3, mayOverwrite: false });
  assert.deepEqual(permissions.of(workloads[1]), { deletable: 0, mayOverwrite: true }, 'each workload has its own');
});

test('foreign keys are possible once commands reach the target, until the kit wrote every key there', () => {
  const may = (stage: Stage, deletable = 0, percent = 100): boolean => {
    const of = router(stage, percent);
    const permissions = new Permissions(of);
    for (const each of of.workloads) permissions.set(each, { deletable, mayOverwrite: true });
    return permissions.mayHoldForeignKeys;
  };
  assert.equal(may('off'), false);
  assert.equal(may('dualwrite'), true);
  assert.equal(may('complete'), true);
  assert.equal(may('live', 0, 10), true);
  assert.equal(may('dualwrite', Infinity), false);
  assert.equal(may('dualwrite', 1_000_000), true, 'as many as an operator confirmed are not all');
  const half = router('shadow');
  const permissions = new Permissions(half);
  permissions.set(half.workloads[0], { deletable: Infinity, mayOverwrite: false });
  assert.deepEqual(
    [...half.workloads.map((each) => permissions.isOurs(each)), permissions.mayHoldForeignKeys],
    [true, false, true],
  );
});
