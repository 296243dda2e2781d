/**
 * Pub/sub: a subscriber sees, byte by byte, what Redis would have shown it.
 *
 * Needs real servers: the bytes of messages and confirmations in both protocols, and both client libraries.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { startTarget, type LocalServer } from '../../../src/local/servers.js';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';
import { redisSince } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { besideRedis } from '../../support/twin.js';
import { Wire } from '../../support/wire.js';
import { missing } from '../../support/needs.js';

const before70 = await missing('redis>=7.0');
const hasShardChannels = await redisSince(7, 0);

/** What a client says, and, where another one publishes in between, `PUBLISH` first. */
type Line = readonly Argument[];

const MARK = 'the end of the line';
const MARKED = encodeCommand(['PING', MARK]);

/** All that comes for each line, up to the answer to a PING behind it. */
async function transcript(port: number, lines: readonly Line[]): Promise<string[][]> {
  const [wire, other] = [await Wire.open({ port }), await Wire.open({ port })];
  const shown: string[][] = [];
  try {
    for (const line of lines) {
      if (line[0] === 'PUBLISH') {
        await other.ask(...line);
        // Where a PING is answered over another connection, it must not overtake.
        await sleep(20);
        wire.sendBytes(MARKED);
      } else wire.sendBytes(Buffer.concat([encodeCommand(line), MARKED]));
      const frames: string[] = [];
      do frames.push(await wire.frame(2000));
      while (!frames.at(-1)!.includes(MARK));
      shown.push(frames);
    }
  } catch (problem) {
    shown.push([wire.ended ? '(closed)' : (problem as Error).message]);
  } finally {
    wire.destroy();
    other.destroy();
  }
  return shown;
}

/** All that comes for lines that are sent in one write, behind a HELLO. */
async function pipelined(port: number, protocol: number, lines: readonly Line[]): Promise<string[]> {
  const wire = await Wire.open({ port });
  wire.sendBytes(Buffer.concat([...[...lines, ['PING', MARK]].map(encodeCommand)]));
  const frames: string[] = [];
  do frames.push(await wire.frame(2000));
  while (!frames.at(-1)!.includes(MARK));
  wire.destroy();
  return frames.slice(protocol === 3 ? 1 : 0);
}

const DIALOGUES: readonly (readonly Line[])[] = [
  [
    ['SUBSCRIBE', 'a'],
    ['PUBLISH', 'a', 'one'],
    ['PUBLISH', 'b', 'none'],
    ['PING'],
    ['PING', 'x'],
    ['UNSUBSCRIBE', 'a'],
    ['PING'],
    ['GET', 'k'],
  ],
  [
    ['SUBSCRIBE', 'a', 'b', 'a'],
    ['PSUBSCRIBE', 'a*', 'z?'],
    ['PUBLISH', 'a', 'twice'],
    ['UNSUBSCRIBE', 'b', 'c'],
    ['PUNSUBSCRIBE', 'a*'],
    ['PUNSUBSCRIBE'],
    ['PUBLISH', 'a', ''],
    ['UNSUBSCRIBE'],
    ['SET', 'k', 1],
  ],
  [
    ['SSUBSCRIBE', 'a', 'b'],
    ['SUBSCRIBE', 'a'],
    ['SUNSUBSCRIBE', 'b'],
    ['UNSUBSCRIBE', 'a'],
    ['GET', 'k'],
    ['SUNSUBSCRIBE'],
    ['GET', 'k'],
  ],
  [
    ['UNSUBSCRIBE'],
    ['PUNSUBSCRIBE'],
    ['SUNSUBSCRIBE'],
    ['UNSUBSCRIBE', 'x', 'y'],
    ['PUNSUBSCRIBE', 'x'],
    ['PING'],
    ['SUBSCRIBE'],
    ['PSUBSCRIBE'],
    ['SSUBSCRIBE'],
    ['PUBLISH'],
    ['SPUBLISH', 'a'],
  ],
  [
    ['SUBSCRIBE', 'a'],
    ['GET', 'k'],
    ['SET', 'k'],
    ['NOSUCH', 'x'],
    ['CLIENT', 'GETNAME'],
    ['PUBLISH', 'a', 'still'],
    ['SUBSCRIBE'],
    ['PING', 'a', 'b'],
    ['SELECT', 1],
    ['AUTH', 'x'],
    ['GET'],
  ],
  [
    ['SUBSCRIBE', 'a'],
    ['SELECT', 1],
    ['RESET'],
    ['PUBLISH', 'a', 'gone'],
    ['GET', 'k'],
    ['SUBSCRIBE', 'b'],
    ['UNSUBSCRIBE', 'b'],
  ],
  [
    ['SUBSCRIBE', 'bin\r\n\0'],
    ['PUBLISH', 'bin\r\n\0', '\r\n\0'],
    ['PUBLISH', 'bin\r\n\0', 'x'.repeat(200_000)],
  ],
  [['SUBSCRIBE', 'a'], ['QUIT']],
];
/** Where a PING behind a line is not answered: in one write only. */
const UNANSWERED: readonly (readonly Line[])[] = [
  [['CLIENT', 'REPLY', 'SKIP'], ['SUBSCRIBE', 'a'], ['PING'], ['UNSUBSCRIBE'], ['PING']],
  [['CLIENT', 'REPLY', 'SKIP'], ['SUBSCRIBE'], ['SUBSCRIBE', 'a']],
  [
    ['CLIENT', 'REPLY', 'OFF'],
    ['SUBSCRIBE', 'a'],
    ['PING'],
    ['GET', 'k'],
    ['UNSUBSCRIBE', 'a'],
    ['GET', 'k'],
    ['CLIENT', 'REPLY', 'ON'],
  ],
  [['SUBSCRIBE', 'a'], ['MULTI'], ['GET', 'k'], ['EXEC'], ['DISCARD']],
];

