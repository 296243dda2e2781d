/** The address of a server leads to another one, while open connections still lead to the first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import { ServerHost } from '../../world/server-host.js';

test('When questions lead to another server, the mirror is that server, too', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SET k first');
    await kept.pass(100);
    const next = new ServerHost(kept.world, 'keydb', { host: '10.0.0.7', port: 6379 });
    kept.world.network.lead(kept.target.address, next.address);
    const port = kept.portOf(kept.target, ([name]) => name === 'DBSIZE' || name === 'INFO');
    await kept.until(() => port() !== null, 'the target is asked');
    kept.endOf(kept.target, port()!).connection.cut();
    await kept.pass(2_000);
    await client.ask('SET k second');
    await kept.until(() => kept.isClean, 'the workload is clean');
    assert.equal(next.entry('0 k')?.value, 'second');
  }));
