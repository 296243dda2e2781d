/** Found in profile `clusters` (seed 920): a scan missed keys whose slot was at another node, and was believed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLUSTER_PLAN, clusterOf } from '../../kept/cluster.js';
import { KeptWorld } from '../../kept/world.js';
import { SLOTS, slotOf } from '../../server/slots.js';
import type { Cluster } from '../../world/cluster.js';

/** In the lower half of the slots, which this shard has; in two of them. */
const [KEY, OTHER] = ['a', 'b', 'c', 'd', 'e'].filter((name) => slotOf(name) < SLOTS / 2);

for (const isNoticed of [true, false])
  test(`A copy of all keys waits for a slot that another node has ${isNoticed ? 'for a while' : 'since a moment'}`, () => {
    let cluster: Cluster;
    return KeptWorld.run(
      async (kept) => {
        for (const key of [KEY, OTHER]) kept.bypass(kept.source, `SET ${key} value`);
        assert.ok(cluster.moveSlot(slotOf(KEY), 1, 60_000));
        if (isNoticed) await kept.pass(500);
        kept.startJob({ kind: 'backfill' });
        await kept.pass(2_000);
        assert.equal(kept.isClean, false);
        cluster.settle();
        await kept.until(() => kept.proxy.condition()!.job?.state === 'done' && kept.isClean, 'all keys are copied');
        assert.deepEqual(kept.values(`0 ${KEY}`), ['value', 'value']);
      },
      CLUSTER_PLAN,
      (kept) => (cluster = clusterOf(kept)),
    );
  });
