/** What is counted for each workload. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Router } from '../../../src/route/router.js';
import { Counters, countUnsupported, increment, WorkloadCounters } from '../../../src/telemetry/workload-counters.js';

const router = new Router(
  ['a', 'b'].map((name) => ({ name, keys: [`${name}:*`], stage: 'shadow', percent: 100 })),
  { stage: 'shadow', percent: 100 },
);
const [a, b, rest] = router.workloads;

test('a command that hid its keys is counted for every workload, but not for keys of other shards', () => {
  const counters = new Counters(router);
  counters.addHidden();
  counters.addHidden();
  assert.deepEqual(
    [a, b, rest, router.otherShards].map((workload) => counters.of(workload).spanning),
    [2, 2, 2, 0],
  );
});

test('a command that spans slots is counted once for each entry', () => {
  const counters = new Counters(router);
  counters.addSpanning([a, rest, a]);
  counters.addSpanning([]);
  assert.deepEqual(
    [a, b, rest].map((workload) => counters.of(workload).spanning),
    [2, 0, 1],
  );
});

test('calls of a form that one server lacks are counted for up to 500 forms, and its errors for the client', () => {
  const counters = new WorkloadCounters();
  for (let form = 0; form < 501; form++) countUnsupported(counters, `form ${form}`, 'target', form < 3);
  countUnsupported(counters, 'form 0', 'target', false);
  countUnsupported(counters, 'form 1', 'target', true);
  countUnsupported(counters, 'form 600', 'target', true);
  assert.equal(counters.unsupported.size, 500);
  assert.deepEqual(counters.unsupported.get('form 0'), { lacks: 'target', calls: 2 });
  assert.deepEqual(
    [...counters.newErrors],
    [
      ['form 0', 1],
      ['form 1', 2],
      ['form 2', 1],
    ],
  );
  increment(counters.newErrors, 'form 0', 5);
  assert.equal(counters.newErrors.get('form 0'), 6);
});
