/** Clients that leave while others wait behind them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A command does not wait behind that of a client that has left while it waited for another key', () =>
  KeptWorld.run(async (kept) => {
    const [first, second, third] = [await kept.client(), await kept.client(), await kept.client()];
    let port = 0;
    kept.source.onCommand = (address, [name]) => {
      if (name === 'SET') port = Number(address.split(':')[1]);
    };
    await first.ask('SET held v');
    // Another protocol: another lane.
    for (const client of [second, third]) {
      await client.ask('HELLO 3');
      await client.ask('GET held');
    }
    kept.endOf(kept.source, port).silence(500);
    first.send('APPEND held w');
    await kept.pass(2);
    second.send('MSET held x free x');
    await kept.pass(2);
    third.send('SET free y');
    await kept.pass(20);
    assert.equal(third.replies.length, 2, 'first come, first served');
    second.leave(true);
    await kept.pass(20);
    assert.equal(third.replies.at(-1), '+OK');
    await kept.until(() => first.replies.length === 2, 'the first is answered');
    assert.deepEqual(kept.values('0 held')[0], 'vw');
  }));
