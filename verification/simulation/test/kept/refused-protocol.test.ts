/** Found by `npm run simulate -- --profile refusals`. The real servers of today do not refuse RESP3. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A transaction of a client with RESP3 is no mismatch where the mirror speaks RESP2 only, and an error in it is', () =>
  KeptWorld.run(async (kept) => {
    kept.target.model.refuse((_, name, args) => (name === 'hello' && args[1] === '3' ? 'ERR hello is refused' : null));
    const client = await kept.client();
    await client.ask('HELLO 3');
    const run = async (...commands: string[]): Promise<void> => {
      for (const command of ['MULTI', ...commands, 'EXEC']) await client.ask(command);
      await kept.pass(100);
    };
    await run('SET k v GET', 'HSET h f v', 'HGETALL h');
    assert.deepEqual(kept.proxy.snapshot()!.mismatches, {});
    assert.deepEqual(kept.values('0 k'), ['v', 'v']);

    kept.target.model.refuse((_, name, args) =>
      (name === 'hello' && args[1] === '3') || name === 'incr' ? `ERR ${name} is refused` : null,
    );
    await run('SET k 1', 'INCR n');
    await kept.until(() => kept.proxy.snapshot()!.mismatches.error === 1, 'the refused command is a mismatch');
    await kept.until(() => kept.isClean, 'its key is copied');
    assert.deepEqual(kept.values('0 n'), ['1', '1']);
  }));
