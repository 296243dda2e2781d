/** Found by `npm run simulate -- --profile clocks-set`. The clock of a real server is not set for a test. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A clock of the mirror that is set is seen, also where the connection of questions was lost before', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SET k v');
    await kept.until(() => kept.isClean, 'the mirror has the key');
    const asking = new Set<string>();
    kept.target.onCommand = (address, [name]) => {
      if (name === 'INFO') asking.add(address);
    };
    await kept.until(() => asking.size > 0, 'the proxy asks the target');
    for (const { near, far } of kept.world.network.connections)
      if (far.local.host === kept.target.address.host && asking.has(`${near.local.host}:${near.local.port}`))
        far.close(true);
    kept.target.clockAheadMs = 5_000;
    await kept.pass(3_000);
    assert.equal(Math.round(kept.proxy.snapshot()!.clockAheadMs / 100), 50);
  }));
