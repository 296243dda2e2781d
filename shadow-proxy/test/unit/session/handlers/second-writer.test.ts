/** Writes on a workload that another region writes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, type FakeOptions, type FakeClient, type FakeProxy } from '../../../support/context.js';

const scene = (
  stage: 'off' | 'shadow' | 'live',
  options: FakeOptions = {},
): Promise<{ readonly client: FakeClient; readonly proxy: FakeProxy }> =>
  connect({ w: { stage, writer: 'eu' }, default: stage }, { region: 'us', ...options });

test('a write is refused by the names of the workload and both regions, and counted', async () => {
  const { client, proxy } = await scene('live');
  client.send('INCR', 'w:n');
  assert.deepEqual(client.replies, [
    '-ERR shadow-proxy: "w" must not be written here: its only writer is eu, and this is the proxy of us: send writes to the proxy of eu',
  ]);
  assert.deepEqual([proxy.took(), proxy.secondWriterWrites('w')], [[], 1]);
});

test('reads, and writes of other workloads, go their way; a second key is looked at, too', async () => {
  const { client, proxy } = await scene('live');
  client.send('GET', 'w:n').send('SET', 'k', 'v').send('COPY', 'w:n', 'k');
  assert.deepEqual([client.replies, proxy.secondWriterWrites('w')], [[], 0]);
  assert.equal(proxy.took().length, 3);
  client.send('MSET', 'k', '1', 'w:n', '2');
  proxy.answer('$-1', '+OK', ':0');
  assert.match(client.replies.at(-1)!, /"w" must not be written here/);
  assert.equal(proxy.secondWriterWrites('w'), 1);
});

test('while only the source has it, this region writes it; from dual-writing on it does not', async () => {
  const off = await scene('off');
  off.client.send('INCR', 'w:n');
  assert.deepEqual([off.proxy.took(), off.proxy.secondWriterWrites('w')], [['source INCR w:n'], 0]);
  const shadow = await scene('shadow');
  shadow.client.send('INCR', 'w:n');
  assert.deepEqual([shadow.proxy.took(), shadow.proxy.secondWriterWrites('w')], [[], 1]);
});

test('what is only counted is counted once, however often it has to wait', async () => {
  const { client, proxy } = await scene('live', { secondWriter: 'count' });
  proxy.hold('w');
  client.send('INCR', 'w:n');
  proxy.clients.waitingRoom.open();
  proxy.release('w');
  proxy.clients.waitingRoom.open();
  assert.deepEqual([client.waits, proxy.took()], [['open', 'open'], ['target INCR w:n']]);
  assert.equal(proxy.secondWriterWrites('w'), 1);
});

test('what does not tell its keys may write there: refused; a script that writes nothing is not', async () => {
  const { client, proxy } = await scene('live');
  client.send('FLUSHALL').send('EVAL', "return redis.call('SET', ARGV[1], 'v')", '0', 'k');
  assert.match(client.replies[0], /FLUSHALL does not name its keys, and may write to "w": its only writer is eu/);
  assert.match(client.replies[1], /EVAL does not name its keys.* declare the keys, or send it to the proxy of eu$/);
  client.send('EVAL', "return redis.call('GET', KEYS[1])", '1', 'w:n').send('EVAL_RO', 'return 1', '0');
  assert.equal(client.replies.length, 2);
  assert.equal(proxy.secondWriterWrites('w'), 2);
});
