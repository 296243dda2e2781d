/** Commands on keys: to the authority of their workload, and what follows on the mirror. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stage } from '../../../../src/route/stage.js';
import { connect, settled } from '../../../support/context.js';

const WAYS: readonly [Stage, string, string, string][] = [
  ['off', 'source', 'nothing', 'nothing'],
  ['dualwrite', 'source', 'write', 'nothing'],
  ['shadow', 'source', 'write', 'read'],
  ['live', 'target', 'write', 'read'],
  ['rampdown', 'target', 'write', 'nothing'],
  ['complete', 'target', 'nothing', 'nothing'],
];

for (const [stage, authority, write, read] of WAYS)
  test(`in ${stage}, the ${authority} answers; a write is followed by ${write}, a read by ${read}`, async () => {
    const { client, proxy } = await connect({ default: stage });
    client.send('SET', 'k', 'v').send('GET', 'k');
    assert.deepEqual(
      proxy.sent.map(({ side, command, follow }) => [side, command, follow]),
      [
        [authority, 'SET k v', write],
        [authority, 'GET k', read],
      ],
    );
    assert.deepEqual(proxy.noted, write === 'write' ? ['k'] : [], 'a write that is mirrored is noted, by its key');
    proxy.answer('+OK', '$1 v');
    assert.deepEqual(client.replies, ['+OK', '$1 v']);
    assert.deepEqual(proxy.mirrored, [
      ...(write === 'write' ? ['SET k v'] : []),
      ...(read === 'read' ? ['GET k'] : []),
    ]);
    assert.deepEqual(proxy.suspects, []);
  });

test('a write with several keys is noted as a whole', async () => {
  const { client, proxy } = await connect();
  client.send('MSET', 'a', '1', 'b', '2');
  assert.deepEqual(proxy.noted, ['MSET a 1 b 2']);
});

test('a command with keys of several slots is counted when it is sent, not while a stage change holds it', async () => {
  const { client, proxy } = await connect({ w: 'shadow', default: 'shadow' });
  proxy.hold('w');
  client.send('MSET', 'a', '1', 'b', '2', 'w:c', '3');
  assert.deepEqual([proxy.sent, proxy.counters('default').spanning], [[], 0]);
  proxy.release('w');
  proxy.clients.waitingRoom.open();
  assert.deepEqual([proxy.took(), proxy.counters('default').spanning], [['source MSET a 1 b 2 w:c 3'], 1]);
});

test('a write that the authority refuses is not mirrored', async () => {
  const { client, proxy } = await connect();
  client.send('LPUSH', 'k', 'v');
  proxy.answer('-WRONGTYPE');
  assert.deepEqual([client.replies, proxy.mirrored, proxy.suspects], [['-WRONGTYPE'], [], []]);
  assert.equal(proxy.counters('default').refused, 1);
});

test('what a pop took is what the mirror removes', async () => {
  const { client, proxy } = await connect();
  client.send('SPOP', 'k');
  proxy.answer('$1 v');
  assert.deepEqual(proxy.mirrored, ['SREM k v']);
});

test('a write whose keys follow different rules of one authority is copied, not repeated', async () => {
  const { client, proxy } = await connect({ off: 'off', default: 'shadow' });
  client.send('MSET', 'off:a', '1', 'b', '2');
  assert.deepEqual([proxy.sent[0].follow, proxy.sent[0].mustCopy], ['write', true]);
  proxy.answer('+OK');
  assert.deepEqual([proxy.mirrored, proxy.suspects], [[], ['copy: MSET off:a 1 b 2']]);
});

test('a read whose keys follow different rules is not compared', async () => {
  const { client, proxy } = await connect({ off: 'off', default: 'shadow' });
  client.send('MGET', 'off:a', 'b');
  assert.deepEqual(
    proxy.sent.map(({ follow }) => follow),
    ['nothing'],
  );
});

test('keys of different authorities: what is atomic is refused by the names of both workloads, and counted', async () => {
  const { client, proxy } = await connect({ old: 'shadow', new: 'live', default: 'shadow' });
  client.send('MSET', 'old:a', '1', 'new:b', '2');
  assert.match(client.replies[0], /^-ERR shadow-proxy: MSET spans workload "old" \(stage shadow\) and workload "new"/);
  assert.deepEqual([proxy.sent, proxy.clients.counts.refused, proxy.clients.counts.split], [[], 1, 0]);
});

test('while its workload changes the stage, a command waits, and goes by the new one', async () => {
  const { client, proxy } = await connect();
  proxy.hold('default');
  client.send('SET', 'k', 'v').send('MSET', 'a', '1', 'b', '2');
  assert.deepEqual([client.waits, proxy.took()], [['open'], []]);
  proxy.move('default', 'live');
  proxy.release('default');
  proxy.clients.waitingRoom.open();
  assert.deepEqual(proxy.took(), ['target SET k v', 'target MSET a 1 b 2']);
});

test('a second read that an effect needs goes right behind its command, and decides what is mirrored', async () => {
  const { client, proxy } = await connect();
  client.send('XADD', 's', 'MAXLEN', '~', '10', '*', 'f', 'v');
  assert.deepEqual(
    proxy.sent.map(({ command, follow }) => [command, follow]),
    [
      ['XADD s MAXLEN ~ 10 * f v', 'nothing'],
      ['XLEN s', 'nothing'],
    ],
  );
  proxy.answer('$3 1-1', ':7');
  assert.deepEqual(client.replies, ['$3 1-1']);
  assert.deepEqual(proxy.mirrored, ['XADD s 1-1 f v', 'XTRIM s MAXLEN 7']);
});

test('a lost connection closes the client, and what it wrote is suspect', async () => {
  const { client, proxy } = await connect();
  client.send('SET', 'k', 'v').send('GET', 'j');
  proxy.lose('source');
  await settled();
  assert.deepEqual([client.destroyed, proxy.suspects], [true, ['reply-lost: SET k v']]);
});

test('percent sends the keys of its slots to the target, and the others to the source', async () => {
  const { client, proxy } = await connect({ w: { stage: 'live', percent: 50 }, default: 'shadow' });
  // Slots of {a} and {c}: 15495 and 7365 of 16384.
  client.send('GET', 'w:{c}');
  proxy.answer('$-1');
  client.send('GET', 'w:{a}');
  proxy.answer('$-1');
  assert.deepEqual(proxy.took(), ['target GET w:{c}', 'source GET w:{a}']);
});

test('COPY to another database, and SORT with a pattern, are not sent as what they seem', async () => {
  const { client, proxy } = await connect({ new: 'live', default: 'shadow' });
  client.send('SORT', 'k', 'BY', 'w_*');
  assert.match(client.replies[0], /^-ERR shadow-proxy: SORT with a pattern reads keys that the proxy cannot know/);
  client.send('COPY', 'a', 'b', 'DB', '1');
  await settled();
  assert.equal(proxy.sequencer.blocked, true, 'it runs alone');
  assert.deepEqual(proxy.took(), ['source COPY a b DB 1']);
});

test('a read over keys of different stages follows nowhere; a write follows, and its keys are copied', async () => {
  // Both have the source as their authority, so one command may span them.
  const { client, proxy } = await connect({ off: 'off', default: 'shadow' });
  for (const command of [
    ['MGET', 'a', 'off:b'],
    ['MGET', 'off:b', 'a'],
  ]) {
    client.send(...command);
    assert.deepEqual(
      proxy.sent.splice(0).map(({ follow }) => follow),
      ['nothing'],
      command.join(' '),
    );
    proxy.answer('*2 $-1 $-1');
  }
  for (const command of [
    ['MSET', 'a', '1', 'off:b', '2'],
    ['MSET', 'off:b', '2', 'a', '1'],
  ]) {
    client.send(...command);
    assert.deepEqual(
      proxy.sent.splice(0).map(({ follow, mustCopy }) => [follow, mustCopy]),
      [['write', true]],
      command.join(' '),
    );
    proxy.answer('+OK');
  }
});
