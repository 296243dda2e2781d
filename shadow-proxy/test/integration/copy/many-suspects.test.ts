/**
 * Thousands of suspects that cannot be repaired: what they cost is bounded in commands, not in time.
 *
 * Needs real servers: how many commands a KeyDB gets for thousands of refused repairs, by its INFO.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig, type Rig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

const KEYS = 3_000;
/** What copies write with. */
const WRITES = ['set', 'mset', 'restore', 'unlink'];

/** How often the source was asked for a value, of copies and of verifications. */
async function reads({ client, source }: Rig): Promise<number> {
  const stats = await client({ of: source }).info('commandstats');
  return Number(/^cmdstat_dump:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
}

test('thousands of suspects that the mirror refuses cost a few commands each, and are repaired when it takes them', async () => {
  await withRig({ default: { stage: 'dualwrite' } }, async (rig) => {
    const source = rig.client({ of: rig.source }).pipeline();
    for (let i = 0; i < KEYS; i++) source.set(`key:${i}`, `value ${i}`);
    await source.exec();
    const target = rig.client({ of: rig.target });
    await target.call('ACL', 'SETUSER', 'default', ...WRITES.map((name) => `-${name}`));
    ask(rig, { kind: 'backfill' });
    await ended(rig, 60_000);
    assert.deepEqual([job(rig).failed, rig.shard.snapshot().suspects.total], [KEYS, KEYS]);

    // Each is tried once; then some of them, less and less often.
    let before = 0;
    await until(async () => {
      const last = before;
      before = await reads(rig);
      await sleep(500);
      return before > 2 * KEYS - 100 && before - last < 200;
    });
    assert.ok(before < 3 * KEYS, `${before} reads of ${KEYS} keys, that of the backfill among them`);
    // How many are tried in a time is what is tested.
    await sleep(5_000);
    const after = await reads(rig);
    const tried = after - before;
    assert.ok(tried < 500, `${tried} reads in 5 s`);

    ask(rig, { kind: 'verify' });
    await ended(rig, 60_000);
    const looked = (await reads(rig)) - after;
    assert.deepEqual([job(rig).unsure, job(rig).verified], [KEYS, KEYS]);
    assert.ok(looked < 8 * KEYS, `${looked} reads of ${KEYS} suspects`);

    await target.call('ACL', 'SETUSER', 'default', ...WRITES.map((name) => `+${name}`));
    await until(() => rig.shard.snapshot().suspects.total === 0, 60_000);
    await rig.assertEqual();
  });
});
