/** SWAPDB in a script of a transaction, at a KeyDB at which clients block. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const SWAP = "return redis.call('SWAPDB', 0, 1)";

test('A transaction that swaps the database of a client that blocks does not end KeyDB', () =>
  KeptWorld.run(
    async (kept) => {
      const [waiter, client] = [await kept.client(), await kept.client()];
      waiter.send('BLPOP list 0');
      await kept.pass(50);
      for (const command of [['MULTI'], ['EVAL', SWAP, '0'], ['EXEC']]) await client.ask(command);
      assert.deepEqual(client.replies.at(-1), ['+OK']);
      await client.ask('RPUSH list element');
      await kept.until(() => waiter.replies.length > 0, 'the client gets the element');
      assert.equal(kept.target.model.isDown, false);
    },
    { default: { stage: 'rampdown' } },
    ({ source, target }) => {
      for (const { model } of [source, target]) model.addScript(SWAP, ({ call }) => call('SWAPDB', '0', '1'));
    },
  ));
