/** The lanes of one client: never two at a time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, settled } from '../../support/context.js';

test('while commands are in flight at one server, one for the other waits, and none overtakes it', async () => {
  const { client, proxy } = await connect({ new: 'live', default: 'shadow' });
  client.send('SET', 'a', '1').send('SET', 'b', '1').send('GET', 'new:k').send('GET', 'a');
  assert.deepEqual([client.waits, proxy.took()], [['idle'], ['source SET a 1', 'source SET b 1']]);
  proxy.answer('+OK');
  assert.deepEqual(proxy.took(), []);
  proxy.answer('+OK');
  assert.deepEqual(proxy.took(), ['target GET new:k']);
  proxy.answer('$-1');
  assert.deepEqual(proxy.took(), ['source GET a']);
});

test('a reply of the proxy’s own stands behind those in flight', async () => {
  const { client, proxy } = await connect();
  client.send('SET', 'k', '1').send('MULTI').send('DISCARD');
  assert.deepEqual(client.replies, []);
  proxy.answer('+OK');
  assert.deepEqual(client.replies, ['+OK', '+OK', '+OK']);
});

test('keys that another lane has in flight: a write waits for them, a read of a read does not', async () => {
  const { client, proxy } = await connect();
  const other = await proxy.connect();
  const { lanes } = proxy.sequencer;
  const lane = await lanes.source.borrow(other.client.identity);
  const locks = lanes.source.locks(0);
  locks.tracking = true;
  locks.hold(lane, ['k'], false);
  client.send('GET', 'k');
  assert.deepEqual(proxy.took(), ['source GET k']);
  proxy.answer('$-1');
  client.send('SET', 'k', 'v').send('GET', 'j');
  await settled();
  assert.deepEqual(proxy.took(), [], 'nor does the next overtake it');
  locks.release(['k'], false);
  await settled();
  assert.deepEqual(proxy.took(), ['source SET k v', 'source GET j']);
});

test('CLIENT REPLY OFF and SKIP: it is sent, and its reply is for nobody', async () => {
  const { client, proxy } = await connect();
  client.client.wants('skip');
  client.send('SET', 'k', '1').send('SET', 'k', '2');
  proxy.answer('+OK', '-ERR');
  assert.deepEqual(client.replies, ['-ERR'], 'one is skipped');
  client.client.wants('off');
  client.send('SET', 'k', '3').send('SET', 'k', '4');
  proxy.answer('+OK', '+OK');
  assert.deepEqual([client.replies, proxy.took().length], [['-ERR'], 4]);
});

test('a server that takes no more bytes: the client waits until half of its commands are answered', async () => {
  const { client, proxy } = await connect();
  client.send('SET', 'k', '1').send('SET', 'k', '2').send('SET', 'k', '3');
  proxy.servers.source.unsentBytes = (1 << 20) + 1;
  client.send('SET', 'k', '4').send('SET', 'k', '5');
  assert.equal(proxy.took().length, 4);
  proxy.servers.source.unsentBytes = 1 << 20;
  proxy.answer('+OK');
  assert.deepEqual(proxy.took(), []);
  proxy.answer('+OK');
  assert.deepEqual(proxy.took(), ['source SET k 5']);
});
