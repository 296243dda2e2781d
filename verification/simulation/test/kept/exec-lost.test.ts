/** Found in profile `expiry-restarts`, seed 884: a mirror queued a transaction, and never got its EXEC. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import { WORLD } from '../../world/events.js';

const LARGE = 'v'.repeat(10_000);

for (const first of ['SET a new', 'PUBLISH channel message'])
  test(`All keys of a transaction are suspects if its EXEC is lost behind QUEUED: ${first}`, () =>
    KeptWorld.run(async (kept) => {
      const client = await kept.client();
      await client.ask('SET b old');
      await kept.until(() => kept.values('0 b').every((value) => value === 'old'), 'both have the key');
      // What is sent arrives in two parts: the second one, with EXEC, is lost with the connection.
      kept.world.network.options = { ...kept.world.network.options, splitShare: 1, delayMs: [1, 1] };
      let executed = 0;
      kept.target.onCommand = (address, [name, key]) => {
        if (name === 'EXEC') executed++;
        if (name !== 'SET' || key !== 'b') return;
        for (const connection of kept.world.network.connections) {
          if (`${connection.from.host}:${connection.from.port}` !== address) continue;
          connection.far.silence(1_000);
          kept.world.events.after(5, WORLD, () => connection.cut());
        }
      };
      for (const command of ['MULTI', first, 'SET b new', `SET c ${LARGE}`]) await client.ask(command);
      await client.ask('EXEC');
      await kept.pass(100);
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.deepEqual([kept.values('0 b'), executed], [['new', 'new'], 0]);
    }));
