/** CLIENT: of the proxy's own clients, once the authority has said that this one may ask. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, settled } from '../../../support/context.js';

test('CLIENT ID is the proxy’s own, and the authority says whether the client may ask', async () => {
  const { client, proxy } = await connect();
  client.send('CLIENT', 'ID');
  assert.deepEqual(proxy.took(), ['source CLIENT ID']);
  proxy.answer(':4711');
  client.send('CLIENT', 'ID');
  proxy.answer('-NOPERM');
  assert.deepEqual(client.replies, [':1', '-NOPERM']);
});

test('CLIENT SETNAME does not rename the shared connection', async () => {
  const { client, proxy } = await connect();
  client.send('CLIENT', 'SETNAME', 'app');
  assert.deepEqual(proxy.took(), ['source CLIENT SETNAME the-kit']);
  proxy.answer('+OK');
  client.send('CLIENT', 'GETNAME');
  proxy.answer('$-1');
  assert.deepEqual(client.replies, ['+OK', '$3 app']);
});

test('a name with a space is left to the server, which refuses it', async () => {
  const { client, proxy } = await connect();
  client.send('CLIENT', 'SETNAME', 'a b');
  assert.deepEqual(proxy.took(), ['source CLIENT SETNAME a b']);
  proxy.answer('-ERR');
  assert.deepEqual([client.replies, client.client.name], [['-ERR'], '']);
});

test('CLIENT REPLY OFF silences what follows, ON ends it', async () => {
  const { client, proxy } = await connect();
  client.send('CLIENT', 'REPLY', 'OFF');
  assert.deepEqual(proxy.took(), ['source CLIENT REPLY ON'], 'the shared connection is never silenced');
  proxy.answer('+OK');
  client.send('SET', 'k', 'v').send('MULTI').send('DISCARD');
  proxy.answer('+OK');
  assert.deepEqual([client.replies, proxy.mirrored], [[], ['SET k v']]);
  client.send('CLIENT', 'REPLY', 'ON');
  proxy.answer('+OK');
  assert.deepEqual(client.replies, ['+OK']);
});

test('CLIENT REPLY SKIP silences one command', async () => {
  const { client, proxy } = await connect();
  client.send('CLIENT', 'REPLY', 'SKIP');
  proxy.answer('+OK');
  client.send('GET', 'a').send('GET', 'b');
  proxy.answer('$1 a', '$1 b');
  assert.deepEqual(client.replies, ['$1 b']);
});

test('CLIENT LIST shows the proxy’s clients, by id and by type', async () => {
  const { client, proxy } = await connect();
  await proxy.connect();
  const listed = (...args: string[]): number => {
    client.send('CLIENT', 'LIST', ...args);
    proxy.answer('$0 ');
    return client.replies.at(-1)!.split('id=').length - 1;
  };
  assert.deepEqual(
    [listed(), listed('ID', '2'), listed('ID', '7'), listed('TYPE', 'normal'), listed('TYPE', 'pubsub')],
    [2, 1, 0, 2, 0],
  );
  assert.match(
    client.replies[0],
    /id=1 addr=10\.0\.0\.1:40000 laddr=10\.0\.0\.2:6379 .* db=0 .* user=default redir=-1 resp=2/,
  );
});

test('CLIENT KILL kills clients of the proxy, and not itself unless it is asked to', async () => {
  const { client, proxy } = await connect();
  const other = await proxy.connect();
  client.send('CLIENT', 'KILL', 'TYPE', 'normal');
  assert.deepEqual(proxy.took(), ['source CLIENT KILL ID 9223372036854775807'], 'of no connection of the server');
  assert.equal(other.destroyed, false, 'not before the authority has said that the client may');
  proxy.answer(':0');
  assert.deepEqual([client.replies, other.destroyed, client.ended], [[':1'], true, false]);
  client.send('CLIENT', 'KILL', 'ID', '1', 'SKIPME', 'no');
  proxy.answer(':0');
  assert.deepEqual([client.replies[1], client.ended], [':1', true]);
});

test('CLIENT KILL says what is wrong as Redis does', async () => {
  const { client, proxy } = await connect();
  const killed = (...args: string[]): string => {
    client.send('CLIENT', 'KILL', ...args);
    proxy.answer(':0');
    return client.replies.at(-1)!;
  };
  assert.deepEqual(
    [killed('10.9.9.9:1'), killed('ID', '0'), killed('TYPE', 'x'), killed('ID', '1', 'USER'), killed('COLOR', 'red')],
    [
      '-ERR No such client',
      '-ERR client-id should be greater than 0',
      "-ERR Unknown client type 'x'",
      '-ERR syntax error',
      '-ERR syntax error',
    ],
  );
});

test('what comes behind CLIENT UNBLOCK waits until that is answered', async () => {
  const { client, proxy } = await connect();
  const other = await proxy.connect();
  client.send('XREAD', 'BLOCK', '0', 'STREAMS', 's', '$');
  await settled();
  let answer = (): void => undefined;
  proxy.servers.source.unblocking = new Promise<void>((resolve) => (answer = resolve));
  other.send('CLIENT', 'UNBLOCK', '1').send('GET', 'k');
  proxy.answerTo('CLIENT UNBLOCK 9223372036854775807', ':0');
  await settled();
  assert.equal(proxy.sent.at(-1)!.command, 'CLIENT UNBLOCK 9223372036854775807');
  answer();
  await settled();
  proxy.answerTo('GET k', '$-1');
  assert.deepEqual(other.replies, [':1', '$-1']);
});

test('CLIENT UNBLOCK of a client that does not block returns 0', async () => {
  const { client, proxy } = await connect();
  client.send('CLIENT', 'UNBLOCK', '1');
  assert.deepEqual(proxy.took(), ['source CLIENT UNBLOCK 9223372036854775807']);
  proxy.answer(':0');
  assert.deepEqual(client.replies, [':0']);
});

test('inside MULTI, CLIENT KILL and REPLY are refused, and EXEC refuses', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('CLIENT', 'KILL', 'ID', '1').send('CLIENT', 'REPLY', 'OFF').send('EXEC');
  assert.match(client.replies[1], /^-ERR shadow-proxy: CLIENT KILL inside MULTI/);
  assert.match(client.replies[2], /^-ERR shadow-proxy: CLIENT REPLY inside MULTI/);
  assert.match(client.replies[3], /^-EXECABORT/);
  assert.deepEqual(proxy.took(), []);
});

test('SKIP while replies are off leaves them off', async () => {
  const { client, proxy } = await connect();
  for (const mode of ['OFF', 'SKIP']) {
    client.send('CLIENT', 'REPLY', mode);
    proxy.answer('+OK');
  }
  client.send('GET', 'a').send('GET', 'b');
  proxy.answer('$1 a', '$1 b');
  assert.deepEqual(client.replies, []);
});
