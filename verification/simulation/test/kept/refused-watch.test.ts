/** WATCH that a server refuses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A stage change is no reason for EXEC to answer nil to a client whose WATCH was refused', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    let refuses = true;
    kept.source.model.refuse((_, name) => (refuses && name === 'watch' ? 'NOPERM this user has no permissions' : null));
    assert.match(String(await client.ask('WATCH k')), /^-NOPERM/);
    refuses = false;
    await kept.change('live');
    for (const command of ['MULTI', 'SET k v']) await client.ask(command);
    assert.deepEqual(await client.ask('EXEC'), ['+OK']);
  }));
