/** Found by `npm run simulate -- --profile losses`. Real servers answer too fast for a test to see the moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('a target that has lost its keys is clean at no moment at which it answers', async () => {
  await KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SET a 1');
    await kept.until(() => kept.values('0 a').every((value) => value !== null) && kept.isClean, 'both have the key');
    kept.target.stop();
    await kept.until(() => !kept.proxy.snapshot()!.target.up, 'the proxy knows that the target is down');
    kept.target.start(false);
    const differs = (): boolean => kept.target.entry('0 a') === undefined;
    let lies = 0;
    let answered = false;
    const repaired = (): boolean => {
      if (!differs()) return true;
      if (!kept.proxy.snapshot()!.target.up) return false;
      answered = true;
      if (kept.isClean) lies++;
      return false;
    };
    await kept.until(repaired, 'the key is on the target again');
    assert.deepEqual({ answered, lies }, { answered: true, lies: 0 });
  });
});
