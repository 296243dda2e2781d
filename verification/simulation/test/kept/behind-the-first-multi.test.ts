/** Found by `npm run simulate -- --profile floods`: the source was stopped at the first MULTI of a connection. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

/** A lane's bound, and the last command of each client. */
const MOST_BYTES = (1 << 20) + 2 * 50_000;
const LARGE = 'x'.repeat(50_000);

test('Behind a MULTI that the source has not answered yet, clients are not read without a bound', () =>
  KeptWorld.run(async (kept) => {
    const [first, second] = [await kept.client(), await kept.client()];
    // Both have the same lane, and the size of their replies is known.
    for (const client of [first, second]) await client.ask('SET k v');
    kept.source.pause(500);
    for (const command of ['MULTI', 'INCR c', 'EXEC']) first.send(command);
    await kept.pass(20);
    for (let i = 0; i < 100; i++) second.send(['SET', `k${i}`, LARGE]);
    let most = 0;
    const isAnswered = (): boolean => {
      for (const { writableLength } of kept.proxy.process!.sockets) most = Math.max(most, writableLength);
      return second.replies.length === 101;
    };
    await kept.until(isAnswered, 'all commands are answered');
    assert.equal(first.replies.length, 4);
    assert.ok(most < MOST_BYTES, `${most} bytes are kept for the source`);
  }));
