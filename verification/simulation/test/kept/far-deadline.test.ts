/** Found by `npm run simulate -- --profile expiry`. A key that was about to expire is not known to be so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A key that expires on the mirror before SET … KEEPTTL reaches it is copied, also where it had a deadline in 1970', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SET k x');
    await client.ask('EXPIREAT k 1');
    await client.ask('SET k a NX PX 10');
    await kept.until(() => kept.isClean, 'the mirror has confirmed it');
    kept.holdCommands(kept.target, 20);
    await client.ask('SET k b KEEPTTL');
    await kept.pass(30);
    await kept.until(() => kept.isClean, 'the workload is clean');
    assert.deepEqual(kept.values('0 k'), [null, null]);
  }));
