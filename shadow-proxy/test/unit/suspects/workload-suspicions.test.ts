/** Workloads that are suspect as a whole. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Router } from '../../../src/route/router.js';
import { WorkloadSuspicions } from '../../../src/suspects/workload-suspicions.js';

const router = new Router([{ name: 'a', keys: ['a:*'], stage: 'shadow', percent: 100 }], {
  stage: 'shadow',
  percent: 100,
});
const [a, rest] = router.workloads;

test('a workload that becomes suspect is counted once, and its first reason stays', () => {
  const suspicions = new WorkloadSuspicions(router);
  assert.deepEqual([suspicions.of(a), suspicions.times(a), suspicions.last(a), suspicions.count], [null, 0, null, 0]);
  suspicions.mark(a, 'first');
  suspicions.mark(a, 'second');
  suspicions.mark(rest, 'third');
  assert.deepEqual(
    [suspicions.of(a), suspicions.times(a), suspicions.last(a), suspicions.count],
    ['first', 2, 'second', 2],
  );
  suspicions.clear(a);
  suspicions.clear(a);
  assert.deepEqual([suspicions.of(a), suspicions.times(a), suspicions.count], [null, 2, 1]);
  suspicions.clear(rest);
  assert.equal(suspicions.count, 0);
});

test('keys of other shards are never suspect as a whole', () => {
  const suspicions = new WorkloadSuspicions(router);
  suspicions.mark(router.otherShards, 'lost');
  assert.deepEqual([suspicions.of(router.otherShards), suspicions.count], [null, 0]);
});
