/** Commands that block: asked without blocking first, then on a lane of their own, then again with the time left. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { asksToBlock } from '../../../../src/session/handlers/blocking.js';
import { connect, settled, type FakeClient, type FakeProxy } from '../../../support/context.js';
import { until } from '../../../support/shard.js';

/** A client that blocks with this command, on a clock that the test moves on; it has found nothing. */
async function blocked(
  t: TestContext,
  ...command: string[]
): Promise<{ client: FakeClient; proxy: FakeProxy; later(ms: number): Promise<void> }> {
  let now = 1_000;
  t.mock.method(performance, 'now', () => now);
  const { client, proxy } = await connect();
  const later = async (ms: number): Promise<void> => {
    now += ms;
    await settled();
  };
  client.send(...command);
  if (command[0] !== 'WAIT') proxy.answer('*-1');
  await settled();
  proxy.mirrored.length = 0;
  return { client, proxy, later };
}

/** The servers let go of it, as for a stage change. */
async function interrupt({ client, proxy }: { client: FakeClient; proxy: FakeProxy }): Promise<void> {
  const over = client.client.blocked!.interrupt();
  proxy.answer('*-1');
  await over;
}

test('which commands ask to block', async () => {
  const { client, proxy } = await connect();
  const asks = (...args: string[]): boolean => {
    client.parser.feed(Buffer.from(`*${args.length}\r\n${args.map((a) => `$${a.length}\r\n${a}\r\n`).join('')}`));
    client.parser.next();
    return asksToBlock(client, proxy.sequencer.table.byName(args[0].toLowerCase())!.blocking!);
  };
  assert.equal(asks('BLPOP', 'k', '0'), true);
  assert.equal(asks('WAIT', '1', '0'), true);
  assert.equal(asks('XREAD', 'BLOCK', '0', 'STREAMS', 's', '$'), true);
  assert.equal(asks('XREAD', 'COUNT', '1', 'STREAMS', 'block', '0'), false, 'a stream of that name');
  assert.equal(asks('XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 's', '>'), false);
});

test('a command that blocks on keys of several slots is counted once, however often it looks at its route', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'a', 'b', '0');
  assert.notEqual(client.client.blocked, null);
  assert.equal(proxy.counters('default').spanning, 1);
});

test('what is there already is taken on the shared lane, in its order', async () => {
  const { client, proxy } = await connect();
  client.send('BLPOP', 'k', '0');
  assert.deepEqual(proxy.sent, [
    { side: 'source', command: 'lpop k', follow: 'write', mustCopy: false, db: 0, isPrivate: false },
  ]);
  assert.deepEqual(proxy.noted, ['lpop k']);
  proxy.answer('$1 v');
  assert.deepEqual([client.replies, proxy.mirrored], [['*2 $1 k $1 v'], ['lpop k']]);
  assert.deepEqual([client.client.blocked, proxy.clients.blocked.size], [null, 0]);
});

test('where nothing is there, it is sent as it came, on a lane of its own; what it took is mirrored', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '10');
  assert.deepEqual(
    proxy.sent.map(({ command, follow, isPrivate }) => [command, follow, isPrivate]),
    [
      ['lpop k', 'write', false],
      ['BLPOP k 10', 'nothing', true],
    ],
  );
  assert.deepEqual(proxy.noted, ['lpop k', 'BLPOP k 10']);
  assert.deepEqual([client.client.blocked!.isWaiting, client.client.blocked!.isSent], [true, true]);
  proxy.answer('*2 $1 k $1 v');
  assert.deepEqual([client.replies, client.client.blocked], [['*2 $1 k $1 v'], null]);
});

test('what comes behind it waits, and goes on when it is over', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '10');
  client.send('GET', 'j');
  proxy.took();
  proxy.answer('*-1');
  assert.deepEqual([client.replies, proxy.took()], [['*-1'], ['source GET j']]);
});

