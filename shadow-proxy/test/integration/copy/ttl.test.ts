/**
 * Times to live of copies: where they are compared, and when a target reads its append-only file again.
 *
 * Needs real servers: a KeyDB that reads its append-only file again, and the TTLs that it then has.
 */
import { lifeFromPttl } from '../../../src/resp/key-life.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { livesDiffer } from '../../../src/copy/verify/verifier.js';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig } from '../../support/rig.js';
import { until } from '../../support/shard.js';
import { needs } from '../../support/needs.js';

test('times to live differ where no delay of the look explains it, and are looked at again where one might', () => {
  const SURE = { kind: 'ttl', sure: true };
  const UNSURE = { kind: 'ttl', sure: false };
  for (const [authority, mirror, lagMs, expected] of [
    [1000, 1050, 0, null],
    [1000, 1051, 0, SURE],
    [1000, 949, 0, SURE],
    // The mirror was read later, so it has less left: never more.
    [1000, 955, 40, null],
    [1000, 1051, 40, SURE],
    [1000, 940, 40, UNSURE],
    [1000, 1030, 40, UNSURE],
    [1000, 940, 200, UNSURE],
    [1000, 749, 200, SURE],
    [-1, -1, 0, null],
    [-1, 1000, 500, SURE],
    [1000, -1, 500, SURE],
    // The key expired after its value was read: no time was left.
    [-2, -2, 0, null],
    [-2, 40, 0, null],
    [-2, 1000, 0, SURE],
    [-2, -1, 0, SURE],
    [-1, -2, 0, SURE],
  ] as const) {
    assert.deepEqual(
      livesDiffer(lifeFromPttl(authority), lifeFromPttl(mirror), lagMs),
      expected,
      `${authority} and ${mirror} within ${lagMs} ms`,
    );
  }
});

test('a TTL does not start again from its full length when KeyDB reads its append-only file', async (t) => {
  if (!(await needs(t, 'target<7.0'))) return;
  await withRig({ default: { stage: 'off' } }, async (rig) => {
    const [source, target] = [rig.client({ of: rig.source }), rig.client({ of: rig.target })];
    await target.config('SET', 'appendonly', 'yes');
    await until(async () => /aof_rewrite_in_progress:0\r/.test(await target.info('persistence')));
    await source.hset('hash', 'a', 1);
    await source.rpush('list', 'a');
    await source.set('string', 'a');
    const keys = ['hash', 'list', 'string'];
    for (const key of keys) await source.pexpire(key, 60_000);
    await rig.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    ask(rig, { kind: 'backfill' });
    await ended(rig);
    assert.deepEqual([job(rig).state, job(rig).copied, job(rig).failed], ['done', 3, 0]);
    // A TTL that began again would be longer by this much.
    await sleep(1_000);
    await target.call('DEBUG', 'LOADAOF');
    for (const key of keys) {
      const [right, there] = [await source.pttl(key), await target.pttl(key)];
      assert.ok(there > 0 && there < right + 500, `${key}: ${there} ms are left on the target, ${right} on the source`);
    }
  });
});
