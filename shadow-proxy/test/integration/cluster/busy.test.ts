/**
 * A script that does not end, on the only node of a cluster that could say who the master is.
 *
 * Needs real servers: BUSY from a cluster node, and SCRIPT KILL through the proxy.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClusterRig } from '../../support/cluster-rig.js';
import { Wire } from '../../support/wire.js';

test('SCRIPT KILL reaches a node that answers BUSY to all else', async (t) => {
  const rig = await ClusterRig.start({
    source: { masters: 1, config: { 'lua-time-limit': 100 } },
    plan: { default: { stage: 'shadow' } },
  });
  t.after(() => rig.stop());
  const [busy, other] = [await Wire.open({ port: rig.port }), await Wire.open({ port: rig.port })];
  busy.send('EVAL', 'while true do end', 0);
  // Past the next look at the master, which finds it busy.
  await sleep(1_500);
  assert.equal(await other.ask('SCRIPT', 'KILL'), '+OK');
  assert.match(await busy.frame(), /^-ERR .*killed by user/i);
  assert.equal(await other.ask('SET', 'k', 'v'), '+OK');
  await rig.settled();
  assert.deepEqual(await rig.differences(), []);
  for (const wire of [busy, other]) wire.destroy();
});
