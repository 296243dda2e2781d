/** The limits of a plan against the memory that the process may have. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryLimit, memoryProblem } from '../../../src/plan/memory.js';
import type { Plan } from '../../../src/plan/plan.js';
import { scratch } from '../../support/plans.js';

const MIB = 2 ** 20;

test('the least limit of the cgroup and those above it counts, in both versions', (t) => {
  const root = scratch(t);
  const write = (path: string, text: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write('own', '0::/system.slice/shadow-proxy.service\n');
  assert.equal(memoryLimit(join(root, 'own'), root), null);
  write('system.slice/shadow-proxy.service/memory.max', 'max\n');
  assert.equal(memoryLimit(join(root, 'own'), root), null);
  write('system.slice/memory.max', `${512 * MIB}\n`);
  assert.deepEqual(memoryLimit(join(root, 'own'), root), {
    bytes: 512 * MIB,
    file: join(root, 'system.slice/memory.max'),
  });
  write('own1', '11:cpu:/\n9:memory:/docker/abc\n');
  write('memory/docker/abc/memory.limit_in_bytes', '9223372036854771712\n');
  assert.equal(memoryLimit(join(root, 'own1'), root), null);
  write('memory/docker/abc/memory.limit_in_bytes', `${300 * MIB}\n`);
  assert.equal(memoryLimit(join(root, 'own1'), root)?.bytes, 300 * MIB);
  assert.equal(memoryLimit(join(root, 'none'), root), null);
});

test('limits that allow more than the process may have are named', () => {
  const plan = { limits: { totalClientBytes: 256 * MIB, queueBytes: 64 * MIB } } as Plan;
  const limit = { bytes: 1024 * MIB, file: 'memory.max' };
  assert.equal(memoryProblem(plan, 1, null), null);
  assert.equal(memoryProblem(plan, 1, limit), null);
  assert.equal(memoryProblem(plan, 2, limit), null);
  assert.match(
    memoryProblem(plan, 3, limit)!,
    /^allow 1344 MiB, more than the memory limit of this process, 1024 MiB .*memory\.max.*each of 3 shards totalClientBytes \(256 MiB\) and queueBytes \(64 MiB\); lower these/,
  );
});