for (const { command, after, again } of [
  { command: ['BLPOP', 'k', '10'], after: 3_456, again: 'BLPOP k 6.544' },
  { command: ['BLMPOP', '10', '1', 'k', 'LEFT'], after: 9_900, again: 'BLMPOP 0.1 1 k LEFT' },
  { command: ['XREAD', 'BLOCK', '5000', 'STREAMS', 's', '0'], after: 1_234, again: 'XREAD BLOCK 3766 STREAMS s 0' },
  { command: ['BRPOP', 'k', '0'], after: 100_000, again: 'BRPOP k 0' },
  { command: ['BLMOVE', 'k', 'j', 'LEFT', 'RIGHT', '2.5'], after: 1_250, again: 'BLMOVE k j LEFT RIGHT 1.25' },
  { command: ['BZPOPMIN', 'k', '60'], after: 59_800, again: 'BZPOPMIN k 0.2' },
  { command: ['BRPOP', 'k', '1'], after: 999, again: 'BRPOP k 0.002' },
])
  test(`${command.join(' ')}, interrupted after ${after} ms, is sent again as ${again}`, async (t) => {
    const scene = await blocked(t, ...command);
    const { client, proxy, later } = scene;
    await interrupt(scene);
    await later(after);
    proxy.took();
    proxy.clients.waitingRoom.open();
    await settled();
    assert.deepEqual([proxy.took(), client.replies], [[`source ${again}`], []]);
  });

test('whose time is over when the stage change has ended is answered at once, and not sent again', async (t) => {
  const scene = await blocked(t, 'BLPOP', 'k', '10');
  const { client, proxy, later } = scene;
  await interrupt(scene);
  await later(10_000);
  proxy.took();
  proxy.clients.waitingRoom.open();
  assert.deepEqual([client.replies, proxy.took(), proxy.clients.blocked.size], [['*-1'], [], 0]);
});

test('sent again, it goes to the server that is the authority by then', async (t) => {
  const scene = await blocked(t, 'BLPOP', 'k', '10');
  await interrupt(scene);
  const { proxy } = scene;
  proxy.took();
  proxy.move('default', 'live');
  proxy.clients.waitingRoom.open();
  await settled();
  assert.deepEqual(proxy.took(), ['target BLPOP k 10']);
});

test('several that were interrupted are sent again in the order in which they came', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  const second = await proxy.connect();
  second.send('BLPOP', 'j', '0');
  proxy.answerTo('lpop j', '$-1');
  await settled();
  const places = [client, second].map((each) => each.client.blocked!.place);
  assert.ok(places[0] < places[1]);
});

test('it waits for its own client’s commands, and for a stage change', async () => {
  const { client, proxy } = await connect();
  client.send('GET', 'j').send('BLPOP', 'k', '0');
  assert.deepEqual(client.waits, ['idle']);
  proxy.hold('default');
  proxy.answer('$-1');
  assert.deepEqual([client.waits, proxy.took()], [['idle', 'open'], ['source GET j']]);
});

test('keys of different authorities are refused', async () => {
  const { client, proxy } = await connect({ w: 'live', default: 'shadow' });
  client.send('BLPOP', 'w:k', 'k', '0');
  assert.match(client.replies[0], /^-ERR shadow-proxy: BLPOP spans workload "w"/);
  assert.deepEqual([proxy.took(), proxy.clients.blocked.size, proxy.clients.counts.refused], [[], 0, 1]);
});

test('its server is lost: the client is closed, and what it may have taken is suspect', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  proxy.lose('source');
  assert.deepEqual([client.destroyed, proxy.suspects], [true, ['reply-lost: BLPOP k 0']]);
});

test('CLIENT UNBLOCK asks the server that has it', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  assert.equal(await client.client.blocked!.unblock('ERROR'), true);
  assert.deepEqual([proxy.servers.source.unblocked, proxy.servers.target.unblocked], [['ERROR'], []]);
});

test('while a client is about to block on a key, a later client does not take that client’s element', async () => {
  const { client, proxy } = await connect();
  proxy.clients.blockQueue.add(0, ['k']);
  client.send('BLPOP', 'k', '0');
  assert.deepEqual(proxy.took(), [], 'it is not asked without blocking');
  await settled();
  assert.deepEqual(proxy.took(), ['source BLPOP k 0']);
});

test('sent again at once on the same lane, it is not unblocked a second time', async (t) => {
  const scene = await blocked(t, 'BLPOP', 'k', '0');
  const { proxy } = scene;
  // It was not there yet: it will be asked again, unless it has ended by then.
  proxy.servers.source.findsBlocked.push(false);
  await interrupt(scene);
  proxy.clients.waitingRoom.open();
  await settled();
  // A second CLIENT UNBLOCK would come after 5 ms.
  await sleep(20);
  assert.deepEqual(proxy.took(), ['source lpop k', 'source BLPOP k 0', 'source BLPOP k 0']);
  assert.deepEqual(proxy.servers.source.unblocked, ['TIMEOUT']);
});

