/** Found by `npm run simulate -- --profile troubles`. A real server is seldom busy for just the one command. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A read that the authority cannot answer when it is compared again is inconclusive', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    kept.target.pause(50);
    await client.ask('SET k v');
    for (const connection of kept.world.network.connections)
      if (connection.to.host === kept.target.address.host) connection.cut();
    await kept.until(() => kept.proxy.snapshot()!.suspects.total > 0, 'the key is a suspect');
    assert.equal(await client.ask('GET k'), '$v');
    kept.source.model.refuse((_, name) => (name === 'get' ? 'BUSY Redis is busy running a script.' : null));
    await kept.until(() => kept.proxy.snapshot()!.suspects.total === 0, 'the key is repaired');
    await kept.pass(100);
    const { mismatches, inconclusive } = kept.proxy.snapshot()!;
    assert.deepEqual(mismatches, {});
    assert.ok(Object.values(inconclusive).reduce((sum, count) => sum + count, 0) > 0);
  }));
