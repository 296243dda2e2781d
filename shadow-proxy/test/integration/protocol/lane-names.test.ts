/**
 * Whom a lane serves, as the servers' own CLIENT LIST shows it.
 *
 * Needs real servers: CLIENT LIST and CLIENT SETNAME of both servers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientField } from '../../../src/upstream/handshake.js';
import { withRig, type Rig } from '../../support/rig.js';
import { partsOf, until } from '../../support/shard.js';

/** The names of the proxy's connections at the source, sorted. */
async function namesAt(rig: Rig): Promise<string[]> {
  const lines = (await (await rig.wire(rig.source)).ask('CLIENT', 'LIST')).split('\n');
  return lines
    .map((line) => clientField(line, 'name'))
    .filter((name) => name.startsWith('shadow-proxy:'))
    .sort();
}

const planned = { plan: { laneNames: 'clients' } };

test('a lane has the names of its clients behind its own', () =>
  withRig(planned, async (rig) => {
    const own = partsOf(rig.shard.shard).servers.source.name;
    const [cart, other] = [await rig.wire(), await rig.wire()];
    assert.equal(await cart.ask('CLIENT', 'SETNAME', 'cart'), '+OK');
    assert.equal(await other.ask('SET', 'k', 'v'), '+OK');
    const wanted = (...clients: string[]) => `${own}:${clients.join(',')}`;
    await until(async () => (await namesAt(rig)).includes(wanted('127.0.0.1', 'cart@127.0.0.1')));
    // The lane goes on as before.
    assert.equal(await cart.ask('GET', 'k'), '$1\r\nv');
    const more = await Promise.all(Array.from({ length: 7 }, () => rig.wire()));
    for (const [i, wire] of more.entries()) assert.equal(await wire.ask('CLIENT', 'SETNAME', `b${i}`), '+OK');
    const first = ['127.0.0.1', 'b0@127.0.0.1', 'b1@127.0.0.1', 'b2@127.0.0.1', 'b3@127.0.0.1'];
    await until(async () => (await namesAt(rig)).includes(wanted(...first, '+4')));
    for (const wire of [cart, other, ...more]) wire.destroy();
    // Nobody uses it any more: it has its own name alone.
    await until(async () => (await namesAt(rig)).every((name) => name === own));
    await rig.assertEqual();
  }));

test('without the plan’s wish a lane has its own name alone', () =>
  withRig({}, async (rig) => {
    const { servers, laneNames } = partsOf(rig.shard.shard);
    const wire = await rig.wire();
    assert.equal(await wire.ask('SET', 'k', 'v'), '+OK');
    laneNames.update();
    assert.equal(await wire.ask('GET', 'k'), '$1\r\nv');
    assert.deepEqual([...new Set(await namesAt(rig))], [servers.source.name]);
  }));

test('where the user may not name its connection, it is tried once', () =>
  withRig(planned, async (rig) => {
    const { laneNames } = partsOf(rig.shard.shard);
    const admin = await rig.wire(rig.source);
    const user = ['ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '+@all', '-client'];
    for (const of of [rig.source, rig.target]) assert.equal(await (await rig.wire(of)).ask(...user), '+OK');
    const wire = await rig.wire();
    assert.equal(await wire.ask('AUTH', 'app', 'secret'), '+OK');
    for (let i = 0; i < 3; i++) {
      // The lane has another client each time, and its name would be another.
      const more = await rig.wire();
      assert.equal(await more.ask('CLIENT', 'SETNAME', `c${i}`), '+OK');
      assert.equal(await more.ask('AUTH', 'app', 'secret'), '+OK');
      assert.equal(await more.ask('GET', 'none'), '$-1');
      assert.equal(await wire.ask('SET', 'k', `${i}`), '+OK');
      laneNames.update();
    }
    assert.equal(await wire.ask('GET', 'k'), '$1\r\n2');
    const stats = await admin.ask('INFO', 'commandstats');
    assert.match(stats, /cmdstat_client\|setname:.*rejected_calls=1,/);
  }));
