/** Commands whose keys have different authorities are split, and each authority answers for its keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, settled } from '../../../support/context.js';

const STAGES = { old: 'shadow', new: 'live', default: 'shadow' } as const;

test('MGET is split between both authorities, and its values come in the order of its keys', async () => {
  const { client, proxy } = await connect(STAGES);
  client.send('MGET', 'old:a', 'new:b', 'old:c');
  await settled();
  assert.deepEqual(
    proxy.sent.map(({ side, command, follow }) => [side, command, follow]),
    [
      ['source', 'mget old:a old:c', 'read'],
      ['target', 'mget new:b', 'read'],
    ],
  );
  proxy.answer('*2 $1 1 $-1');
  await settled();
  assert.deepEqual(client.replies, [], 'not before all parts are answered');
  proxy.answer('*1 $1 2');
  await settled();
  assert.deepEqual(client.replies, ['*3 $1 1 $1 2 $-1']);
  assert.equal(proxy.clients.counts.split, 1);
});

test('DEL returns the sum of its parts; each part is noted, and replicated to its own mirror', async () => {
  const { client, proxy } = await connect(STAGES);
  client.send('DEL', 'old:a', 'new:b', 'old:c');
  await settled();
  assert.deepEqual(proxy.noted, ['del old:a old:c', 'del new:b']);
  proxy.answer(':2', ':1');
  await settled();
  assert.deepEqual([client.replies, proxy.mirrored], [[':3'], ['del old:a old:c', 'del new:b']]);
});

test('keys of one authority that follow different rules: that part is copied', async () => {
  const { client, proxy } = await connect({ ...STAGES, off: 'off' });
  client.send('DEL', 'old:a', 'off:b', 'new:c');
  await settled();
  assert.deepEqual(
    proxy.sent.map(({ command, mustCopy }) => [command, mustCopy]),
    [
      ['del old:a off:b', true],
      ['del new:c', false],
    ],
  );
  proxy.answer(':2', ':1');
  await settled();
  assert.deepEqual(proxy.suspects, ['copy: del old:a off:b']);
});

test('an error of one part is the answer', async () => {
  const { client, proxy } = await connect(STAGES);
  client.send('DEL', 'old:a', 'new:b');
  await settled();
  proxy.answer(':1', '-NOPERM no');
  await settled();
  assert.deepEqual(client.replies, ['-NOPERM no']);
});

test('what follows waits; a lost server closes the client, and its part is suspect', async () => {
  const { client, proxy } = await connect(STAGES);
  client.send('DEL', 'old:a', 'new:b').send('GET', 'old:a');
  await settled();
  assert.equal(proxy.took().length, 2);
  proxy.lose('target');
  proxy.answer(':1');
  await settled();
  assert.deepEqual([client.destroyed, client.replies, proxy.took()], [true, [], []]);
  assert.deepEqual(proxy.suspects, ['reply-lost: del new:b']);
});

test('a stage change that begins before it is sent: it waits for that, and goes as one by the new stages', async () => {
  const { client, proxy } = await connect(STAGES);
  client.send('MGET', 'old:a', 'new:b');
  proxy.hold('old');
  await settled();
  assert.deepEqual([client.waits.at(-1), proxy.took()], ['open', []]);
  proxy.release('old');
  proxy.move('old', 'live');
  proxy.clients.waitingRoom.open();
  assert.deepEqual(proxy.took(), ['target MGET old:a new:b']);
});

test('a key in flight on another lane: nothing is sent before it is free', async () => {
  const { client, proxy } = await connect(STAGES);
  const other = await proxy.connect();
  other.send('HELLO', '3');
  await settled();
  proxy.answer('%0');
  await settled();
  other.send('SET', 'old:a', 'v');
  await settled();
  proxy.took();
  client.send('DEL', 'old:a', 'new:b');
  await settled();
  assert.deepEqual(proxy.took(), []);
  proxy.answerTo('SET old:a v', '+OK');
  await settled();
  assert.deepEqual(proxy.took(), ['source del old:a', 'target del new:b']);
});
