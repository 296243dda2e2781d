/** The copies of a standby. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { StateFollower } from '../../../src/shard/follow.js';
import { createLogger } from '../../../src/telemetry/log.js';
import { toPlan, smallPlan } from '../../support/plans.js';

test('copies that are hurried often leave neither timers nor listeners', async (t) => {
  const warnings: string[] = [];
  const warned = ({ message }: Error): number => warnings.push(message);
  process.on('warning', warned);
  t.after(() => process.off('warning', warned));
  const plan = toPlan({ ...smallPlan(), state: '/nowhere/state' });
  const timers = (): number => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
  const before = timers();
  // Nothing listens on this port: each copy ends at once.
  const follower = new StateFollower(plan, plan.shards[0], ['http://127.0.0.1:1'], createLogger('silent'));
  for (let i = 0; i < 60; i++) {
    follower.hurry();
    await sleep(5);
  }
  const during = timers() - before;
  await follower.stop();
  assert.deepEqual(warnings, []);
  assert.ok(during < 10, `${during} timers`);
});
