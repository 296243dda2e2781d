/** Keys of a woken client are reserved until its effect has its place. Real servers answer too fast to show it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const LATE_MS = 100;

test('The list to which a woken client moves its element is written by no other before', () =>
  KeptWorld.run(async (kept) => {
    const [waiter, pusher] = [await kept.client(), await kept.client()];
    await pusher.ask('RPUSH to first');
    const port = kept.portOf(kept.source, ([name]) => name === 'BLMOVE');
    waiter.send('BLMOVE from to LEFT RIGHT 0');
    await kept.pass(50);
    kept.endOf(kept.source, port()!).silence(LATE_MS);
    assert.equal(await pusher.ask('RPUSH from element'), 1);
    assert.equal(await pusher.ask('LTRIM to 0 0'), '+OK');
    await kept.until(() => waiter.replies.length > 0, 'the waiter gets the element');
    await kept.until(() => kept.isClean, 'the workload is clean');
    await kept.pass(LATE_MS);
    assert.deepEqual(kept.values('0 to'), [['first'], ['first']]);
  }));
