/** Found by the rehearsals behind a network that loses packets: the copy that was accepted came during a stall. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

/** Long enough for the copies that may come late, each at most 2 s after the other. */
const FIRST_MS = 9_000;
const STALL_MS = 1_200;

test('Behind a mirror that is always late, a copy is not accepted that came far later than others', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      await client.ask('SET k v PX 100000');
      await kept.pass(FIRST_MS);
      assert.ok(!kept.isClean, 'copies are late all the time');
      for (let stall = 0; stall < 5; stall++) {
        kept.holdCommands(kept.target, STALL_MS);
        await kept.pass(STALL_MS + 100);
      }
      await kept.until(() => kept.isClean, 'the workload is clean');
      const left = [kept.source, kept.target].map((server) => server.entry('0 k')!.expireAt - server.unixMs);
      assert.ok(Math.abs(left[0] - left[1]) < 200, left.join(' and '));
    },
    {},
    (kept) => (kept.world.network.options = { ...kept.world.network.options, delayMs: [40, 40] }),
  ));

test('Behind a mirror that became slower for good, a copy is accepted in the end', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      await client.ask('SET k v PX 1000000');
      await kept.pass(FIRST_MS);
      assert.ok(!kept.isClean, 'copies are late all the time');
      kept.world.network.options = { ...kept.world.network.options, delayMs: [200, 200] };
      for (const connection of kept.world.network.connections)
        if (connection.to.host === kept.target.address.host) connection.cut();
      await kept.until(() => kept.isClean, 'the workload is clean');
    },
    {},
    (kept) => (kept.world.network.options = { ...kept.world.network.options, delayMs: [40, 40] }),
  ));
