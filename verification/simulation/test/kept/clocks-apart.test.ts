/** Found by `npm run simulate -- --profile clocks`. The clocks of two real servers on one machine do not differ. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A key that expires at a moment is copied until it is known by how much the clocks differ', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      const at = Math.floor(kept.source.unixMs) + 60_000;
      await client.ask(`SET k v PXAT ${at}`);
      await kept.pass(200);
      assert.equal(kept.proxy.snapshot()!.clockAheadMs, 0, 'a small difference is not believed at once');
      await kept.until(() => kept.isClean, 'the workload is clean');
      const left = [kept.source, kept.target].map((server) => server.entry('0 k')!.expireAt - server.unixMs);
      assert.ok(Math.abs(left[0] - left[1]) < 50, left.join(' and '));
    },
    {},
    (kept) => (kept.target.clockAheadMs = 300),
  ));
