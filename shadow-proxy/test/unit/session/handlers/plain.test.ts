/** Commands without keys, and unknown commands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../../../support/context.js';

test('the authority of the default workload answers, and nothing follows', async () => {
  const { client, proxy } = await connect({ w: 'shadow', default: 'live' });
  client.send('INFO');
  assert.deepEqual(
    proxy.sent.map(({ side, command, follow }) => [side, command, follow]),
    [['target', 'INFO', 'nothing']],
  );
  proxy.answer('$2 ok');
  assert.deepEqual([client.replies, proxy.mirrored, proxy.clients.counts.operations], [['$2 ok'], [], 1]);
});

test('while the default workload changes its stage, it waits, and goes by the new one', async () => {
  const { client, proxy } = await connect();
  proxy.hold('default');
  client.send('INFO');
  assert.deepEqual([client.waits, proxy.took()], [['open'], []]);
  proxy.release('default');
  proxy.move('default', 'live');
  proxy.clients.waitingRoom.open();
  assert.deepEqual(proxy.took(), ['target INFO']);
});

test('what neither server knows is sent all the same, and is no difference between them', async () => {
  const { client, proxy } = await connect();
  client.send('FOO', 'bar');
  proxy.answer('-ERR');
  assert.deepEqual([proxy.took(), client.replies], [['source FOO bar'], ['-ERR']]);
  assert.equal(proxy.counters('default').unsupported.size, 0);
});

test('what one server alone knows is counted once, also where it had to wait', async () => {
  const { client, proxy } = await connect();
  proxy.servers.source.commands.add('new.cmd');
  proxy.hold('default');
  client.send('NEW.CMD');
  proxy.release('default');
  proxy.clients.waitingRoom.open();
  assert.deepEqual([...proxy.counters('default').unsupported], [['new.cmd', { lacks: 'target', calls: 1 }]]);
  assert.equal(proxy.counters('default').newErrors.size, 0, 'the source has answered it');
});

test('what the authority lacks and the other server has is a new error for the client', async () => {
  const { client, proxy } = await connect({ default: 'live' });
  proxy.servers.source.commands.add('new.cmd');
  client.send('NEW.CMD');
  assert.deepEqual([...proxy.counters('default').newErrors], [['new.cmd', 1]]);
});

test('inside MULTI, an unknown command is refused by the proxy where a server knows it, else by the server', async () => {
  const { client, proxy } = await connect();
  proxy.servers.source.commands.add('new.cmd');
  client.send('MULTI').send('NEW.CMD').send('EXEC');
  assert.match(client.replies[1], /^-ERR shadow-proxy: NEW.CMD inside MULTI is not supported/);
  assert.match(client.replies[2], /^-EXECABORT/);
  assert.deepEqual(proxy.took(), []);
  client.send('MULTI').send('FOO').send('EXEC');
  assert.deepEqual(proxy.took(), ['source FOO']);
  proxy.answer('-ERR');
  assert.deepEqual(client.replies.slice(4), ['-ERR', client.replies[2]]);
});

test('KEYS of a KeyDB runs inside MULTI, and the client gets its own reply', async () => {
  const { client, proxy } = await connect({ default: 'complete' });
  client.send('KEYS', '*');
  assert.deepEqual(proxy.took(), ['target MULTI', 'target KEYS *', 'target EXEC']);
  proxy.answer('+OK', '+QUEUED', '*1 *1 $1 a');
  assert.deepEqual(client.replies, ['*1 $1 a']);
  client.send('KEYS', '*');
  proxy.answer('+OK', '-NOPERM', '-EXECABORT');
  assert.deepEqual(client.replies.slice(1), ['-NOPERM'], 'or the first refusal');
});

test('on a shared target, KEYS returns only this shard’s keys', async () => {
  const owned = (key: Buffer, start: number): boolean => key[start] === 97;
  const { client, proxy } = await connect({ default: 'complete' }, { owned });
  client.send('KEYS', '*');
  proxy.answer('+OK', '+QUEUED', '*1 *3 $1 a $1 b $2 ac');
  assert.deepEqual(client.replies, ['*2 $1 a $2 ac']);
});
