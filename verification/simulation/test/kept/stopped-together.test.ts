/** Found in profile `standbys`, seed 1: servers and holder stopped together, and a standby took the lease at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import { Proxy } from '../../world/proxy.js';

const STOPPED_MS = 5_000;
/** The holder goes on so much later than the servers. */
const LATER_MS = 300;

test('A standby takes no lease from a holder that was stopped together with both servers', () =>
  KeptWorld.run(async (kept) => {
    const { world, source, target, proxy } = kept;
    const urls = { source: 'redis://10.0.0.2:6379', target: 'redis://10.0.0.3:6379' };
    const standby = new Proxy(world, world.newHost('10.0.0.11'), { ...urls, isStandby: true, others: 1 });
    standby.start();
    await kept.pass(STOPPED_MS);
    for (const server of [source, target]) server.pause(STOPPED_MS);
    proxy.process!.stopUntil(world.events.now + STOPPED_MS + LATER_MS);
    await kept.pass(3 * STOPPED_MS);
    assert.equal(standby.launched, null, 'the standby waits');
    assert.ok(proxy.launched !== null && proxy.problem === null, 'the holder serves');
  }));
