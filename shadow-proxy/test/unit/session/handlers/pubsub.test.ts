/** PUBLISH, SUBSCRIBE and the move of subscribers, without servers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, settled, type FakeProxy } from '../../../support/context.js';

const confirmed = (what: string, name: string, count: number): string =>
  `*3 $${what.length} ${what} $${name.length} ${name} :${count}`;
const message = (channel: string, text: string): string =>
  `*3 $7 message $${channel.length} ${channel} $${text.length} ${text}`;
const linkOf = (proxy: FakeProxy, side: 'source' | 'target', which = 0) => proxy.servers[side].links[which];

test('PUBLISH goes to the authority of its channel, and to the mirror where the workload is written twice', async () => {
  for (const [stage, side, follow] of [
    ['off', 'source', 'nothing'],
    ['dualwrite', 'source', 'write'],
    ['shadow', 'source', 'write'],
    ['live', 'target', 'write'],
    ['complete', 'target', 'nothing'],
  ] as const) {
    const { client, proxy } = await connect({ news: stage, default: 'off' });
    client.send('PUBLISH', 'news:1', 'hi');
    assert.deepEqual(
      proxy.sent.map((each) => [each.side, each.command, each.follow]),
      [[side, 'PUBLISH news:1 hi', follow]],
      stage,
    );
    proxy.answer(':2');
    assert.deepEqual([client.replies, proxy.mirrored.length], [[':2'], follow === 'write' ? 1 : 0], stage);
  }
});

test('on a shared target, the source’s messages stay at the source', async () => {
  for (const [stage, follow] of [
    ['shadow', 'nothing'],
    ['live', 'write'],
  ] as const) {
    const { client, proxy } = await connect({ default: stage }, { sharedTarget: true });
    client.send('PUBLISH', 'c', 'hi');
    assert.equal(proxy.sent[0].follow, follow, stage);
  }
});

test('PUBLISH with a wrong number of arguments is answered by the server', async () => {
  const { client, proxy } = await connect();
  client.send('PUBLISH', 'c');
  assert.deepEqual([proxy.sent[0].command, proxy.sent[0].follow], ['PUBLISH c', 'nothing']);
});

test('PUBLISH waits while the channel’s workload changes its stage, or subscribers move', async () => {
  const { client, proxy } = await connect({ news: 'shadow', default: 'shadow' });
  proxy.hold('news');
  client.send('PUBLISH', 'news:1', 'hi');
  assert.deepEqual([client.waits, proxy.took()], [['open'], []]);
  proxy.release('news');
  proxy.clients.subscribers.moving = true;
  proxy.clients.waitingRoom.open();
  assert.deepEqual([client.waits, proxy.took()], [['open', 'open'], []]);
  proxy.clients.subscribers.moving = false;
  proxy.clients.waitingRoom.open();
  assert.deepEqual(proxy.took(), ['source PUBLISH news:1 hi']);
});

test('SUBSCRIBE has a connection of its own, and the client gets confirmations and messages from it', async () => {
  const { client, proxy } = await connect();
  client.send('SUBSCRIBE', 'a', 'b');
  await settled();
  const link = linkOf(proxy, 'source');
  assert.deepEqual([link.sent, proxy.took(), client.replies], [['SUBSCRIBE a b'], [], []]);
  link.say(confirmed('subscribe', 'a', 1));
  link.say(message('a', 'early'), confirmed('subscribe', 'b', 2));
  link.say(message('b', 'late'));
  assert.deepEqual(client.replies, [
    confirmed('subscribe', 'a', 1),
    message('a', 'early'),
    confirmed('subscribe', 'b', 2),
    message('b', 'late'),
  ]);
});

test('SUBSCRIBE waits for the replies of the client’s earlier commands', async () => {
  const { client, proxy } = await connect();
  client.send('SET', 'k', 'v').send('SUBSCRIBE', 'a');
  await settled();
  assert.deepEqual([client.waits, proxy.servers.source.links.length], [['idle'], 0]);
  proxy.answer('+OK');
  await settled();
  assert.deepEqual(linkOf(proxy, 'source').sent, ['SUBSCRIBE a']);
});

test('what others publish to a channel waits until its subscription is confirmed', async () => {
  const { client, proxy } = await connect();
  const other = await proxy.connect();
  client.send('SUBSCRIBE', 'a');
  other.send('PUBLISH', 'a', 'hi');
  await settled();
  assert.deepEqual([other.waits, proxy.took()], [['promise'], []]);
  // Another channel does not wait.
  const third = await proxy.connect();
  third.send('PUBLISH', 'b', 'hi');
  assert.deepEqual(proxy.took(), ['source PUBLISH b hi']);
  linkOf(proxy, 'source').say(confirmed('subscribe', 'a', 1));
  await settled();
  assert.deepEqual(proxy.took(), ['source PUBLISH a hi']);
});

test('channels of workloads with different authorities are subscribed at both; counts are of both together', async () => {
  const { client, proxy } = await connect({ old: 'shadow', new: 'live', default: 'shadow' });
  client.send('SUBSCRIBE', 'old:1', 'new:1', 'new:2', 'old:2');
  await settled();
  linkOf(proxy, 'source').say(confirmed('subscribe', 'old:1', 1));
  await settled();
  assert.deepEqual(linkOf(proxy, 'target').sent, ['SUBSCRIBE new:1 new:2']);
  linkOf(proxy, 'target').say(confirmed('subscribe', 'new:1', 1), confirmed('subscribe', 'new:2', 2));
  await settled();
  linkOf(proxy, 'source').say(confirmed('subscribe', 'old:2', 2));
  await settled();
  assert.deepEqual(linkOf(proxy, 'source').sent, ['SUBSCRIBE old:1', 'SUBSCRIBE old:2']);
  assert.deepEqual(client.replies, [
    confirmed('subscribe', 'old:1', 1),
    confirmed('subscribe', 'new:1', 2),
    confirmed('subscribe', 'new:2', 3),
    confirmed('subscribe', 'old:2', 4),
  ]);
  client.send('UNSUBSCRIBE');
  await settled();
  linkOf(proxy, 'source').say(confirmed('unsubscribe', 'old:1', 1), confirmed('unsubscribe', 'old:2', 0));
  await settled();
  assert.equal(linkOf(proxy, 'source').ended, false, 'connections are closed when the whole command is over');
  linkOf(proxy, 'target').say(confirmed('unsubscribe', 'new:1', 1), confirmed('unsubscribe', 'new:2', 0));
  await settled();
  assert.deepEqual(client.replies.slice(4), [
    confirmed('unsubscribe', 'old:1', 3),
    confirmed('unsubscribe', 'old:2', 2),
    confirmed('unsubscribe', 'new:1', 1),
    confirmed('unsubscribe', 'new:2', 0),
  ]);
  assert.deepEqual([linkOf(proxy, 'source').ended, linkOf(proxy, 'target').ended], [true, true]);
});

test('patterns and channels are counted together', async () => {
  const { client, proxy } = await connect();
  client.send('SUBSCRIBE', 'a');
  await settled();
  linkOf(proxy, 'source').say(confirmed('subscribe', 'a', 1));
  await settled();
  client.send('PSUBSCRIBE', 'a*');
  await settled();
  linkOf(proxy, 'source').say(confirmed('psubscribe', 'a*', 2));
  await settled();
  assert.deepEqual(linkOf(proxy, 'source').sent, ['SUBSCRIBE a', 'PSUBSCRIBE a*']);
  assert.deepEqual(client.replies, [confirmed('subscribe', 'a', 1), confirmed('psubscribe', 'a*', 2)]);
});

test('a RESP2 client that is subscribed sends other commands over its own connection; the server refuses them', async () => {
  const { client, proxy } = await connect();
  client.send('SUBSCRIBE', 'a');
  await settled();
  const link = linkOf(proxy, 'source');
  link.say(confirmed('subscribe', 'a', 1));
  await settled();
  client.send('GET', 'k').send('PING');
  await settled();
  assert.deepEqual(link.sent, ['SUBSCRIBE a', 'GET k']);
  link.say("-ERR Can't execute 'get'");
  await settled();
  link.say('*2 $4 pong $0 ');
  await settled();
  assert.deepEqual(
    [link.sent.at(-1), client.replies.slice(1), proxy.took()],
    ['PING', ["-ERR Can't execute 'get'", '*2 $4 pong $0 '], []],
  );
});

test('a refused SUBSCRIBE is answered with the refusal, and what follows is not sent', async () => {
  const { client, proxy } = await connect({ old: 'shadow', new: 'live', default: 'shadow' });
  client.send('SUBSCRIBE', 'old:1', 'new:1').send('PING');
  await settled();
  linkOf(proxy, 'source').say('-NOPERM no channel');
  await settled();
  assert.deepEqual([client.replies[0], proxy.servers.target.links.length], ['-NOPERM no channel', 0]);
  assert.equal(linkOf(proxy, 'source').ended, true, 'a connection without a subscription is closed');
});

test('a server that cannot be reached, or a connection that is lost, closes the client', async () => {
  const unreachable = await connect();
  unreachable.proxy.servers.source.unreachable = new Error('refused');
  unreachable.client.send('SUBSCRIBE', 'a');
  await settled();
  assert.deepEqual([unreachable.client.destroyed, unreachable.client.replies], [true, []]);

  const { client, proxy } = await connect();
  client.send('SUBSCRIBE', 'a');
  await settled();
  linkOf(proxy, 'source').say(confirmed('subscribe', 'a', 1));
  await settled();
  assert.equal(client.destroyed, false);
  linkOf(proxy, 'source').lose();
  assert.equal(client.destroyed, true);
});

test('a client that leaves ends its connections', async () => {
  const { client, proxy } = await connect();
  client.send('SUBSCRIBE', 'a');
  await settled();
  linkOf(proxy, 'source').say(confirmed('subscribe', 'a', 1));
  await settled();
  assert.equal(proxy.clients.subscribers.all.size, 1);
  client.leave();
  assert.deepEqual([linkOf(proxy, 'source').ended, proxy.clients.subscribers.all.size], [true, 0]);
});

test('subscribers move: messages come from the old server until commit, and from the new one after it', async () => {
  const { client, proxy } = await connect({ news: 'shadow', default: 'shadow' });
  const { subscribers } = proxy.clients;
  client.send('SUBSCRIBE', 'news:1', 'else');
  await settled();
  const old = linkOf(proxy, 'source');
  old.say(confirmed('subscribe', 'news:1', 1), confirmed('subscribe', 'else', 2));
  await settled();
  subscribers.moving = true;
  let prepared = false;
  const preparing = subscribers.prepare(proxy.workload('news'), 'target', false).then(() => (prepared = true));
  await settled();
  const next = linkOf(proxy, 'target');
  assert.deepEqual([next.sent, old.sent], [['SUBSCRIBE news:1'], ['SUBSCRIBE news:1 else', 'PING']]);
  next.say(confirmed('subscribe', 'news:1', 1), message('news:1', 'twice'));
  await settled();
  assert.equal(prepared, false, 'what the old server had sent before has not come yet');
  old.say(message('news:1', 'last'), '*2 $4 pong $0 ');
  await preparing;
  const committed = subscribers.commit();
  await settled();
  assert.deepEqual(old.sent.slice(2), ['UNSUBSCRIBE news:1']);
  old.say(confirmed('unsubscribe', 'news:1', 1));
  await committed;
  subscribers.end();
  next.say(message('news:1', 'first'));
  old.say(message('else', 'stays'));
  assert.deepEqual(client.replies.slice(2), [
    message('news:1', 'last'),
    message('news:1', 'first'),
    message('else', 'stays'),
  ]);
  assert.deepEqual([old.ended, next.ended, subscribers.moving], [false, false, false]);
});

test('a move that is refused leaves the subscriber where it was; forced, it closes the client', async () => {
  for (const force of [false, true]) {
    const { client, proxy } = await connect({ news: 'shadow', default: 'shadow' });
    const { subscribers } = proxy.clients;
    client.send('SUBSCRIBE', 'news:1');
    await settled();
    const old = linkOf(proxy, 'source');
    old.say(confirmed('subscribe', 'news:1', 1));
    await settled();
    const preparing = subscribers.prepare(proxy.workload('news'), 'target', force);
    const outcome = preparing.then(
      () => 'prepared',
      (problem: Error) => problem.message,
    );
    await settled();
    linkOf(proxy, 'target').say('-NOPERM no channel');
    old.say('*2 $4 pong $0 ');
    assert.deepEqual([await outcome, client.destroyed], force ? ['prepared', true] : ['NOPERM no channel', false]);
    if (force) continue;
    subscribers.end();
    old.say(message('news:1', 'still'));
    assert.deepEqual([client.replies.slice(1), linkOf(proxy, 'target').ended], [[message('news:1', 'still')], true]);
  }
});
