/** Found by the test of twelve shards: what an operator had confirmed for foreign keys was spent on expired ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const EXPIRING = 10;

test('Keys that have expired since the scan met them do not use up the deletes that were confirmed', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    kept.write(kept.target, 'foreign', 'value');
    const { router, permissions } = kept.proxy.parts!;
    permissions.set(router.default, { deletable: 1, mayOverwrite: false });
    for (let i = 0; i < EXPIRING; i++) await client.ask(`SET e${i} value PX 400`);
    kept.startJob({ kind: 'backfill', limits: { keysPerSecond: 10 } });
    await kept.until(() => kept.proxy.condition()?.job?.state === 'done', 'the job is done');
    const { deleted, keptForeign, copied } = kept.proxy.condition()!.job!;
    assert.deepEqual([deleted, keptForeign], [1, 0]);
    assert.ok(copied < EXPIRING, 'keys have expired before they were copied');
    assert.deepEqual(kept.values('0 foreign'), [null, null]);
  }));
