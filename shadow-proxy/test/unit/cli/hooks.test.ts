/** What people read of hooks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hooksRun, hooksToRun } from '../../../src/cli/hooks.js';

test('a dry run names each hook with its program, and a change says how each ended', () => {
  const hook = { name: 'announce', when: 'before', command: ['/bin/announce', '--to', 'ops'] } as const;
  assert.deepEqual(hooksToRun([{ ...hook, workloads: null, deadlineMs: 10_000 }]), [
    'hook announce would run before the change: /bin/announce --to ops',
  ]);
  assert.deepEqual(
    hooksRun([
      { name: 'announce', when: 'before', ms: 1_234, problem: null },
      { name: 'tell', when: 'after', ms: 5, problem: 'exit code 7: no' },
    ]),
    ['hook announce ran before the change, 1,234 ms', 'hook tell ran after the change, 5 ms: FAILED: exit code 7: no'],
  );
  assert.deepEqual([hooksToRun(), hooksRun()], [[], []]);
});
