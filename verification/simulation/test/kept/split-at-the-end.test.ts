/** Found in profile `half` (seed 105): a split command was sent behind the state of a clean end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const KEYS = Array.from({ length: 10 }, (_, i) => `k${i}`);

test('A process that ends answers a command that waits for its lanes, and mirrors it', () =>
  KeptWorld.run(
    async (kept) => {
      const writer = await kept.client();
      for (const key of KEYS) await writer.ask(`SET ${key} v`);
      await kept.until(() => kept.isClean, 'the workload is clean');
      // Its lanes are not open yet: they speak another protocol.
      const client = await kept.client();
      await client.ask('HELLO 3');
      client.send(`UNLINK ${KEYS.join(' ')}`);
      await kept.pass(0.15);
      let ended = false;
      kept.proxy.end(10_000, () => (ended = true));
      await kept.until(() => ended, 'the process ends');
      assert.equal(client.replies.at(-1), KEYS.length);
      for (const key of KEYS) assert.deepEqual(kept.values(`0 ${key}`), [null, null]);
    },
    { default: { stage: 'live', percent: 50 } },
  ));
