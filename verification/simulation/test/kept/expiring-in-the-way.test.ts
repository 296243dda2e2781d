/** Found by `npm run simulate -- --profile cuts`. Real servers answer too fast for a test to choose the moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

for (const move of ['MOVE k 1', 'COPY k k DB 1'])
  test(`${move} is no mismatch where the key in its way expires on the mirror alone before it arrives`, () =>
    KeptWorld.run(async (kept) => {
      const client = await kept.client();
      for (const command of ['SET k taken', 'SELECT 1', 'SET k other PX 10', 'SELECT 0']) await client.ask(command);
      kept.holdCommands(kept.target, 20);
      assert.equal(await client.ask(move), 0);
      await kept.pass(50);
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.deepEqual(kept.proxy.snapshot()!.mismatches, {});
      assert.deepEqual(kept.values('0 k'), ['taken', 'taken']);
      assert.deepEqual(kept.values('1 k'), [null, null]);
    }));