describe('pub/sub', () => {
  const beside = besideRedis();

  for (const protocol of [2, 3]) {
    test(
      `dialogues in RESP${protocol}, line by line and in one write, as Redis shows them`,
      { skip: before70 },
      async () => {
        const hello: Line[] = protocol === 3 ? [['HELLO', 3]] : [];
        for (const lines of UNANSWERED) {
          assert.deepEqual(
            await pipelined(beside.rig.shard.port, protocol, [...hello, ...lines]),
            await pipelined(beside.twin.port, protocol, [...hello, ...lines]),
            lines.join(' ⏎ '),
          );
        }
        const masked = (frames: string[][]): string[][] => (protocol === 3 ? frames.slice(1) : frames);
        for (const lines of DIALOGUES) {
          const shown = lines.map((line) => line.join(' ').slice(0, 40)).join(' ⏎ ');
          assert.deepEqual(
            masked(await transcript(beside.rig.shard.port, [...hello, ...lines])),
            masked(await transcript(beside.twin.port, [...hello, ...lines])),
            shown,
          );
          if (lines.some(([name]) => name === 'QUIT')) continue;
          const own = lines.filter(([name]) => name !== 'PUBLISH');
          assert.deepEqual(
            await pipelined(beside.rig.shard.port, protocol, [...hello, ...own]),
            await pipelined(beside.twin.port, protocol, [...hello, ...own]),
            shown,
          );
        }
        await beside.rig.assertEqual();
      },
    );
  }

  test('a subscriber in RESP3 goes on with ordinary commands, and hears what it publishes itself', async () => {
    const wire = await beside.rig.wire();
    await wire.ask('HELLO', 3);
    assert.match(await wire.ask('SUBSCRIBE', 'own'), /^>3\r\n\$9\r\nsubscribe/);
    assert.equal(await wire.ask('SET', 'k3', 1), '+OK');
    wire.send('PUBLISH', 'own', 'hello');
    assert.deepEqual((await wire.frames(2)).sort(), [':1', '>3\r\n$7\r\nmessage\r\n$3\r\nown\r\n$5\r\nhello']);
    assert.deepEqual(await wire.pipeline([['MULTI'], ['INCR', 'k3'], ['EXEC']]), ['+OK', '+QUEUED', '*1\r\n:2']);
    // With the old protocol it may do no more than a subscriber that never had another.
    assert.match(await wire.ask('HELLO', 2), /^\*14/);
    assert.match(await wire.ask('GET', 'k3'), /^-ERR Can't execute 'get'/);
    wire.destroy();
  });

  test('SUBSCRIBE inside MULTI is refused by name; PUBLISH there is published with the transaction on both servers', async () => {
    const [wire, atSource, atTarget] = [
      await beside.rig.wire(),
      await Wire.open(beside.rig.source),
      await Wire.open(beside.rig.target),
    ];
    assert.deepEqual(await wire.pipeline([['MULTI'], ['SUBSCRIBE', 'm'], ['EXEC']]), [
      '+OK',
      '-ERR shadow-proxy: SUBSCRIBE inside MULTI is not supported',
      '-EXECABORT Transaction discarded because of previous errors.',
    ]);
    for (const each of [atSource, atTarget]) await each.ask('SUBSCRIBE', 'm');
    assert.deepEqual(await wire.pipeline([['MULTI'], ['SET', 'm', 1], ['PUBLISH', 'm', 'x'], ['EXEC']]), [
      '+OK',
      '+QUEUED',
      '+QUEUED',
      '*2\r\n+OK\r\n:1',
    ]);
    assert.deepEqual(await wire.pipeline([['MULTI'], ['PUBLISH', 'm', 'y'], ['EXEC']]), ['+OK', '+QUEUED', '*1\r\n:1']);
    for (const each of [atSource, atTarget])
      assert.deepEqual(
        (await each.frames(2)).map((frame) => frame.slice(-1)),
        ['x', 'y'],
      );
    for (const each of [wire, atSource, atTarget]) each.destroy();
    await beside.rig.assertEqual();
  });

  test('PUBLISH reaches direct subscribers of both servers once, and its count is that of the authority', async () => {
    const [wire, atTarget] = [await beside.rig.wire(), await Wire.open(beside.rig.target)];
    await atTarget.ask('PSUBSCRIBE', 'to:*');
    assert.equal(await wire.ask('PUBLISH', 'to:all', '1'), ':0');
    if (hasShardChannels) assert.equal(await wire.ask('SPUBLISH', 'to:shard', '1'), ':0');
    assert.equal(await wire.ask('PUBLISH', 'to:all', '2'), ':0');
    assert.deepEqual(
      (await atTarget.frames(2)).map((frame) => frame.slice(-1)),
      ['1', '2'],
    );
    await beside.rig.assertEqual();
    assert.deepEqual(atTarget.unread, []);
    const targetLacksThem = (await missing('target<7.0')) === false;
    assert.equal(beside.rig.shard.snapshot().unsupported.spublish, hasShardChannels && targetLacksThem ? 1 : undefined);
    wire.destroy();
    atTarget.destroy();
  });

  test('CLIENT LIST, INFO and KILL know subscribers', async () => {
    const [sub, wire] = [await beside.rig.wire(), await beside.rig.wire()];
    await sub.ask('HELLO', 3);
    const id = (await sub.ask('CLIENT', 'ID')).slice(1);
    await sub.ask('SUBSCRIBE', 'a');
    await sub.ask('PSUBSCRIBE', 'p*');
    if (hasShardChannels) await sub.ask('SSUBSCRIBE', 's');
    assert.match(
      await sub.ask('CLIENT', 'INFO'),
      hasShardChannels ? /flags=P db=0 sub=1 psub=1 ssub=1 / : /flags=P db=0 sub=1 psub=1 ssub=0 /,
    );
    assert.match(await wire.ask('CLIENT', 'LIST', 'TYPE', 'pubsub'), new RegExp(`^\\$\\d+\\r\\nid=${id} [^\\n]*\\n$`));
    assert.doesNotMatch(await wire.ask('CLIENT', 'LIST', 'TYPE', 'normal'), new RegExp(`\\bid=${id} `));
    assert.equal(await wire.ask('CLIENT', 'KILL', 'TYPE', 'pubsub'), ':1');
    await sub.closed;
    wire.destroy();
  });

  /** Connections with subscriptions at a server. */
  const subscribersAt = async (server: LocalServer): Promise<number> => {
    const list = await beside.rig.client({ of: server }).call('CLIENT', 'LIST', 'TYPE', 'pubsub');
    return String(list).split('\n').filter(Boolean).length;
  };

  test('a subscriber that leaves, resets or unsubscribes leaves no connection behind', async () => {
    await until(async () => (await subscribersAt(beside.rig.source)) === 0);
    const connections = beside.rig.client({ of: beside.rig.source });
    const count = async (): Promise<number> =>
      String(await connections.call('CLIENT', 'LIST'))
        .split('\n')
        .filter(Boolean).length;
    const wires = await Promise.all([beside.rig.wire(), beside.rig.wire(), beside.rig.wire(), beside.rig.wire()]);
    for (const wire of wires) await wire.ask('PING');
    const idle = await count();
    for (const wire of wires) await wire.ask('SUBSCRIBE', 'left');
    assert.equal(await count(), idle + 4);
    await wires[0].ask('UNSUBSCRIBE', 'left');
    await wires[1].ask('RESET');
    wires[2].destroy();
    wires[3].send('QUIT');
    await until(async () => (await count()) === idle);
    assert.equal(await wires[0].ask('PING'), '+PONG');
    assert.equal(await wires[1].ask('PING'), '+PONG');
    for (const wire of wires) wire.destroy();
  });

  test('a client whose connection at the server is killed is closed', async () => {
    const wire = await beside.rig.wire();
    await wire.ask('SUBSCRIBE', 'k');
    await beside.rig.client({ of: beside.rig.source }).call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await wire.closed;
  });

  test('ioredis and node-redis publish and subscribe', async () => {
    const [sub, pub] = [beside.rig.client(), beside.rig.client()];
    const heard: string[] = [];
    sub.on('message', (channel, message) => heard.push(`${channel}=${message}`));
    sub.on('pmessage', (pattern, channel, message) => heard.push(`${pattern}:${channel}=${message}`));
    assert.equal(await sub.subscribe('io:a', 'io:b'), 2);
    assert.equal(await sub.psubscribe('io:*'), 3);
    for (const RESP of [2, 3] as const) {
      const client = createClient({ url: `redis://127.0.0.1:${beside.rig.shard.port}`, RESP });
      client.on('error', () => undefined);
      await client.connect();
      const listener = client.duplicate();
      await listener.connect();
      await listener.subscribe('node', (message, channel) => heard.push(`${channel}=${message}`));
      await listener.pSubscribe('no?e', (message, channel) => heard.push(`no?e:${channel}=${message}`));
      await client.publish('node', 'hi');
      await client.publish('io:b', 'from node');
      await until(
        () => heard.length === 4,
        2_000,
        () => heard.join(),
      );
      assert.deepEqual(heard.splice(0).sort(), ['io:*:io:b=from node', 'io:b=from node', 'no?e:node=hi', 'node=hi']);
      await listener.unsubscribe('node');
      await listener.pUnsubscribe();
      // A Buffer in RESP2.
      assert.equal(String(await listener.ping()), 'PONG');
      client.destroy();
      listener.destroy();
    }
    assert.equal(await pub.publish('io:a', 'x'), 2);
    await until(() => heard.length === 2);
    assert.equal(await sub.unsubscribe('io:a', 'io:b'), 1);
    assert.equal(await sub.punsubscribe('io:*'), 0);
    assert.equal(await sub.get('none'), null);
    await beside.rig.assertEqual();
  });
});

test('the same dialogues while KeyDB is the authority, as KeyDB shows them', async () => {
  const twin = await startTarget();
  try {
    await withRig({ default: { stage: 'live' } }, async (rig) => {
      const leftOut = ['SSUBSCRIBE', 'SUNSUBSCRIBE', 'SPUBLISH', 'PUBLISH', 'QUIT'];
      for (const protocol of [2, 3]) {
        const hello: Line[] = protocol === 3 ? [['HELLO', 3]] : [];
        for (const lines of [...DIALOGUES, UNANSWERED.at(-1)!]) {
          const own = [...hello, ...lines.filter(([name]) => !leftOut.includes(String(name)))];
          assert.deepEqual(
            await pipelined(rig.shard.port, protocol, own),
            await pipelined(twin.port, protocol, own),
            own.join(' ⏎ '),
          );
        }
      }
      await rig.assertEqual();
    });
  } finally {
    await twin.stop();
  }
});

test("a user who may not subscribe to a channel gets the server's own error", async () => {
  const user = ['default on nopass ~* &* +@all', 'app on >pw ~* resetchannels &mine:* +@all'];
  const servers = { source: { config: { user } }, target: { config: { user } } };
  await withRig({ servers }, async (rig) => {
    const direct = await Wire.open(rig.source);
    const wire = await rig.wire();
    for (const command of [
      ['AUTH', 'app', 'pw'],
      ['SUBSCRIBE', 'mine:a', 'other'],
      ['PSUBSCRIBE', '*'],
      ['PUBLISH', 'other', 'x'],
      ['GET', 'k'],
      ['SUBSCRIBE', 'mine:a'],
      ['PSUBSCRIBE', '*'],
      ['PING'],
    ]) {
      assert.equal(await wire.ask(...command), await direct.ask(...command), command.join(' '));
    }
    direct.destroy();
  });
});

test('a subscriber that does not read is closed at the limit, and holds nobody up', async () => {
  await withRig({ limits: { clientOutputBytes: 4 << 20 } }, async (rig) => {
    const slow = await rig.wire();
    await slow.ask('SUBSCRIBE', 'flood');
    slow.socket.pause();
    const pub = await rig.wire();
    assert.equal(await pub.ask('PING'), '+PONG');
    const payload = 'x'.repeat(64 << 10);
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 100 && rig.shard.snapshot().clients === 2; i++)
      await pub.pipeline(Array.from({ length: 20 }, () => ['PUBLISH', 'flood', payload]));
    await until(() => rig.shard.snapshot().clients === 1);
    assert.ok(process.memoryUsage().rss - before < 128 << 20, `${(process.memoryUsage().rss - before) >> 20} MiB`);
    assert.equal(await pub.ask('PUBLISH', 'flood', 'x'), ':0');
    await rig.assertEqual();
  });
});