test('WAIT is behind a PING on its lane, and asks again for what is left', async (t) => {
  const scene = await blocked(t, 'WAIT', '1', '5000');
  const { proxy, later, client } = scene;
  assert.deepEqual(proxy.took(), ['source PING', 'source WAIT 1 5000']);
  proxy.answer('+PONG');
  const over = client.client.blocked!.interrupt();
  proxy.answer('*-1');
  await over;
  await later(1_500);
  proxy.clients.waitingRoom.open();
  await settled();
  assert.deepEqual(proxy.took(), ['source PING', 'source WAIT 1 3500']);
});

test('an element that a client took is noted before the client has it, and is sent to the mirror in its place when the client was woken', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  const other = await proxy.connect();
  other.send('RPUSH', 'k', 'v');
  proxy.noted.length = 0;
  proxy.answerTo('RPUSH k v', ':1');
  assert.deepEqual([other.replies, proxy.mirrored], [[':1'], ['RPUSH k v']]);
  proxy.answerTo('BLPOP k 0', '*2 $1 k $1 v');
  await settled();
  assert.deepEqual([client.replies, proxy.noted], [['*2 $1 k $1 v'], ['BLPOP k 0']]);
  assert.deepEqual([proxy.mirrored, proxy.suspects], [['RPUSH k v', 'LPOP k'], []]);
});

test('woken by a push that did not come through the proxy: its keys are copied', async (t) => {
  const { proxy } = await blocked(t, 'BLPOP', 'k', '0');
  proxy.answer('*2 $1 k $1 v');
  assert.deepEqual([proxy.mirrored, proxy.suspects], [[], ['copy: BLPOP k 0']]);
});

test('an error, or nothing, is neither noted nor copied', async (t) => {
  for (const reply of ['*-1', '-UNBLOCKED client unblocked']) {
    const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
    proxy.noted.length = 0;
    proxy.answer(reply);
    assert.deepEqual([client.replies, proxy.noted, proxy.suspects], [[reply], [], []]);
    t.mock.restoreAll();
  }
});

test('XREAD takes nothing: no client waits for its keys, and nothing is noted', async (t) => {
  const { client, proxy } = await blocked(t, 'XREAD', 'BLOCK', '0', 'STREAMS', 's', '0');
  assert.deepEqual([proxy.noted, proxy.sequencer.lanes.source.locks(0).active], [[], false]);
  proxy.lose('source');
  assert.deepEqual([client.destroyed, proxy.suspects], [true, []]);
});

test('keys in flight on another lane: it is sent when they are free', async () => {
  const { client, proxy } = await connect();
  proxy.clients.blockQueue.add(0, ['k']);
  const { identity } = client.client;
  const { lanes } = proxy.sequencer;
  lanes.source.locks(0).hold(await lanes.source.borrow(identity), ['k'], true);
  client.send('BLPOP', 'k', '0');
  await settled();
  assert.deepEqual([proxy.took().filter((each) => each.includes('POP')), client.client.blocked!.isSent], [[], false]);
});

test('no other client gets the lane before the server has answered CLIENT UNBLOCK', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  let answered = (): void => undefined;
  proxy.servers.source.unblocking = new Promise<void>((resolve) => (answered = resolve));
  const given: unknown[] = [];
  t.mock.method(proxy.sequencer.lanes.source, 'giveBack', (lane: unknown) => given.push(lane));
  const unblocked = client.client.blocked!.unblock('TIMEOUT');
  proxy.answer('*-1');
  await settled();
  assert.deepEqual([client.replies, given.length], [['*-1'], 0]);
  answered();
  await unblocked;
  await settled();
  assert.equal(given.length, 1);
});

test('its lane is given back when it is answered', async (t) => {
  const { proxy } = await blocked(t, 'BLPOP', 'k', '0');
  const given = t.mock.method(proxy.sequencer.lanes.source, 'giveBack');
  proxy.answer('*-1');
  assert.equal(given.mock.callCount(), 1);
});

test('the client leaves: it is unblocked, gets nothing, and what it took at that moment is copied', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  client.leave();
  await settled();
  assert.deepEqual(proxy.servers.source.unblocked, ['TIMEOUT']);
  proxy.answer('*2 $1 k $1 v');
  assert.deepEqual([client.replies, proxy.suspects], [[], ['copy: BLPOP k 0']]);
  assert.equal(proxy.clients.blocked.size, 0);
});

