/** Found by `npm run simulate -- --profile refusals`. A real server does not refuse a login for just a moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A client with CLIENT REPLY OFF is cut off where CLIENT REPLY ON cannot be asked of the server', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    client.send('HELLO 3');
    client.send('CLIENT REPLY OFF');
    client.send('SET k v');
    await kept.until(() => kept.isClean && kept.target.entry('0 k') !== undefined, 'the mirror has the key');
    kept.source.model.refuse((_, name) => (name === 'hello' ? 'ERR hello is refused' : null));
    for (const { near, far } of kept.world.network.connections)
      if (far.local.host === kept.source.address.host && near.local.host === '10.0.0.1') far.close(true);
    await kept.pass(20);
    assert.equal(client.isCutOff, false);
    client.send('CLIENT REPLY ON');
    await kept.until(() => client.isCutOff, 'the client is cut off');
  }));
