/** The limits of a plan against the memory that the process may have. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { memoryLimit, memoryProblem } from '../../../src/plan/memory.js';
import type { Plan } from '../../../src/plan/plan.js';
import { scratch, smallPlan } from '../../support/plans.js';

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
    /^allow 1344 MiB, more than the 1024 MiB .*memory\.max.*each of 3 shards totalClientBytes \(256 MiB\) and queueBytes \(64 MiB\); lower these/,
  );
});

/** A cgroup of version 1 with so much memory, below that of this process; null where this user may make none. */
function memoryCgroup(t: TestContext, bytes: number): string | null {
  try {
    const [, own] = /^\d+:memory:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))!;
    const folder = join('/sys/fs/cgroup/memory', own, `check-${process.pid}`);
    mkdirSync(folder);
    t.after(async () => {
      // Its last process may still be leaving.
      await sleep(200);
      rmdirSync(folder);
    });
    writeFileSync(join(folder, 'memory.limit_in_bytes'), String(bytes));
    return folder;
  } catch {
    return null;
  }
}

test('--check refuses limits that the cgroup has no room for', (t) => {
  const cgroup = memoryCgroup(t, 1024 * MIB);
  if (cgroup === null) return t.skip('this user may make no memory cgroup of version 1');
  const file = join(scratch(t), 'plan.yaml');
  const main = fileURLToPath(new URL('../../../src/main.js', import.meta.url));
  const checked = (totalClientBytes: string): { status: number | null; stderr: string } => {
    writeFileSync(file, stringify({ ...smallPlan(), limits: { totalClientBytes, queueBytes: '64MiB' } }));
    const inside = 'echo $$ > "$0/cgroup.procs" && exec "$@"';
    return spawnSync('sh', ['-c', inside, cgroup, process.execPath, main, '--plan', file, '--check'], {
      encoding: 'utf8',
    });
  };
  assert.equal(checked('576MiB').status, 0);
  const { status, stderr } = checked('577MiB');
  assert.equal(status, 2);
  assert.match(
    stderr,
    /plan\.yaml: limits allow 1025 MiB, more than the 1024 MiB that this process may have \(.*memory\.limit_in_bytes\)/,
  );
});
