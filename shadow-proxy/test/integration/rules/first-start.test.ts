/**
 * What both servers hold before the proxy ever ran is not known to be equal, whatever stage the plan begins in.
 *
 * Needs real servers: DBSIZE and run IDs of servers that held keys before the first start.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NOT_COPIED } from '../../../src/telemetry/snapshot.js';
import { ask, ended, job } from '../../support/jobs.js';
import { startOn } from '../../support/rig.js';
import { withServers } from '../../support/servers.js';
import { clientsOf } from '../../support/clients.js';
import { withScene } from './scene.js';

const suspects = ({
  shard,
}: {
  shard: { snapshot(): { workloads: readonly { suspect: string | null }[] } };
}): (string | null)[] => shard.snapshot().workloads.map(({ suspect }) => suspect);

async function fill(source: Parameters<Parameters<typeof withServers>[0]>[0]['source']): Promise<void> {
  const { client, closeAll } = clientsOf(() => source.port);
  await client({ db: 3 }).mset(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k:${i}`, i])));
  closeAll();
}

for (const stage of ['dualwrite', 'shadow'] as const) {
  test(`a plan that begins in ${stage} on a source with keys begins as not copied, until a backfill`, async () => {
    await withServers(async ({ source, target }) => {
      await fill(source);
      const rig = await startOn({
        source,
        target,
        workloads: [{ name: 'a', keys: ['k:*'], stage }],
        default: { stage: 'off' },
      });
      try {
        assert.deepEqual(suspects(rig), [NOT_COPIED, null]);
        assert.deepEqual(
          rig.shard.snapshot().workloads.map(({ clean }) => clean),
          [false, true],
        );
        // A key that is missing because of it is no mismatch, and nothing is copied without being asked for.
        await rig.client({ db: 3 }).get('k:1');
        // Nothing may be copied: it would have begun by now.
        await sleep(1_500);
        assert.deepEqual([rig.shard.snapshot().mismatches, job(rig)], [{}, null]);
        ask(rig, { kind: 'backfill' });
        await ended(rig);
        await rig.assertEqual();
      } finally {
        await rig.stop();
      }
    });
  });
}

test('it is still known where the first start has failed', async () => {
  await withServers(async ({ source, target }) => {
    await fill(source);
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    await withScene({}, async (scene) => {
      await scene.stopShard();
      await fill(scene.source);
      await assert.rejects(startOn({ source, target, stateDir: `${scene.shard.stateDir}/other`, port }));
      const rig = await startOn({ source, target, stateDir: `${scene.shard.stateDir}/other` });
      const found = suspects(rig);
      await rig.stop();
      assert.deepEqual(found, [NOT_COPIED]);
      // Where a state is, the servers were equal when it began.
      await scene.startShard();
      assert.deepEqual(suspects(scene), [null]);
    });
    other.close();
  });
});

test('with both empty, or believed to be alike, it begins clean', async () => {
  await withServers(async ({ source, target }) => {
    const empty = await startOn({ source, target });
    assert.deepEqual(suspects(empty), [null]);
    await empty.stop();
    await fill(source);
    const alike = await startOn({ source, target, alike: true });
    assert.deepEqual(suspects(alike), [null]);
    await alike.stop();
  });
});
