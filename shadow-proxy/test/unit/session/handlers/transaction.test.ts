/** MULTI … EXEC: gathered here, sent as one batch, mirrored as one batch. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, settled } from '../../../support/context.js';

test('the queue is answered here; EXEC sends all of it, and what happened is mirrored as one transaction', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('SET', 'k', 'v').send('INCR', 'n');
  assert.deepEqual([client.replies, proxy.took()], [['+OK', '+QUEUED', '+QUEUED'], []]);
  client.send('EXEC');
  assert.deepEqual(proxy.noted, ['SET k v', 'INCR n']);
  assert.deepEqual(proxy.took(), ['source MULTI', 'source SET k v', 'source INCR n', 'source EXEC']);
  proxy.answer('+OK', '+QUEUED', '+QUEUED', '*2 +OK :1');
  assert.deepEqual(client.replies.slice(3), ['*2 +OK :1']);
  assert.deepEqual(proxy.mirrored, ['MULTI', 'SET k v', 'INCR n', 'EXEC']);
});

test('a command that fails inside is not mirrored', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('SET', 'k', 'v').send('LPUSH', 'k', 'x').send('EXEC');
  proxy.answer('+OK', '+QUEUED', '+QUEUED', '*2 +OK -WRONGTYPE');
  assert.deepEqual(proxy.mirrored, ['MULTI', 'SET k v', 'EXEC']);
});

test('MULTI; SET; CLIENT ID; GET; EXEC: the reply of the proxy’s own stands in its place', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('SET', 'k', 'v').send('CLIENT', 'ID');
  proxy.answer(':4711');
  client.send('GET', 'k').send('EXEC');
  assert.deepEqual(client.replies, ['+OK', '+QUEUED', '+QUEUED', '+QUEUED']);
  assert.deepEqual(proxy.took().slice(1), ['source MULTI', 'source SET k v', 'source GET k', 'source EXEC']);
  proxy.answer('+OK', '+QUEUED', '+QUEUED', '*2 +OK $1 v');
  assert.deepEqual(client.replies.slice(4), ['*3 +OK :1 $1 v']);
});

test('MULTI; SET; CLIENT ID; EXEC: also as the last one, and beside one of two words', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('CLIENT', 'GETNAME');
  proxy.answer('$-1');
  client.send('SET', 'k', 'v').send('CLIENT', 'ID');
  proxy.answer(':4711');
  client.send('EXEC');
  proxy.answer('+OK', '+QUEUED', '*1 +OK');
  assert.deepEqual(client.replies.at(-1), '*3 $-1 +OK :1');
});

test('a refused command has EXEC refuse, and nothing is sent', async () => {
  const { client, proxy } = await connect();
  const refused = [
    ['SET', 'k'],
    ['SUBSCRIBE', 'c'],
    ['SCRIPT', 'FLUSH'],
    ['CONFIG', 'SET', 'maxmemory', '1'],
    ['SAVE'],
  ];
  for (const command of refused) {
    client
      .send('MULTI')
      .send('SET', 'k', 'v')
      .send(...command)
      .send('EXEC');
    const [error, aborted] = client.replies.slice(-2);
    assert.match(error, /^-ERR /, command.join(' '));
    assert.equal(aborted, '-EXECABORT Transaction discarded because of previous errors.');
  }
  assert.deepEqual(proxy.took(), []);
});

test('keys of two authorities are refused as they are queued, by the names of both', async () => {
  const { client, proxy } = await connect({ old: 'shadow', new: 'live', default: 'shadow' });
  client.send('MULTI').send('SET', 'old:k', 'v').send('SET', 'new:k', 'v').send('EXEC');
  assert.match(
    client.replies[2],
    /^-ERR shadow-proxy: A TRANSACTION spans workload "new" \(stage live\) and workload "old"/,
  );
  assert.match(client.replies[3], /^-EXECABORT/);
  assert.deepEqual([proxy.took(), proxy.clients.counts.refused], [[], 1]);
});

test('keys whose authorities differ only by EXEC: it fails, and nothing is sent', async () => {
  const { client, proxy } = await connect({ a: 'shadow', b: 'shadow', default: 'shadow' });
  client.send('MULTI').send('SET', 'a:k', 'v').send('SET', 'b:k', 'v');
  proxy.move('b', 'live');
  client.send('EXEC');
  assert.match(client.replies[3], /^-ERR shadow-proxy: A TRANSACTION spans workload "a".* and workload "b"/);
  assert.deepEqual([proxy.took(), client.client.transaction], [[], null]);
});

test('EXEC goes by the stages as they are then, and waits while one changes', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('SET', 'k', 'v');
  proxy.hold('default');
  client.send('EXEC');
  assert.deepEqual([client.waits, proxy.took()], [['open'], []]);
  proxy.release('default');
  proxy.move('default', 'live');
  proxy.clients.waitingRoom.open();
  assert.deepEqual(proxy.took(), ['target MULTI', 'target SET k v', 'target EXEC']);
});

test('the bytes of a transaction are bounded: at the limit it is queued, above it is refused by the option', async () => {
  const { client, proxy } = await connect();
  const set = (bytes: number): string => {
    client.send('MULTI').send('SET', 'k', 'v'.repeat(bytes));
    const { bytes: taken } = client.client.transaction!;
    client.send('DISCARD');
    return `${taken} ${client.replies.at(-2)!}`;
  };
  // 256 for the command, and its frame: 37 bytes around the value, of which its length takes six digits.
  const room = (1 << 20) - 256 - '*3 $3 SET $1 k $9 '.length - 6 - 10;
  const { transactionBytes } = proxy.clients.limits.bounds;
  const [most] = [room, room + 1, room + 2, room + 3, room + 4, room + 5]
    .map((bytes) => [bytes, set(bytes)] as const)
    .filter(([, said]) => said.startsWith(`${transactionBytes} `));
  assert.equal(most[1], `${transactionBytes} +QUEUED`);
  assert.match(set(most[0] + 1), /^0 -ERR shadow-proxy: the transaction takes more than 1048576 bytes/);
});

test('DISCARD forgets the queue', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('SET', 'k', 'v').send('DISCARD').send('GET', 'k');
  assert.deepEqual(proxy.took(), ['source GET k']);
});

test('SELECT inside moves the client if it took effect, and the keys behind it are of that database', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('SELECT', '2').send('SET', 'k', 'v').send('EXEC');
  await settled();
  assert.deepEqual(proxy.took(), [
    'source MULTI',
    'source SELECT 0',
    'source SELECT 2',
    'source SET k v',
    'source SELECT 2',
    'source EXEC',
  ]);
  proxy.answer('+OK', '+QUEUED', '+QUEUED', '+QUEUED', '+QUEUED', '*4 +OK +OK +OK +OK');
  assert.deepEqual([client.replies.at(-1), client.client.db], ['*2 +OK +OK', 2]);
});

test('the connection is lost before EXEC is answered: what it writes is suspect', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('SET', 'k', 'v').send('GET', 'k').send('EXEC');
  proxy.lose('source');
  assert.deepEqual([client.destroyed, proxy.suspects], [true, ['reply-lost: SET k v']]);
});

test('PUBLISH inside is mirrored with it', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('PUBLISH', 'c', 'm').send('EXEC');
  proxy.answer('+OK', '+QUEUED', '*1 :0');
  assert.deepEqual(proxy.mirrored, ['MULTI', 'PUBLISH c m', 'EXEC']);
});

test('FLUSHALL inside runs alone, and is refused like one by itself', async () => {
  const { client, proxy } = await connect({ w: 'live', default: 'shadow' });
  client.send('MULTI').send('FLUSHALL').send('EXEC');
  assert.match(client.replies[1], /^-ERR shadow-proxy: FLUSHALL is refused while workloads have different authorities/);
  const alone = await connect();
  alone.client.send('MULTI').send('FLUSHALL').send('EXEC');
  assert.equal(alone.proxy.sequencer.blocked, true);
  assert.deepEqual(proxy.took(), []);
});
