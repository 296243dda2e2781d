/** Found in profile `astray`, seed 888: the target's lease stayed at the source, and so the source's was refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';
import type { Client } from '../../server/state.js';
import type { ServerHost } from '../../world/server-host.js';

const leaseAt = ({ model }: ServerHost): Client =>
  [...model.clients.values()].find(({ name }) => name.startsWith('shadow-proxy-lease:'))!;

function cutLease({ world }: KeptWorld, server: ServerHost): void {
  const { address } = leaseAt(server);
  for (const connection of world.network.connections)
    if (`${connection.from.host}:${connection.from.port}` === address) connection.cut();
}

test('A lease that was taken while an address led to the other server is given back', () =>
  KeptWorld.run(async (kept) => {
    const { network } = kept.world;
    const { source, target } = kept;
    await (await kept.client()).ask('SET k first');
    network.lead(source.address, target.address);
    network.lead(target.address, source.address);
    cutLease(kept, source);
    cutLease(kept, target);
    await kept.pass(1_000);
    network.settle();
    // Each opens a connection to the source, which needs the lease there.
    const [early, late] = [await kept.client(), await kept.client()];
    early.send('WATCH k');
    await kept.pass(5_000);
    for (const server of [source, target]) assert.match(leaseAt(server).name, /:holds:/);
    assert.equal(await late.ask('WATCH k'), '+OK');
  }));
