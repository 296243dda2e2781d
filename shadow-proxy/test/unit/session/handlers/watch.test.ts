/** WATCH: on a lane of its own, on which EXEC then runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, settled, type FakeClient, type FakeProxy } from '../../../support/context.js';

async function watch(client: FakeClient, proxy: FakeProxy, ...keys: string[]): Promise<void> {
  client.send('WATCH', ...keys);
  await settled();
  proxy.answer('+OK');
}

test('WATCH and EXEC go on one private lane; what is between goes as ever', async () => {
  const { client, proxy } = await connect();
  await watch(client, proxy, 'k');
  client.send('GET', 'k');
  proxy.answer('$1 v');
  client.send('MULTI').send('SET', 'k', 'w').send('EXEC');
  await settled();
  assert.deepEqual(
    proxy.sent.map(({ command, isPrivate }) => [command, isPrivate]),
    [
      ['WATCH k', true],
      ['GET k', false],
      ['MULTI', true],
      ['SET k w', true],
      ['EXEC', true],
    ],
  );
  proxy.answer('+OK', '+QUEUED', '*1 +OK');
  assert.deepEqual(client.replies, ['+OK', '$1 v', '+OK', '+QUEUED', '*1 +OK']);
  assert.deepEqual([client.client.watch, proxy.mirrored.slice(1)], [null, ['MULTI', 'SET k w', 'EXEC']]);
});

test('a stage change after WATCH: EXEC does nothing, and nothing is sent of it', async () => {
  const { client, proxy } = await connect({ default: 'dualwrite' });
  await watch(client, proxy, 'k');
  proxy.move('default', 'shadow');
  client.send('MULTI').send('SET', 'k', 'w').send('EXEC');
  assert.deepEqual(client.replies.slice(-2), ['+QUEUED', '*-1']);
  assert.deepEqual(proxy.took(), ['source WATCH k', 'source UNWATCH']);
  assert.deepEqual([client.client.watch, client.client.transaction], [null, null]);
});

test('a second WATCH does not forget a stage change between the two', async () => {
  const { client, proxy } = await connect({ a: 'dualwrite', b: 'dualwrite', default: 'dualwrite' });
  await watch(client, proxy, 'a:k');
  proxy.move('a', 'shadow');
  await watch(client, proxy, 'a:j');
  await watch(client, proxy, 'b:k');
  client.send('MULTI').send('SET', 'a:k', 'w').send('EXEC');
  assert.equal(client.replies.at(-1), '*-1');
});

test('a stage change of a workload that is not watched, or before WATCH, does not matter', async () => {
  const { client, proxy } = await connect({ a: 'dualwrite', b: 'dualwrite', default: 'dualwrite' });
  proxy.move('a', 'shadow');
  await watch(client, proxy, 'a:k');
  proxy.move('b', 'shadow');
  proxy.took();
  client.send('MULTI').send('SET', 'a:k', 'w').send('EXEC');
  await settled();
  assert.deepEqual(proxy.took(), ['source MULTI', 'source SET a:k w', 'source EXEC']);
});

test('each key of one WATCH counts', async () => {
  const { client, proxy } = await connect({ a: 'dualwrite', b: 'dualwrite', default: 'dualwrite' });
  await watch(client, proxy, 'a:k', 'b:k');
  proxy.move('b', 'shadow');
  client.send('MULTI').send('SET', 'a:k', 'w').send('EXEC');
  assert.equal(client.replies.at(-1), '*-1');
});

test('a stage that changes while the lane is opened has changed before the server knows what to watch', async () => {
  const { client, proxy } = await connect({ default: 'dualwrite' });
  client.send('WATCH', 'k');
  proxy.move('default', 'shadow');
  await settled();
  proxy.answer('+OK');
  proxy.took();
  client.send('MULTI').send('SET', 'k', 'w').send('EXEC');
  await settled();
  assert.deepEqual(proxy.took(), ['source MULTI', 'source SET k w', 'source EXEC']);
});

test('the watched connection is lost: EXEC does nothing', async () => {
  const { client, proxy } = await connect();
  await watch(client, proxy, 'k');
  (client.client.watch!.lane as { closed: boolean }).closed = true;
  client.send('MULTI').send('SET', 'k', 'w').send('EXEC');
  assert.deepEqual([client.replies.at(-1), proxy.took()], ['*-1', ['source WATCH k']]);
});

test('keys of different authorities, in one WATCH or in two, are refused', async () => {
  const { client, proxy } = await connect({ a: 'shadow', b: 'live', default: 'shadow' });
  client.send('WATCH', 'a:k', 'b:k');
  await watch(client, proxy, 'a:k');
  client.send('WATCH', 'b:k');
  for (const reply of [client.replies[0], client.replies[2]]) assert.match(reply, /^-ERR shadow-proxy: WATCH spans/);
  assert.equal(proxy.clients.counts.refused, 2);
});

test('a transaction for another authority than that of the watched keys is refused', async () => {
  const { client, proxy } = await connect({ a: 'shadow', b: 'live', default: 'shadow' });
  await watch(client, proxy, 'a:k');
  client.send('MULTI').send('SET', 'b:k', 'w').send('EXEC');
  assert.match(client.replies.at(-1)!, /^-ERR shadow-proxy: A TRANSACTION spans workload "b".* and workload "a"/);
  assert.deepEqual(proxy.took(), ['source WATCH a:k', 'source UNWATCH']);
});

test('UNWATCH and DISCARD end it: the lane is for the next client', async () => {
  const { client, proxy } = await connect();
  for (const end of [['UNWATCH'], ['DISCARD']]) {
    await watch(client, proxy, 'k');
    if (end[0] === 'DISCARD') client.send('MULTI');
    client.send(...end);
    if (end[0] === 'UNWATCH') proxy.answer('+OK');
    assert.equal(client.client.watch, null, end[0]);
    assert.equal(proxy.sent.at(-1)!.command, 'UNWATCH');
    assert.equal(proxy.sent.at(-1)!.isPrivate, true);
    proxy.answer('+OK');
  }
  assert.equal([...proxy.sequencer.lanes.source.private()].length, 1, 'the second WATCH had the lane of the first');
});

test('WATCH inside MULTI is refused, and the transaction goes on', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('SET', 'k', 'v').send('WATCH', 'k').send('EXEC');
  assert.equal(client.replies[2], '-ERR WATCH inside MULTI is not allowed');
  assert.deepEqual(proxy.took(), ['source MULTI', 'source SET k v', 'source EXEC']);
});

test('WATCH waits for what its client has in flight, and for a stage change', async () => {
  const { client, proxy } = await connect();
  client.send('GET', 'k').send('WATCH', 'k');
  proxy.hold('default');
  proxy.answer('$-1');
  assert.deepEqual(client.waits, ['idle', 'open']);
});
