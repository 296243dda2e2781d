/**
 * The case that this project comes from: twelve Redis masters to three KeyDB, with live writes. Backfilled, verified,
 * cut over, rolled back, cut over again. `CLUSTER_KEYS` says how many keys (1,000,000 when absent).
 *
 * Needs real servers: twelve Redis masters and three KeyDB with a million keys.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { equalRanges } from '../../../src/local/start-cluster.js';
import { tagOf } from '../../../src/route/slot.js';
import { withClusterRig } from '../../support/cluster-move.js';
import type { ClusterRig } from '../../support/cluster-rig.js';

const KEYS = Number(process.env.CLUSTER_KEYS ?? 1_000_000);
const BATCH = 1_000;
/** KeyDB's ranges are unions of four of Redis's: twelve shards. */
const SOURCE = equalRanges(12);
const TARGET = [0, 4, 8].map((first) => [[SOURCE[first][0][0], SOURCE[first + 3][0][1]] as const]);

/** Fills each master with its share, in slots of its own. */
async function fill(rig: ClusterRig): Promise<void> {
  const share = Math.ceil(KEYS / SOURCE.length);
  await Promise.all(
    rig.source.masters.map(async ({ port }, i) => {
      const redis = new Redis(port);
      const [[first, last]] = SOURCE[i];
      const tags = Array.from({ length: 16 }, (_, n) => tagOf(Math.floor(first + (n * (last - first)) / 15)));
      for (let done = 0; done < share; done += BATCH) {
        const tag = tags[(done / BATCH) % tags.length];
        const pairs = Array.from({ length: Math.min(BATCH, share - done) }, (_, n) => [
          `{${tag}}:${done + n}`,
          `value ${done + n}`,
        ]);
        await redis.mset(...pairs.flat());
      }
      redis.disconnect();
    }),
  );
}

test(`twelve masters to three KeyDB, ${KEYS.toLocaleString('en-US')} keys, live writes: over, back, over`, async (t) => {
  const options = { source: { masters: 12, ranges: SOURCE }, target: { masters: 3, ranges: TARGET }, alike: false };
  await withClusterRig(options, async (rig) => {
    await fill(rig);
    const client = rig.client();
    let written = 0;
    let stopped = false;
    const writing = (async (): Promise<void> => {
      for (let n = 0; !stopped; n++) {
        await Promise.all([client.incr(`live:${n % 1000}`), client.hset(`h:${n % 500}`, String(n % 7), String(n))]);
        written += 2;
      }
    })();
    const timed = async (what: string, work: () => Promise<unknown>): Promise<void> => {
      const [began, before] = [performance.now(), written];
      await work();
      t.diagnostic(
        `${what}: ${((performance.now() - began) / 1000).toFixed(1)} s, ${written - before} writes of clients meanwhile`,
      );
    };
    await rig.changeStage('dualwrite');
    await timed('backfill', async () => {
      for (const job of await rig.run({ kind: 'backfill' }, 900_000))
        assert.deepEqual([job.state, job.failed], ['done', 0]);
    });
    await rig.changeStage('shadow');
    await timed('verify', async () => {
      for (const job of await rig.run({ kind: 'verify' }, 900_000))
        assert.deepEqual([job.state, job.differences], ['done', {}]);
    });
    for (const stage of ['live', 'shadow', 'live'] as const) await timed(stage, () => rig.changeStage(stage));
    stopped = true;
    await writing;
    await rig.settled(60_000);
    for (const job of await rig.run({ kind: 'verify' }, 900_000))
      assert.deepEqual([job.state, job.differences], ['done', {}]);
    const { pairs, mismatches } = rig.compared();
    t.diagnostic(`${rig.shards.length} shards, ${written} writes of clients, ${pairs} pairs compared`);
    assert.deepEqual(mismatches, {});
    const counted = await Promise.all(
      Array.from({ length: 1000 }, async (_, n) => Number((await client.get(`live:${n}`)) ?? 0)),
    );
    assert.equal(
      counted.reduce((a, b) => a + b),
      written / 2,
      'every increment is counted once',
    );
  });
});
