/** What the proxy answers itself: who a client is, where, in which protocol; and the frame of a transaction. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HandshakeRefused } from '../../../../src/upstream/server.js';
import { connect, settled } from '../../../support/context.js';
import { until } from '../../../support/shard.js';

test('AUTH asks the authority of the default workload, and holds the client meanwhile', async () => {
  const { client, proxy } = await connect({ default: 'live' });
  const asked: unknown[] = [];
  proxy.servers.target.authenticate = async (args) => (asked.push(args), null);
  client.send('AUTH', 'ann', 'secret').send('GET', 'k');
  assert.deepEqual([client.replies, client.flow.held], [[], true]);
  await settled();
  assert.deepEqual([asked, client.replies], [[['ann', 'secret']], ['+OK']]);
  assert.deepEqual(client.client.credentials, { username: 'ann', password: 'secret' });
  assert.equal(client.client.login.states.target, 'admitted');
  assert.equal(client.client.login.states.source, 'unknown', 'the other server has its own say');
});

test('AUTH behind commands in flight waits for their replies', async () => {
  const { client, proxy } = await connect();
  client.send('GET', 'k').send('AUTH', 'secret');
  await settled();
  assert.deepEqual(client.replies, []);
  proxy.answer('$1 v');
  await settled();
  assert.deepEqual(client.replies, ['$1 v', '+OK']);
});

test('a refused AUTH leaves the client as it was', async () => {
  const { client, proxy } = await connect();
  proxy.servers.source.refusal = 'WRONGPASS no';
  client.send('AUTH', 'guess').send('GET', 'k');
  // A timer gives the answer: at once for the first guesses.
  await until(() => client.replies.length > 0);
  assert.deepEqual([client.replies, client.client.credentials], [['-WRONGPASS no'], undefined]);
  assert.deepEqual(proxy.took(), ['source GET k']);
});

test('AUTH and HELLO are refused with wrong arguments, and inside MULTI', async () => {
  const { client, proxy } = await connect();
  const refused = [['AUTH'], ['AUTH', 'a', 'b', 'c'], ['HELLO', '4'], ['HELLO', 'x'], ['SELECT'], ['RESET', '1']];
  for (const args of refused) client.send(...args);
  client.send('MULTI').send('AUTH', 'x').send('HELLO', '3').send('EXEC');
  assert.deepEqual(client.replies, [
    "-ERR wrong number of arguments for 'auth' command",
    '-ERR syntax error',
    '-NOPROTO unsupported protocol version',
    '-ERR Protocol version is not an integer or out of range',
    "-ERR wrong number of arguments for 'select' command",
    "-ERR wrong number of arguments for 'reset' command",
    '+OK',
    '-ERR shadow-proxy: AUTH inside MULTI is not supported',
    '-ERR shadow-proxy: HELLO inside MULTI is not supported',
    '-EXECABORT Transaction discarded because of previous errors.',
  ]);
  assert.deepEqual(proxy.took(), []);
});

test('HELLO 3 asks the authority in the old protocol, then greets in the new one', async () => {
  const { client, proxy } = await connect();
  client.send('HELLO', '3', 'SETNAME', 'app');
  assert.deepEqual(proxy.took(), ['source HELLO 2']);
  proxy.answer('+OK');
  assert.match(client.replies[0], /^%7 \$6 server \$5 redis \$7 version \$6 7\.0\.15 \$5 proto :3 \$2 id :1 /);
  assert.deepEqual([client.client.protocol, client.client.name], [3, 'app']);
});

test('HELLO that the authority refuses, or with a wrong option, changes nothing', async () => {
  const { client, proxy } = await connect();
  client.send('HELLO', '3', 'SETNAME', 'app');
  proxy.answer('-NOAUTH');
  client.send('HELLO', '3', 'COLOR');
  assert.deepEqual(client.replies, ['-NOAUTH', "-ERR Syntax error in HELLO option 'COLOR'"]);
  assert.deepEqual([client.client.protocol, client.client.name], [2, '']);
});

test('another proxy is not let in as a client', async () => {
  const { client, proxy } = await connect();
  client.send('HELLO', '3', 'SETNAME', 'shadow-proxy-eu:1');
  assert.match(client.replies[0], /^-ERR this is a shadow-proxy, not a server/);
  assert.deepEqual([client.client.protocol, proxy.took()], [2, []]);
});

test('SELECT moves the client once the authority has let it in there', async () => {
  const { client, proxy } = await connect();
  client.send('SELECT', '3').send('SET', 'k', 'v');
  assert.deepEqual(proxy.sent, [], 'what comes behind waits');
  await settled();
  assert.deepEqual(client.replies, ['+OK']);
  assert.deepEqual(
    proxy.sent.map(({ command, db }) => [command, db]),
    [['SET k v', 3]],
  );
});

test('SELECT of the database at hand, or of none, is answered by the authority', async () => {
  const { client, proxy } = await connect();
  client.send('SELECT', '0').send('SELECT', '-1').send('SELECT', '007');
  assert.deepEqual(proxy.took(), ['source SELECT 0', 'source SELECT -1', 'source SELECT 007']);
});

test('SELECT that is refused leaves the client in its database; what follows goes on', async () => {
  const { client, proxy } = await connect();
  const { open } = proxy.servers.source;
  proxy.servers.source.open = async (options) => {
    if (options.db === 99) throw new HandshakeRefused('ERR DB index is out of range');
    return open(options);
  };
  client.send('SELECT', '99').send('GET', 'k');
  await settled();
  assert.deepEqual([client.replies, client.client.db], [['-ERR DB index is out of range'], 0]);
  assert.deepEqual(proxy.took(), ['source GET k']);
});

test('RESET makes the client what it was when it came', async () => {
  const { client } = await connect();
  client.send('SELECT', '2');
  await settled();
  client.client.rename('app');
  client.send('MULTI').send('RESET').send('EXEC');
  await settled();
  assert.deepEqual(client.replies, ['+OK', '+OK', '+RESET', '-ERR EXEC without MULTI']);
  assert.deepEqual([client.client.db, client.client.name, client.client.transaction], [0, '', null]);
});

test('QUIT is answered behind what is in flight, and is the last', async () => {
  const { client, proxy } = await connect();
  client.send('GET', 'k').send('QUIT').send('GET', 'j');
  proxy.answer('$-1');
  assert.deepEqual([client.replies, client.ended, proxy.took()], [['$-1', '+OK'], true, ['source GET k']]);
});

test('MULTI, EXEC and DISCARD out of their places', async () => {
  const { client, proxy } = await connect();
  client.send('EXEC').send('DISCARD').send('MULTI').send('MULTI').send('DISCARD').send('EXEC');
  assert.deepEqual(client.replies, [
    '-ERR EXEC without MULTI',
    '-ERR DISCARD without MULTI',
    '+OK',
    '-ERR MULTI calls can not be nested',
    '+OK',
    '-ERR EXEC without MULTI',
  ]);
  assert.deepEqual(proxy.took(), []);
});

test('an empty transaction needs no server', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('EXEC');
  assert.deepEqual([client.replies, proxy.took(), client.client.transaction], [['+OK', '*0'], [], null]);
});

test('EXEC with an argument discards the transaction', async () => {
  const { client } = await connect();
  client.send('MULTI').send('EXEC', '1').send('EXEC');
  assert.match(client.replies[1], /^-EXECABORT .* wrong number of arguments for 'exec' command/);
  assert.equal(client.replies[2], '-ERR EXEC without MULTI');
});

test('a client that has to log in gets no transaction', async () => {
  const { client } = await connect();
  client.mustLogIn = true;
  client.send('MULTI').send('EXEC');
  assert.deepEqual(client.replies, [
    '-NOAUTH Authentication required.',
    '-EXECABORT Transaction discarded because of: NOAUTH Authentication required.',
  ]);
});

test('an HTTP request closes the connection without a word', async () => {
  const { client, proxy } = await connect();
  client.send('POST', '/').send('SET', 'k', 'v');
  assert.deepEqual([client.destroyed, client.replies, proxy.took()], [true, [], []]);
});
