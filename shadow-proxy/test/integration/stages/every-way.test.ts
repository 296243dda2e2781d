/**
 * The gate `users` holds for every way to move a workload to a target that would let others in.
 *
 * Needs real servers: ACL of a target that lets everybody in, for each way to move clients there.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StageError } from '../../../src/stages/stage-change.js';
import { withRig, type Rig, type RigOptions } from '../../support/rig.js';
import { until } from '../../support/shard.js';

/** The source asks for a password, and the target for none. */
const rig = (options: RigOptions): RigOptions => ({
  sourcePassword: 'pw',
  ...options,
  servers: { source: { config: { requirepass: 'pw' } } },
});
const OPEN = /default needs a password on the source only: any client may log in on the target/;
const stageOf = ({ shard }: Pick<Rig, 'shard'>): string => shard.snapshot().workloads[0].stage;

test('force opens every other gate, and neither a promotion nor a drill moves clients to an open target', async () => {
  await withRig(rig({ alike: true }), async (it) => {
    const { shard } = it.shard;
    const forced = { workload: 'default', force: true, forceSuspects: true, reason: 'now' };
    await assert.rejects(shard.promote({ ...forced, to: 'live' }), (error: StageError) => {
      const { gates } = error.details as { gates: { name: string; evidence: string }[] };
      assert.match(error.message, /closed gates: users$/);
      assert.match(gates.find(({ name }) => name === 'users')!.evidence, OPEN);
      return true;
    });
    await assert.rejects(shard.rollback({ workload: 'default', drill: true }), /closed gates: .*users/);
    assert.equal(stageOf(it), 'shadow');
  });
});

for (const stage of ['live', 'rampdown', 'complete'] as const)
  test(`a first start in ${stage} does not serve an open target`, async () => {
    await assert.rejects(
      withRig(rig({ default: { stage } }), () => Promise.resolve()),
      (error: StageError) => {
        assert.equal(error.code, 'gates-closed');
        assert.match(error.message, new RegExp(`^"default" would begin in ${stage}, where the target answers clients`));
        assert.match(error.message, OPEN);
        assert.match(error.message, /or begin in shadow$/);
        return true;
      },
    );
  });

test('a first start in shadow serves, for the source answers', async () => {
  await withRig(rig({ default: { stage: 'shadow' } }), (it) => Promise.resolve(assert.equal(stageOf(it), 'shadow')));
});

test('an automatic failover does not send clients to an open target, and says why', async () => {
  await withRig(rig({ alike: true, failover: 'automatic', limits: { downAfterMs: 500 } }), async (it) => {
    await it.source.kill('SIGKILL');
    await until(() => it.shard.snapshot().outage?.workloads[0]?.why !== undefined, 10_000);
    const { why, instead, movedTo } = it.shard.snapshot().outage!.workloads[0];
    assert.match(why!, /^the gate users is closed: default needs a password on the source only/);
    assert.match(instead!.command, /^promote default --to live --percent 100 --force --force-users --reason '/);
    assert.deepEqual([movedTo, stageOf(it)], [null, 'shadow']);
  });
});

test('where a source died and its users were the same, neither failover nor operator needs to force them', async () => {
  for (const failover of ['automatic', 'manual'] as const) {
    await withRig({ alike: true, failover, limits: { downAfterMs: 500 } }, async (it) => {
      await it.source.kill('SIGKILL');
      if (failover === 'manual') {
        await until(() => it.shard.snapshot().outage?.workloads[0]?.why !== undefined, 10_000);
        const { instead } = it.shard.snapshot().outage!.workloads[0];
        assert.match(instead!.command, /--to live --percent 100 --force --reason '/);
        const { gates } = await it.shard.shard.promote({
          workload: 'default',
          to: 'live',
          percent: 100,
          force: true,
          reason: 'the source is lost',
        });
        assert.equal(gates.find(({ name }) => name === 'users')!.answer, 'yes');
      }
      await until(() => stageOf(it) === 'live', 10_000);
    });
  }
});
