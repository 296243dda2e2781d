/** Found by `npm run simulate -- --profile cuts`. Real servers answer too fast for a test to see the moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld, type KeptClient } from '../../kept/world.js';

/** The push is run, and its reply is late: the waiter has its element, and the mirror does not know of it. */
async function holdPush(kept: KeptWorld): Promise<{ readonly waiter: KeptClient; readonly pusher: KeptClient }> {
  const [waiter, pusher] = [await kept.client(), await kept.client()];
  waiter.send('BLMOVE from to LEFT RIGHT 0');
  await kept.pass(50);
  assert.ok(kept.isClean);
  kept.holdReplies(kept.source, 500, ([name]) => name === 'LPUSH');
  pusher.send('LPUSH from element');
  await kept.until(() => waiter.replies.length > 0, 'the waiter gets the element');
  assert.deepEqual(waiter.replies, ['$element']);
  assert.deepEqual(kept.values('0 to'), [['element'], null]);
  return { waiter, pusher };
}

test('A workload is not clean while the effect of a woken client waits for the reply to the push', () =>
  KeptWorld.run(async (kept) => {
    const { pusher } = await holdPush(kept);
    assert.equal(kept.isClean, false);

    await kept.until(() => pusher.replies.length > 0, 'the pusher gets its reply');
    await kept.pass(50);
    assert.deepEqual(kept.values('0 to'), [['element'], ['element']]);
    assert.ok(kept.isClean);
  }));

test('A proxy that is killed while the effect of a woken client waits repairs its keys at the next start', () =>
  KeptWorld.run(async (kept) => {
    await holdPush(kept);
    kept.proxy.kill();
    await kept.pass(100);
    kept.proxy.start();
    await kept.until(() => kept.proxy.launched !== null, 'the shard serves again');
    await kept.until(() => kept.isClean, 'the workload is clean');
    assert.deepEqual(kept.values('0 to'), [['element'], ['element']]);
    assert.deepEqual(kept.values('0 from'), [null, null]);
  }));
