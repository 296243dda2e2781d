/** Found by reading: the status named a class that the plan did not give. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('The status shows the class that the plan gives to default', () =>
  KeptWorld.run(
    async (kept) => {
      await kept.pass(10);
      const { workloads } = kept.proxy.snapshot()!;
      assert.deepEqual(
        workloads.map((workload) => [workload.name, workload.class]),
        [['default', 'read-mostly']],
      );
    },
    { default: { stage: 'shadow', class: 'read-mostly' } },
  ));
