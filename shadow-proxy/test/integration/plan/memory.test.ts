/**
 * The limits of a plan against the memory that the process may have.
 *
 * Needs real processes: the memory limit of a cgroup.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { scratch, smallPlan } from '../../support/plans.js';
import { lacking } from '../../support/needs.js';
import { PROGRAMS } from '../../support/programs.js';
import { until } from '../../support/shard.js';

const MIB = 2 ** 20;

/** A cgroup of version 1 with so much memory, below that of this process; null where this user may make none. */
function memoryCgroup(t: TestContext, bytes: number): string | null {
  try {
    const [, own] = /^\d+:memory:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))!;
    const folder = join('/sys/fs/cgroup/memory', own, `check-${process.pid}`);
    mkdirSync(folder);
    t.after(async () => {
      // Its last process may still be leaving.
      await until(() => {
        try {
          rmdirSync(folder);
          return true;
        } catch {
          return false;
        }
      });
    });
    writeFileSync(join(folder, 'memory.limit_in_bytes'), String(bytes));
    return folder;
  } catch {
    return null;
  }
}

test('--check refuses limits that the cgroup has no room for', (t) => {
  const cgroup = memoryCgroup(t, 1024 * MIB);
  if (cgroup === null) return t.skip(lacking('memory-cgroup'));
  const file = join(scratch(t), 'plan.yaml');
  const checked = (totalClientBytes: string): { status: number | null; stderr: string } => {
    writeFileSync(file, stringify({ ...smallPlan(), limits: { totalClientBytes, queueBytes: '64MiB' } }));
    const inside = 'echo $$ > "$0/cgroup.procs" && exec "$@"';
    return spawnSync(
      'sh',
      ['-c', inside, cgroup, process.execPath, PROGRAMS['shadow-proxy'], '--plan', file, '--check'],
      {
        encoding: 'utf8',
      },
    );
  };
  assert.equal(checked('576MiB').status, 0);
  const { status, stderr } = checked('577MiB');
  assert.equal(status, 2);
  assert.match(
    stderr,
    /plan\.yaml: limits allow 1025 MiB, more than the memory limit of this process, 1024 MiB \(.*memory\.limit_in_bytes\)/,
  );
});
