/** Who answers a command: the interceptors in their order, then the handler of its kind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, settled } from '../../support/context.js';

for (const [kind, command, sent, replies] of [
  ['local', 'SELECT 0', [], []],
  ['keyed', 'GET k', ['source GET k'], []],
  ['script', 'EVAL return(1) 0', ['source EVAL return(1) 0'], []],
  ['exclusive', 'FLUSHALL', ['source FLUSHALL'], []],
  ['broadcast', 'SCRIPT LOAD return(1)', ['source SCRIPT LOAD return(1)'], []],
  ['publish', 'PUBLISH c m', ['source PUBLISH c m'], []],
  ['authority', 'PING', ['source PING'], []],
  ['blocking', 'BLPOP k 0', ['source lpop k'], []],
  ['unknown', 'NOSUCH k', ['source NOSUCH k'], []],
] as const)
  test(`${kind}: ${command}`, async () => {
    const { client, proxy } = await connect();
    client.send(...command.split(' '));
    await settled();
    if (kind === 'local') assert.deepEqual(proxy.took(), ['source SELECT 0']);
    else assert.deepEqual([proxy.took(), client.replies], [sent, replies]);
  });

test('a refused command is refused by its reason, and spoils a transaction', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('MONITOR').send('EXEC');
  assert.match(client.replies[1], /^-ERR shadow-proxy: MONITOR/);
  assert.match(client.replies[2], /^-EXECABORT/);
  assert.deepEqual(proxy.took(), []);
});

test('inside a transaction a blocking command is queued, as any other', async () => {
  const { client, proxy } = await connect();
  client.send('MULTI').send('BLPOP', 'k', '0').send('PUBLISH', 'c', 'm');
  assert.deepEqual([client.replies, proxy.took()], [['+OK', '+QUEUED', '+QUEUED'], []]);
});

test('a write that is not of this region is refused before a transaction takes it', async () => {
  const { client } = await connect({ w: { stage: 'live', writer: 'eu' }, default: 'live' }, { region: 'us' });
  client.send('MULTI').send('INCR', 'w:n').send('EXEC');
  assert.match(client.replies[1], /"w" must not be written here/);
  assert.match(client.replies[2], /^-EXECABORT/);
});

test('while a command runs alone, everything waits, what the proxy answers itself, too', async () => {
  const { client, proxy } = await connect();
  const other = await proxy.connect();
  client.send('FLUSHALL');
  await settled();
  other.send('MULTI');
  assert.deepEqual([other.waits, other.replies], [['open'], []]);
  proxy.answer('+OK');
  await settled();
  assert.deepEqual(other.replies, ['+OK']);
});

test('what may be a counter is offered once, though looked at again; PUBLISH is mirrored like a write', async (t) => {
  const { client, proxy } = await connect();
  const counters = t.mock.method(proxy.clients.counterWatch, 'offer', () => undefined);
  proxy.hold('default');
  client.send('INCR', 'k').send('PUBLISH', 'c', 'm');
  proxy.clients.waitingRoom.open();
  proxy.release('default');
  proxy.clients.waitingRoom.open();
  assert.equal(counters.mock.callCount(), 1);
  assert.deepEqual(
    proxy.sent.map(({ command, follow }) => [command, follow]),
    [
      ['INCR k', 'write'],
      ['PUBLISH c m', 'write'],
    ],
  );
});

test('a form that one server lacks, and what may be a counter, are offered once, though looked at again', async (t) => {
  const { client, proxy } = await connect();
  const forms = t.mock.method(proxy.clients.support, 'offer', () => undefined);
  const counters = t.mock.method(proxy.clients.counterWatch, 'offer', () => undefined);
  proxy.hold('default');
  client.send('EXPIRE', 'k', '5', 'NX').send('INCR', 'k');
  proxy.clients.waitingRoom.open();
  proxy.release('default');
  proxy.clients.waitingRoom.open();
  assert.deepEqual(
    [client.waits, proxy.took()],
    [
      ['open', 'open'],
      ['source EXPIRE k 5 NX', 'source INCR k'],
    ],
  );
  assert.equal(forms.mock.callCount(), 1);
  assert.equal(counters.mock.callCount(), 1 + Number(proxy.sequencer.table.byName('expire')!.watched >= 0));
});
