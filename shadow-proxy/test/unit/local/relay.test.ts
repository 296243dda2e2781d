/** The relay that tests and rehearsals put before a server ends when it is closed, whatever is going on. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Relay } from '../../../src/local/relay.js';

test('a relay that is closed while it connects to the server ends that connection, too', async (t) => {
  const server = createServer((socket) => socket.on('error', () => undefined).resume());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const relay = await Relay.start(server.address() as AddressInfo);
  const client = connect(relay.port, '127.0.0.1').on('error', () => undefined);
  t.after(() => client.destroy());
  const closed = once(client, 'close');
  await once(client, 'connect');
  // The relay has taken the connection by the next turn, and is not connected to the server yet.
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(relay.links.length, 0);
  await relay.close();
  await closed;
  assert.equal(relay.links.length, 0);
});
