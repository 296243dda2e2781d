/** The copies of a standby. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { StateFollower } from '../../../src/shard/follow.js';
import { readState, StateStore } from '../../../src/storage/state.js';
import { createLogger } from '../../../src/telemetry/log.js';
import { scratch, toPlan, smallPlan } from '../../support/plans.js';

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

test('what reads the state between copies never reads half of one', async (t) => {
  const theirs = await StateStore.open(scratch(t), 'a');
  let revision = 0;
  // Each answer is another state.
  const server = createServer((_request, response) => {
    const state = { ...theirs.current, revision: ++revision };
    response.end(JSON.stringify({ states: [{ serves: true, state }] }));
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const directory = scratch(t);
  const plan = toPlan({ ...smallPlan(), state: directory });
  const peer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const follower = new StateFollower(plan, plan.shards[0], [peer], createLogger('silent'));
  t.after(() => follower.stop());
  const seen = new Set<number>();
  while (seen.size < 20) {
    follower.hurry();
    const state = await follower.between(() => readState(join(directory, 'a'), 'a'));
    if (state !== null) seen.add(state.revision);
  }
});
