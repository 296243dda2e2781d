/** Existing data moves while clients go on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobSnapshot } from '../../src/control/status.js';
import { needsKeydb } from '../support/servers.js';
import { withRig, type Rig } from '../support/rig.js';
import { until } from '../support/shard.js';

const request = { kind: 'backfill', workloads: null, repair: false, dryRun: false, sample: 100, limits: {}, automatic: false } as const;
const job = ({ shard }: Rig): JobSnapshot => shard.snapshot().job!;
const ended = (rig: Rig, ms = 30_000): Promise<void> => until(() => job(rig).state !== 'running', ms, () => JSON.stringify(job(rig)));

/** Keys of every type in three databases, before the proxy is there for them. */
async function fill(rig: Rig, count: number): Promise<void> {
  for (const db of [0, 3, 9]) {
    const source = rig.client({ of: rig.source, db });
    const pipeline = source.pipeline();
    for (let i = 0; i < count; i++) {
      pipeline.set(`s:${i}`, 'v'.repeat(i % 200));
      pipeline.hset(`h:${i}`, { a: i, b: 'x'.repeat(i % 90) });
      pipeline.rpush(`l:${i}`, 'one', i, 'three');
      pipeline.sadd(`set:${i}`, i, i + 1, 'm');
      pipeline.zadd(`z:${i}`, i / 3, 'm', -1, 'n');
      pipeline.xadd(`x:${i}`, '1-1', 'f', 'v');
      if (i % 3 === 0) for (const key of ['s', 'h', 'l', 'set', 'z', 'x']) pipeline.pexpire(`${key}:${i}`, 600_000 + i);
    }
    await pipeline.exec();
  }
}

test('a backfill copies every key of every type and database, with its time to live, and ends the doubt', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    await fill(rig, 60);
    await rig.client({ of: rig.target }).set('stale', 'only here');
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    assert.match(String(rig.shard.snapshot().workloads[0].suspect), /not copied/);
    rig.shard.shard.startJob(request);
    await ended(rig);
    const { state, copied, failed, seen } = job(rig);
    assert.deepEqual({ state, copied, failed, seen }, { state: 'done', copied: 1081, failed: 0, seen: 1080 });
    await rig.assertEqual();
  });
});
