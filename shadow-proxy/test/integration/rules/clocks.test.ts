/**
 * Rule 8, where the two servers' clocks differ: what has a moment of expiry ends on both when it ends on the authority.
 *
 * Needs real processes: servers whose clocks differ, by a library that is loaded before libc.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argument } from '../../../src/resp/encode.js';
import { settableClock } from '../../support/clock.js';
import { redisSince } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { withRig, type Rig } from '../../support/rig.js';
import { withScene } from './scene.js';

const OFF_S = 60;
const LEFT_MS = 100_000;
/** Far less than the clocks are off, and more than a busy machine takes for the questions. */
const TOLERANCE_MS = 500;
const SCRIPT = "redis.call('SET', KEYS[1], 'v') redis.call('PEXPIREAT', KEYS[1], ARGV[1]) return 1";

/** Every way to give a key a moment of expiry. */
function dated(at: number): Argument[][] {
  const seconds = Math.round(at / 1000);
  const names = ['expireat', 'expireat-xx', 'pexpireat', 'getex-exat', 'getex-pxat', 'in-multi'];
  return [
    ...names.map((name): Argument[] => ['SET', name, 'v']),
    ['PEXPIRE', 'expireat-xx', 1_000_000],
    ['EXPIREAT', 'expireat', seconds],
    ['EXPIREAT', 'expireat-xx', seconds, 'XX'],
    ['PEXPIREAT', 'pexpireat', at],
    ['GETEX', 'getex-exat', 'EXAT', seconds],
    ['GETEX', 'getex-pxat', 'PXAT', at],
    ['SET', 'set-exat', 'v', 'EXAT', seconds],
    ['SET', 'set-pxat', 'v', 'NX', 'PXAT', at],
    ['SET', 'set-ex', 'v', 'PX', LEFT_MS],
    ['EVAL', SCRIPT, 1, 'script', at],
    ['MULTI'],
    ['PEXPIREAT', 'in-multi', at],
    ['SET', 'set-in-multi', 'v', 'PXAT', at],
    ['EXEC'],
    ['SET', 'past', 'v'],
    ['PEXPIREAT', 'past', at - 2 * LEFT_MS],
  ];
}
const NAMES = [
  'expireat',
  'expireat-xx',
  'pexpireat',
  'getex-exat',
  'getex-pxat',
  'set-exat',
  'set-pxat',
  'set-ex',
  'script',
  'in-multi',
  'set-in-multi',
  'restored',
];

async function assertEqualTimes({ client, source, target }: Rig): Promise<void> {
  const clients = [client({ of: source }), client({ of: target })];
  await Promise.all(clients.map((each) => each.ping()));
  const since = performance.now();
  const [here, there] = await Promise.all(clients.map((each) => Promise.all(NAMES.map((name) => each.pttl(name)))));
  // Between two answers no more time passed than all of them took.
  const tolerated = TOLERANCE_MS + performance.now() - since;
  const apart = NAMES.flatMap((name, i) =>
    here[i] > LEFT_MS / 2 && Math.abs(here[i] - there[i]) <= tolerated ? [] : [`${name}: ${here[i]} ≠ ${there[i]}`],
  );
  assert.deepEqual(apart, []);
}

for (const stage of ['shadow', 'live'] as const) {
  for (const off of [OFF_S, -OFF_S]) {
    test(`the target's clock is ${off} s off, in ${stage}`, async (t) => {
      const fake = await settableClock(t);
      if (fake === null) return;
      fake.set(off);
      await withRig({ default: { stage }, servers: { target: { env: fake.env } } }, async (rig) => {
        await until(() => Math.abs(rig.shard.snapshot().clockAheadMs - off * 1000) < 50);
        const authority = stage === 'live' ? Date.now() + off * 1000 : Date.now();
        const wire = await rig.wire();
        const bad = (await wire.pipeline(dated(authority + LEFT_MS))).filter(
          (reply) => reply.startsWith('-') || reply.includes('\n-'),
        );
        // KeyDB knows no EXPIREAT … XX, nor does Redis 6.2.
        const withoutOptions = stage === 'live' || !(await redisSince(7, 0));
        assert.equal(bad.length, withoutOptions ? 1 : 0, bad.join());
        if (withoutOptions) await rig.client().pexpireat('expireat-xx', authority + LEFT_MS);
        const payload = await rig.client({ of: stage === 'live' ? rig.target : rig.source }).dumpBuffer('set-ex');
        await rig.client().call('RESTORE', 'restored', authority + LEFT_MS, payload!, 'ABSTTL');
        for (const name of NAMES) await rig.client().pttl(name);
        await rig.shard.settled();
        await assertEqualTimes(rig);
        const { mismatches, suspects, workloads } = rig.shard.snapshot();
        assert.deepEqual(
          [mismatches, suspects.total, workloads[0].clean],
          [{}, 0, true],
          JSON.stringify(rig.shard.findings().slice(-3)),
        );
        assert.deepEqual(
          [await rig.client({ of: rig.source }).exists('past'), await rig.client({ of: rig.target }).exists('past')],
          [0, 0],
        );
      });
    });
  }
}

test('a clock that is put right is followed', async (t) => {
  const fake = await settableClock(t);
  if (fake === null) return;
  fake.set(OFF_S);
  await withRig({ servers: { target: { env: fake.env } } }, async (rig) => {
    await until(() => rig.shard.snapshot().clockAheadMs !== 0);
    fake.set(0);
    await until(() => rig.shard.snapshot().clockAheadMs === 0);
    await rig.client().call('SET', 'key', 'v', 'PXAT', String(Date.now() + LEFT_MS));
    await rig.shard.settled();
    await sleep(10);
    const [here, there] = [
      await rig.client({ of: rig.source }).pttl('key'),
      await rig.client({ of: rig.target }).pttl('key'),
    ];
    assert.ok(Math.abs(here - there) <= TOLERANCE_MS, `${here} ≠ ${there}`);
  });
});

for (const how of ['drained', 'at once'] as const) {
  test(`a clock that is set while no proxy runs, which has ended ${how}, makes every key suspect`, async (t) => {
    const fake = await settableClock(t);
    if (fake === null) return;
    fake.set(0);
    await withScene(
      {},
      async (scene) => {
        await scene.client().set('key', 'v', 'PX', LEFT_MS);
        await scene.shard.settled();
        // Both clocks were looked at, and the state says so.
        await until(async () => (await scene.shard.state()).targetAheadMs !== null);
        await scene.stopShard(how);
        fake.set(OFF_S);
        await scene.startShard();
        await until(() => scene.shard.snapshot().workloads.every(({ clean }) => clean));
        await scene.shard.settled();
        const [here, there] = await Promise.all(
          [scene.source, scene.target].map((of) => scene.client({ of }).pttl('key')),
        );
        assert.ok(Math.abs(here - there) <= TOLERANCE_MS, `${here} ≠ ${there}`);
      },
      { target: { env: fake.env } },
    );
  });
}
