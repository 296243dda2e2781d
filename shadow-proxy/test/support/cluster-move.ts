/** A whole migration of a cluster, in small. */
import assert from 'node:assert/strict';
import { text } from '../../src/resp/decode.js';
import { askNode } from '../../src/local/start-cluster.js';
import { ClusterRig, type ClusterRigOptions } from './cluster-rig.js';

export async function withClusterRig(
  options: ClusterRigOptions,
  body: (rig: ClusterRig) => Promise<void>,
): Promise<void> {
  const rig = await ClusterRig.start(options);
  try {
    await body(rig);
  } finally {
    await rig.stop();
  }
}

const LARGE = { limits: { largeKeyElements: 100, largeKeyBytes: 20_000, drainMs: 5_000 } };

/** Strings, hashes with and without expiry, a large list, a large string. */
async function fill(rig: ClusterRig, prefix: string): Promise<void> {
  const client = rig.client();
  for (let i = 0; i < 200; i++) {
    await client.set(`${prefix}:s${i}`, `value ${i}`);
    await client.hset(`${prefix}:h${i}`, { a: String(i), b: 'x' });
    if (i % 3 === 0) await client.pexpire(`${prefix}:h${i}`, 600_000);
  }
  for (let i = 0; i < 10; i++) {
    await client.rpush(`${prefix}:large${i}`, ...Array.from({ length: 400 }, (_, n) => `element ${n}`));
    await client.set(`${prefix}:wide${i}`, 'x'.repeat(40_000));
  }
}

/** Copies, writes twice, verifies, sends clients to the target and back, and flushes one shard. */
export async function moveThere(options: ClusterRigOptions): Promise<void> {
  await withClusterRig({ ...options, alike: false, plan: { ...LARGE } }, async (rig) => {
    await fill(rig, 'before');
    await rig.changeStage('dualwrite');
    await fill(rig, 'meanwhile');
    const copied = await rig.run({ kind: 'backfill' });
    for (const job of copied)
      assert.deepEqual([job.state, job.failed, job.listed], ['done', 0, {}], JSON.stringify(job));
    await fill(rig, 'after');
    await rig.settled();
    const verified = await rig.run({ kind: 'verify' });
    for (const job of verified) assert.deepEqual([job.state, job.failed, job.differences], ['done', 0, {}]);
    const held = await Promise.all((await rig.mastersOf('source')).map((node) => askNode(node, 'DBSIZE')));
    const keys = held.reduce((sum, reply) => sum + Number(text(reply)), 0);
    assert.equal(keys, 3 * 420);
    const sizes = await Promise.all(rig.plan.shards.map(async (_, at) => Number(text(await rig.ask(['DBSIZE'], at)))));
    assert.equal(
      sizes.reduce((a, b) => a + b),
      keys,
      `each shard counts its own: ${sizes.join(', ')}`,
    );
    assert.deepEqual(await rig.differences(), []);
    // Clients go to the target, and back.
    await rig.changeStage('shadow');
    await rig.changeStage('live');
    await fill(rig, 'live');
    const client = rig.client();
    assert.equal(await client.get('before:s7'), 'value 7');
    const live = await Promise.all(rig.plan.shards.map(async (_, at) => Number(text(await rig.ask(['DBSIZE'], at)))));
    assert.equal(
      live.reduce((a, b) => a + b),
      4 * 420,
      'as many at the target',
    );
    await rig.settled();
    await rig.changeStage('shadow');
    // FLUSHALL takes this shard's keys, at both sides, and no other's.
    assert.equal(text(await rig.ask(['FLUSHALL'], 1)), 'OK');
    assert.equal(text(await rig.ask(['DBSIZE'], 1)), '0');
    await rig.settled();
    assert.deepEqual(await rig.differences(), []);
    assert.ok(Number(text(await rig.ask(['DBSIZE'], 0))) > 0);
    for (const shard of rig.shards) assert.deepEqual(shard.snapshot().mismatches, {});
  });
}
