/** The clients of a plan against the file descriptors that the process may open. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { descriptorLimit, descriptorProblem } from '../../../src/plan/descriptors.js';
import type { Plan } from '../../../src/plan/plan.js';
import { scratch } from '../../support/plans.js';

test('the soft limit counts; without one, or where the system does not say it, there is none', (t) => {
  const file = join(scratch(t), 'limits');
  const write = (soft: string): void =>
    writeFileSync(file, `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}   1048576   files\n`);
  write('65536');
  assert.equal(descriptorLimit(file), 65_536);
  write('unlimited');
  assert.equal(descriptorLimit(file), null);
  assert.equal(descriptorLimit('/no/such/file'), null);
});

test('limits that allow more clients than descriptors are named', () => {
  const plan = { limits: { clients: 10_000 }, sentinel: null } as Plan;
  assert.equal(descriptorProblem(plan, 3, null), null);
  assert.equal(descriptorProblem(plan, 1, 10_512), null);
  assert.match(
    descriptorProblem(plan, 2, 20_000)!,
    /^allow 10000 clients for each of 2 shards: with 512 .* is 20512 file descriptors, and this process may open 20000; lower limits\.clients/,
  );
  const sentinel = {} as Plan['sentinel'];
  assert.equal(descriptorProblem({ ...plan, sentinel }, 1, 20_512), null);
  assert.match(
    descriptorProblem({ ...plan, sentinel }, 1, 20_511)!,
    /^allow 10000 clients for each of 1 shards, and for the Sentinel: with 512 .* is 20512 file descriptors/,
  );
});
