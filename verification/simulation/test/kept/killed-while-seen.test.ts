/** Found in profile `takeovers`, seed 892: a process that had released its lease was killed before it noted that. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import type { Proxy } from '../../world/proxy.js';

const serves = (kept: KeptWorld, proxy: Proxy): Promise<void> =>
  kept.until(() => proxy.launched !== null, 'the process serves');

test('A start does not trust a folder whose process released the lease to one that served and ended unseen', () =>
  KeptWorld.run(
    async (kept) => {
      const { proxy, standby, source } = kept;
      const { network } = kept.world;
      await (await kept.client()).ask('SET k first');
      await kept.until(
        () => kept.isClean && kept.values('0 k').every((value) => value === 'first'),
        'both have the key',
      );
      standby.start();
      await kept.pass(2_000);
      // The standby does not reach the mirror: so the process that ends waits to be seen there.
      network.blocked.add(`${standby.host.address} ${source.address.host}`);
      for (const connection of network.connections)
        if (connection.from.host === standby.host.address && connection.to.host === source.address.host)
          connection.cut();
      proxy.end(1_000, () => undefined);
      await serves(kept, standby);
      assert.notEqual(proxy.process, null, 'the process that ends still waits to be seen');
      proxy.kill();
      assert.equal(await (await kept.client(standby)).ask('SET k second'), '+OK');
      standby.kill();
      proxy.start();
      await serves(kept, proxy);
      assert.equal(kept.isClean, false, 'the servers differ');
      await kept.until(() => kept.isClean, 'the shard is clean');
      assert.deepEqual(kept.values('0 k'), ['second', 'second']);
    },
    { default: { stage: 'rampdown' } },
    () => undefined,
    1,
  ));
