/** Subscriptions that a stage change moves, and one that is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import { SLOTS, slotOf } from '../../server/slots.js';
import { clusterOf, CLUSTER_PLAN } from '../../kept/cluster.js';
import type { Cluster } from '../../world/cluster.js';

/** In the lower half of the slots, which the shard has; in two of them. */
const [KEY, CHANNEL] = ['a', 'b', 'c', 'd', 'e'].filter((name) => slotOf(name) < SLOTS / 2);

test('A subscriber gets nothing from the new server before it is moved there', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SUBSCRIBE ch');
    const { blocked } = kept.world.network;
    // No connection is ready when the change holds commands: the change itself opens one.
    const way = `${kept.proxy.host.address} ${kept.target.address.host}`;
    blocked.add(way);
    kept.world.diskMs = [300, 300];
    const isOver = kept.beginChange('live');
    await kept.until(() => kept.proxy.parts!.router.default.position.held, 'the change holds commands');
    blocked.delete(way);
    let isSubscribed = false;
    kept.target.onCommand = (_address, [name]) => (isSubscribed ||= name === 'SUBSCRIBE');
    await kept.until(() => isSubscribed, 'the change has subscribed at the target');
    assert.equal(isOver(), false);
    kept.bypass(kept.source, 'PUBLISH ch old');
    kept.bypass(kept.target, 'PUBLISH ch new');
    await kept.pass(10);
    assert.deepEqual(client.replies.slice(1), [['$message', '$ch', '$old']]);
    await kept.until(isOver, 'the stage has changed');
    kept.bypass(kept.target, 'PUBLISH ch newer');
    await kept.pass(10);
    assert.deepEqual(client.replies.slice(2), [['$message', '$ch', '$newer']]);
  }));

test('A PUBLISH does not wait for a subscription that was refused because its slot moves', () => {
  let cluster: Cluster;
  return KeptWorld.run(
    async (kept) => {
      const [client, other] = [await kept.client(), await kept.client()];
      let port = 0;
      kept.source.onCommand = (address, [name]) => {
        if (name === 'GET') port = Number(address.split(':')[1]);
      };
      await client.ask(`GET ${KEY}`);
      // Another protocol: another lane.
      await other.ask('HELLO 3');
      await other.ask(`STRLEN ${KEY}`);
      kept.endOf(kept.source, port).silence(700);
      client.send(`GET ${KEY}`);
      client.send(`SSUBSCRIBE ${CHANNEL}`);
      await kept.pass(5);
      assert.ok(cluster.moveSlot(slotOf(CHANNEL), 1, 60_000));
      await kept.until(() => client.replies.length === 3, 'both are answered');
      assert.match(String(client.replies[2]), /^-TRYAGAIN/);
      assert.equal(await other.ask(`PUBLISH ${CHANNEL} message`), 0);
    },
    CLUSTER_PLAN,
    (kept) => (cluster = clusterOf(kept)),
  );
});