test('the server is asked to end it until it has found it blocked, and not once more', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  const { unblocked, findsBlocked } = proxy.servers.source;
  findsBlocked.push(false, false);
  client.leave();
  await until(() => unblocked.length === 3);
  // The next would come after 5 ms.
  await sleep(20);
  assert.deepEqual(unblocked, ['TIMEOUT', 'TIMEOUT', 'TIMEOUT']);
});

test('nothing is pushed to a client that has left until its command has ended', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  const locks = proxy.sequencer.lanes.source.locks(0);
  const mayPush = (): boolean => locks.admits(null, ['k'], true);
  const { unblocked, findsBlocked } = proxy.servers.source;
  findsBlocked.push(false);
  client.leave();
  assert.equal(mayPush(), false);
  await until(() => unblocked.length === 2);
  assert.equal(mayPush(), false, 'the server has ended it, and has not answered yet');
  proxy.answer('*-1');
  assert.equal(mayPush(), true);
});

for (const [what, refused] of [
  ['', false],
  [', also where it refuses CLIENT KILL', true],
] as const)
  test(`the client leaves, and the server refuses to unblock it: the connection is closed${what}`, async (t) => {
    const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
    const { source } = proxy.servers;
    const [lane] = proxy.sequencer.lanes.source.private();
    const mayPush = (): boolean => proxy.sequencer.lanes.source.locks(0).admits(null, ['k'], true);
    source.findsBlocked.push(null);
    let killed = (): void => undefined;
    source.killing = new Promise((resolve, reject) => {
      killed = refused ? () => reject(new Error('NOPERM')) : () => resolve(null);
    });
    client.leave();
    await until(() => source.killed.length > 0);
    assert.deepEqual([source.killed, lane.closed, mayPush()], [[lane.clientId], false, false]);
    killed();
    await settled();
    assert.deepEqual([lane.closed, mayPush(), proxy.clients.blocked.size], [true, true, 0]);
    assert.deepEqual([source.unblocked, proxy.suspects], [['TIMEOUT'], ['reply-lost: BLPOP k 0']]);
  });

test('the client leaves and is answered while its connection is killed: the lane is not used again', async (t) => {
  const { client, proxy } = await blocked(t, 'BLPOP', 'k', '0');
  const { source } = proxy.servers;
  const [lane] = proxy.sequencer.lanes.source.private();
  source.findsBlocked.push(null);
  let killed = (_: unknown): void => undefined;
  source.killing = new Promise((resolve) => (killed = resolve));
  client.leave();
  await until(() => source.killed.length > 0);
  proxy.answer('*-1');
  await settled();
  const lanes = proxy.sequencer.lanes.source;
  assert.notEqual(await lanes.borrow(lane.identity), lane);
  killed(null);
  await settled();
  assert.equal(lane.closed, true);
  assert.notEqual(await lanes.borrow(lane.identity), lane);
});

test('a client that has closed its side is not let block', async () => {
  const { client, proxy } = await connect();
  client.client.closedItsSide();
  client.send('BLPOP', 'k', '0');
  proxy.answer('$-1');
  await settled();
  assert.deepEqual([client.destroyed, proxy.took(), proxy.clients.blocked.size], [true, ['source lpop k'], 0]);
});

test('a stage change concerns those that wait on its keys, and the journal gets what they may take', async (t) => {
  const { client, proxy } = await connect({ w: 'shadow', default: 'shadow' });
  client.send('BLPOP', 'w:k', '0');
  proxy.answer('$-1');
  await settled();
  const blocked = client.client.blocked!;
  assert.deepEqual(
    [blocked.concerns(proxy.workload('w')), blocked.concerns(proxy.router.default)],
    [true, false],
    t.name,
  );
  proxy.noted.length = 0;
  blocked.note();
  assert.deepEqual(proxy.noted, ['BLPOP w:k 0']);
});

test('what is found on a list that others wait for is the mirror’s, too, where keys follow different rules: copied', async () => {
  const { client, proxy } = await connect({ off: 'off', default: 'shadow' });
  client.send('BLPOP', 'off:k', 'k', '0');
  assert.deepEqual(
    proxy.sent.map(({ command, follow, mustCopy }) => [command, follow, mustCopy]),
    [['lmpop 2 off:k k LEFT', 'write', true]],
  );
  proxy.answer('*2 $1 k *1 $1 v');
  assert.deepEqual([client.replies, proxy.suspects], [['*2 $1 k $1 v'], ['copy: lmpop 2 off:k k LEFT']]);
});
