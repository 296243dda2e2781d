/** Commands that run alone, when every lane is empty. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandTable } from '../../../../src/command/table.js';
import { isAboutEveryKey } from '../../../../src/session/handlers/exclusive.js';
import { connect, settled } from '../../../support/context.js';

test('what is about every key: no MOVE, and nothing about code', () => {
  const names = new CommandTable().all.filter(isAboutEveryKey).map(({ name }) => name);
  assert.deepEqual(names, ['flushall', 'flushdb', 'swapdb']);
});

test('an exclusive command waits for commands in flight on every lane, and all other clients wait for it', async () => {
  const { client, proxy } = await connect();
  const other = await proxy.connect();
  other.send('SET', 'k', 'v');
  client.send('FLUSHALL');
  await settled();
  assert.deepEqual(proxy.took(), ['source SET k v']);
  other.send('GET', 'k');
  assert.deepEqual(other.waits, ['open']);
  proxy.answer('+OK');
  await settled();
  assert.deepEqual(proxy.took(), ['source FLUSHALL'], 'the GET still waits');
  proxy.answer('+OK');
  await settled();
  assert.deepEqual([client.replies, proxy.took()], [['+OK'], ['source GET k']]);
  assert.deepEqual([proxy.mirrored, proxy.noted.at(-1)], [['SET k v', 'FLUSHALL'], 'FLUSHALL']);
});

test('it waits for its own client’s commands first, and for a stage change of any workload', async () => {
  const { client, proxy } = await connect({ w: 'shadow', default: 'shadow' });
  client.send('GET', 'k').send('FLUSHALL');
  assert.deepEqual([client.waits, proxy.sequencer.blocked], [['idle'], false]);
  proxy.hold('w');
  proxy.answer('$-1');
  assert.deepEqual([client.waits, proxy.sequencer.blocked], [['idle', 'open'], false]);
});

test('it is refused on a target that other shards share', async () => {
  const { client, proxy } = await connect({ default: 'shadow' }, { sharedTarget: true });
  client.send('FLUSHALL').send('SWAPDB', '0', '1');
  for (const reply of client.replies)
    assert.match(reply, /^-ERR shadow-proxy: (FLUSHALL|SWAPDB) is refused: other shards keep their keys/);
  assert.deepEqual([client.replies.length, proxy.took()], [2, []]);
});

test('it is refused while workloads have different authorities', async () => {
  const { client, proxy } = await connect({ w: 'live', default: 'shadow' });
  client.send('FLUSHDB');
  assert.match(client.replies[0], /^-ERR shadow-proxy: FLUSHDB is refused while workloads have different authorities/);
  assert.deepEqual(proxy.took(), []);
});

test('foreign keys on the target: it is refused there, and not mirrored to there; every key is suspect then', async () => {
  const live = await connect({ default: 'live' }, { ours: false });
  live.client.send('FLUSHALL');
  assert.match(live.client.replies[0], /the target may hold keys that the proxy did not write/);
  const { client, proxy } = await connect({ default: 'shadow' }, { ours: false });
  client.send('FLUSHALL');
  await settled();
  assert.deepEqual([proxy.sent[0].follow, proxy.suspects], ['nothing', ['flushall: every key']]);
  proxy.answer('+OK');
  await settled();
  assert.deepEqual(proxy.suspects, ['flushall: every key', 'flushall: every key'], 'before it, and after it');
  assert.deepEqual(proxy.mirrored, []);
});

test('MOVE goes by its key; a key of another authority is sent there', async () => {
  const { client, proxy } = await connect({ w: 'live', default: 'shadow' });
  client.send('MOVE', 'w:k', '1');
  await settled();
  assert.deepEqual(
    proxy.sent.map(({ side, command, follow }) => [side, command, follow]),
    [['target', 'MOVE w:k 1', 'write']],
  );
});

test('SWAPDB makes every lane of both servers select its database again', async () => {
  const { client, proxy } = await connect();
  const again: string[] = [];
  proxy.sequencer.selectAgain = (side) => void again.push(side);
  client.send('SWAPDB', '0', '1');
  await settled();
  proxy.answer('+OK');
  await settled();
  assert.deepEqual([proxy.suspects, again], [['swapped: SWAPDB 0 1'], ['source']]);
  assert.deepEqual(proxy.mirrored, ['SWAPDB 0 1'], 'its channels select theirs again behind it');
});

test('SWAPDB is under way until the mirror has confirmed it; one that is refused changes no number', async () => {
  const { client, proxy } = await connect();
  const { swaps } = proxy.sequencer;
  client.send('SWAPDB', '0', '1');
  await settled();
  assert.deepEqual([swaps.begun, swaps.underWay], [1, true]);
  proxy.answer('-ERR DB index is out of range');
  await settled();
  assert.deepEqual([swaps.underWay, swaps.unknown, swaps.ids.numberOf(0)], [false, 0, 0]);
  let confirm = (): void => assert.fail('the mirror has nothing to confirm');
  proxy.sequencer.mirrors.target.afterAppended = (then) => void (confirm = then);
  client.send('SWAPDB', '0', '1');
  await settled();
  proxy.answer('+OK');
  await settled();
  assert.deepEqual([client.replies.at(-1), swaps.underWay, swaps.ids.numberOf(0)], ['+OK', true, 0]);
  confirm();
  assert.deepEqual([swaps.underWay, swaps.unknown, swaps.ids.numberOf(0)], [false, 0, 1]);
});

for (const [what, ask] of [
  ['SWAPDB that is lost', ['SWAPDB', '0', '1']],
  ['a script that may call SWAPDB, and is lost', ['EVAL', "return redis.call('SWAPDB', 0, 1)", '0']],
] as const) {
  test(`of ${what} the outcome is unknown`, async () => {
    const { client, proxy } = await connect();
    const { swaps } = proxy.sequencer;
    client.send(...ask);
    await settled();
    assert.equal(swaps.underWay, true);
    proxy.lose('source');
    await settled();
    assert.deepEqual([swaps.underWay, swaps.unknown, swaps.ids.numberOf(0)], [false, 1, 0]);
  });
}

test('a lost authority closes the client, and no other client waits any longer', async () => {
  const { client, proxy } = await connect();
  client.send('FLUSHALL');
  await settled();
  proxy.lose('source');
  await settled();
  assert.deepEqual([client.destroyed, proxy.sequencer.blocked], [true, false]);
  assert.deepEqual(proxy.suspects, ['reply-lost: FLUSHALL']);
});

test('a script that hides what it writes runs alone; one that only reads does not', async () => {
  const { client, proxy } = await connect();
  client.send('EVAL', "return redis.call('GET', ARGV[1])", '0', 'k');
  assert.deepEqual([proxy.sequencer.blocked, proxy.sent[0].follow], [false, 'nothing']);
  proxy.answer('$-1');
  proxy.sequencer.changes.source.start = async () => undefined;
  client.send('EVAL', "return redis.call('SET', ARGV[1], 'v')", '0', 'k');
  await settled();
  assert.equal(proxy.sequencer.blocked, true);
});
