/** Found in profile `astray`, seed 930: clients got an error whose first word was no code. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('While the address of the source leads to the target, clients get an error with a code', () =>
  KeptWorld.run(async (kept) => {
    const { network } = kept.world;
    const client = await kept.client();
    await client.ask('SET k v');
    network.lead(kept.source.address, kept.target.address);
    for (const connection of network.connections) if (connection.to.host === kept.source.address.host) connection.cut();
    await kept.pass(100);
    const reply = await (await kept.client()).ask('GET k');
    assert.match(String(reply), /^-ERR shadow-proxy: the source is the same server as the target/);
  }));
