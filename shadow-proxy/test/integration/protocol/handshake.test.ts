/**
 * Who a client is and where: HELLO, AUTH, SELECT, RESET, QUIT, PING and ECHO, word for word as Redis.
 *
 * Needs real servers: the wordings of HELLO, AUTH, SELECT and RESET.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTarget, startRedis, type LocalServer } from '../../../src/local/servers.js';
import { startTestShard, type TestShard } from '../../support/shard.js';
import { Wire, withWire } from '../../support/wire.js';
import { assertSame, type Line } from '../../support/dialogue.js';
import { missing } from '../../support/needs.js';

/** A shard, and a Redis like its source that nothing stands before. */
interface Stage {
  readonly shard: TestShard;
  readonly twin: LocalServer;
  readonly servers: readonly LocalServer[];
}

async function setUp(config: Readonly<Record<string, string | readonly string[]>>, password: string): Promise<Stage> {
  const servers = await Promise.all([startRedis({ config }), startTarget({ config }), startRedis({ config })]);
  const [source, target, twin] = servers;
  const url = ({ port }: LocalServer): string => `redis://${password === '' ? '' : `:${password}@`}127.0.0.1:${port}`;
  return { shard: await startTestShard({ source: url(source), target: url(target) }), twin, servers };
}

async function tearDown(stage: Stage | undefined): Promise<void> {
  await stage?.shard.stop();
  await Promise.all((stage?.servers ?? []).map((server) => server.stop()));
}

const before70 = await missing('redis>=7.0');
const GET_PROTOCOL: Line[] = [
  ['SET', 'h', 'x'],
  ['DEL', 'hash'],
  ['HSET', 'hash', 'a', 1],
  ['HGETALL', 'hash'],
  ['GET', 'none'],
];

describe('where no password is needed', () => {
  let stage: Stage;
  before(async () => {
    stage = await setUp(
      { user: ['app on >pw ~* &* +@all', 'reader on >pw ~r:* &* +get +ping', 'off off >pw ~* +@all'] },
      '',
    );
  });
  after(() => tearDown(stage));
  const same = (dialogues: readonly (readonly Line[])[]): Promise<void> =>
    assertSame(stage.shard.port, stage.twin.port, dialogues);

  test('HELLO in all its forms', () =>
    same([
      [['HELLO']],
      [['HELLO', 2], ...GET_PROTOCOL],
      [['HELLO', 3], ...GET_PROTOCOL, ['HELLO'], ['HELLO', 2], ...GET_PROTOCOL],
      [
        ['HELLO', 3, 'SETNAME', 'me'],
        ['CLIENT', 'GETNAME'],
      ],
      [
        ['HELLO', 3, 'AUTH', 'app', 'pw'],
        ['ACL', 'WHOAMI'],
      ],
      [
        ['hello', 3, 'setname', 'me', 'auth', 'app', 'pw'],
        ['CLIENT', 'GETNAME'],
        ['ACL', 'WHOAMI'],
      ],
      [
        ['HELLO', 1],
        ['HELLO', 4],
        ['HELLO', -1],
        ['HELLO', 'x'],
        ['HELLO', '3.0'],
        ['HELLO', ''],
        ['HELLO', '03'],
        ['HELLO', '99999999999999999999'],
        ['HGETALL', 'hash'],
      ],
      [
        ['HELLO', 3, 'AUTH', 'app'],
        ['HELLO', 3, 'AUTH', 'app', 'wrong'],
        ['HELLO', 3, 'AUTH', 'nobody', 'pw'],
        ['HGETALL', 'hash'],
        ['ACL', 'WHOAMI'],
      ],
      [
        ['HELLO', 3, 'SETNAME'],
        ['HELLO', 3, 'SETNAME', 'a b'],
        ['HELLO', 3, 'SETNAME', 'a\n'],
        ['HELLO', 3, 'FOO'],
        ['HELLO', 3, 'SETNAME', 'ok', 'FOO', 'x'],
        ['CLIENT', 'GETNAME'],
      ],
      [
        ['HELLO', 2, 'AUTH', 'app', 'pw', 'SETNAME', 'a b'],
        ['ACL', 'WHOAMI'],
      ],
      [['HELLO', 'AUTH', 'app', 'pw']],
    ]));

  test('AUTH', { skip: before70 }, () =>
    same([
      [
        ['AUTH'],
        ['AUTH', 'pw'],
        ['AUTH', 'app', 'pw', 'x'],
        ['AUTH', 'app', 'wrong'],
        ['ACL', 'WHOAMI'],
        ['AUTH', 'app', 'pw'],
        ['ACL', 'WHOAMI'],
        ['AUTH', 'default', 'whatever'],
        ['ACL', 'WHOAMI'],
      ],
      [['AUTH', 'off', 'pw'], ['PING']],
      [
        ['AUTH', 'reader', 'pw'],
        ['GET', 'r:1'],
        ['GET', 'x'],
        ['SET', 'r:1', 1],
        ['SELECT', 1],
        ['SELECT', 0],
        ['CLIENT', 'ID'],
        ['CLIENT', 'SETNAME', 'x'],
        ['CLIENT', 'LIST'],
        ['CLIENT', 'KILL', 'TYPE', 'normal'],
        ['CLIENT', 'KILL', 'x'],
        ['CLIENT', 'REPLY', 'OFF'],
        ['CLIENT', 'NO-EVICT', 'ON'],
        ['ECHO', 'x'],
        ['PING'],
        ['HELLO', 3],
        ['RESET'],
      ],
      [['AUTH', Buffer.from([255, 254, 0]), Buffer.from([128, 13, 10])], ['AUTH', 'app', ''], ['PING']],
    ]),
  );

  test('SELECT', () =>
    same([
      [
        ['SELECT', 1],
        ['SET', 'only', 1],
        ['SELECT', 0],
        ['GET', 'only'],
        ['SELECT', 15],
        ['GET', 'only'],
        ['SELECT', 1],
        ['GET', 'only'],
        ['DEL', 'only'],
      ],
      [
        ['SELECT'],
        ['SELECT', 1, 2],
        ['SELECT', 16],
        ['SELECT', -1],
        ['SELECT', 'x'],
        ['SELECT', ''],
        ['SELECT', '1.5'],
        ['SELECT', '99999999999'],
        ['SELECT', ' 1'],
        ['SELECT', '01'],
        ['SELECT', '+1'],
        ['GET', 'x'],
      ],
      [
        ['SELECT', 3],
        ['HELLO', 3],
        ['SET', 'db3', 1],
        ['AUTH', 'app', 'pw'],
        ['GET', 'db3'],
        ['RESET'],
        ['GET', 'db3'],
        ['SELECT', 3],
        ['DEL', 'db3'],
      ],
    ]));

  test('RESET and QUIT', async () => {
    await same([
      [
        ['HELLO', 3, 'AUTH', 'app', 'pw', 'SETNAME', 'n'],
        ['SELECT', 4],
        ['MULTI'],
        ['SET', 'x', 1],
        ['RESET'],
        ['ACL', 'WHOAMI'],
        ['CLIENT', 'GETNAME'],
        ['EXEC'],
        ['HGETALL', 'hash'],
        ['GET', 'x'],
      ],
      [['RESET', 'x'], ['reset'], ['PING']],
      [['QUIT'], ['PING']],
      [['QUIT', 'now'], ['PING']],
      [['MULTI'], ['SET', 'x', 1], ['QUIT'], ['PING']],
    ]);
    await withWire(stage.shard.port, async (wire) => {
      // Nothing is answered after QUIT, everything before it is.
      const replies = await wire.pipeline([['SET', 'q', 1], ['INCR', 'q'], ['SELECT', 1], ['GET', 'q'], ['QUIT']]);
      assert.deepEqual(replies, ['+OK', ':2', '+OK', '$-1', '+OK']);
      wire.send('PING');
      await wire.closed;
      assert.deepEqual(wire.unread, []);
    });
  });

  test('PING, ECHO and what is not known', () =>
    same([
      [
        ['PING'],
        ['PING', 'hi'],
        ['PING', 'a', 'b'],
        ['ping', ''],
        ['ECHO', 'x'],
        ['ECHO'],
        ['ECHO', 'a', 'b'],
        ['HELLO', 3],
        ['PING'],
        ['ECHO', Buffer.from([0, 13, 10, 255])],
      ],
      [
        ['FOO'],
        ['FOO', 'a', 'b'],
        ['foo', 'x'.repeat(300)],
        ['GET'],
        ['GET', 'a', 'b'],
        ['CLIENT'],
        ['CLIENT', 'FOO'],
        ['XGROUP', 'FOO', 'x'],
        ['OBJECT', 'HELP', 'x'],
        [''],
      ],
      [
        [Buffer.from('G\u0000T')],
        ['SET', 'a'],
        ['SET', 'a', 'b', 'c'],
        ['EVAL', 'return 1', 'x'],
        ['EVAL', 'return 1', '-1'],
        ['EVAL', 'return 1', '2', 'a'],
        ['EVAL', 'syntax error', '1', 'a'],
      ],
    ]));

  test('ten thousand RESETs at once, and as many of everything that the proxy answers itself', async () => {
    for (const command of [
      ['RESET'],
      ['CLIENT', 'ID'],
      ['SELECT', '0'],
      ['HELLO', '2'],
      ['MULTI'],
      ['DISCARD'],
      ['CLIENT', 'GETNAME'],
      ['AUTH', 'app', 'pw'],
    ]) {
      const count = command[0] === 'AUTH' ? 300 : command[1] === undefined ? 10_000 : 2_000;
      await withWire(stage.shard.port, async (wire) => {
        const replies = await wire.pipeline(new Array<string[]>(count).fill(command), 20_000);
        assert.equal(new Set(replies.map((reply) => reply[0])).size, command[0] === 'MULTI' ? 2 : 1);
        assert.match(await wire.ask('PING'), /PONG|QUEUED/);
      });
    }
  });
});

describe('where a password is needed', () => {
  let stage: Stage;
  before(async () => {
    stage = await setUp({ requirepass: 'secret', user: ['app on >pw ~* &* +@all'] }, 'secret');
  });
  after(() => tearDown(stage));
  const same = (dialogues: readonly (readonly Line[])[]): Promise<void> =>
    assertSame(stage.shard.port, stage.twin.port, dialogues);

  test('nothing is done before AUTH', { skip: before70 }, () =>
    same([
      [
        ['PING'],
        ['ECHO', 'x'],
        ['GET', 'x'],
        ['SET', 'x', 1],
        ['FOO', 'x'],
        ['HELLO'],
        ['HELLO', 3],
        ['HELLO', 3, 'SETNAME', 'x'],
        ['HELLO', 4],
      ],
      [
        ['SELECT', 0],
        ['SELECT', 1],
        ['SELECT', 'x'],
        ['CLIENT', 'ID'],
        ['CLIENT', 'GETNAME'],
        ['CLIENT', 'SETNAME', 'x'],
        ['CLIENT', 'LIST'],
        ['CLIENT', 'REPLY', 'ON'],
        ['CLIENT', 'INFO'],
      ],
      [
        ['MULTI'],
        ['SET', 'x', 1],
        ['EXEC'],
        ['DISCARD'],
        ['RESET'],
        ['FLUSHALL'],
        ['SWAPDB', 0, 1],
        ['MSET', 'a', 1, 'b', 2],
        ['EVAL', 'return 1', 0],
        ['SCRIPT', 'FLUSH'],
        ['INFO'],
      ],
      [['QUIT'], ['PING']],
      [
        ['AUTH', 'wrong'],
        ['GET', 'x'],
        ['AUTH', 'default', 'wrong'],
        ['AUTH', 'secret'],
        ['GET', 'x'],
        ['AUTH', 'wrong'],
        ['GET', 'x'],
        ['ACL', 'WHOAMI'],
      ],
      [
        ['HELLO', 3, 'AUTH', 'default', 'wrong'],
        ['PING'],
        ['HELLO', 3, 'AUTH', 'default', 'secret'],
        ['GET', 'none'],
        ['RESET'],
        ['GET', 'none'],
        ['AUTH', 'app', 'pw'],
        ['GET', 'none'],
        ['ACL', 'WHOAMI'],
      ],
    ]),
  );

  test('the limits of Redis for who has not logged in', () =>
    same([
      [Buffer.from('*11\r\n$4\r\nPING\r\n')],
      [Buffer.from('*1\r\n$16385\r\n')],
      [Buffer.from('*10\r\n$16384\r\n')].slice(1),
      [
        ['AUTH', 'secret'],
        ['MGET', ...Array.from({ length: 20 }, (_, i) => `k${i}`)],
        ['SET', 'big', 'x'.repeat(20_000)],
        ['STRLEN', 'big'],
        ['DEL', 'big'],
      ],
    ]));

  test('one who logs in does not log in another', async () => {
    const [one, two] = [await Wire.open({ port: stage.shard.port }), await Wire.open({ port: stage.shard.port })];
    assert.equal(await one.ask('AUTH', 'secret'), '+OK');
    assert.equal(await two.ask('GET', 'x'), '-NOAUTH Authentication required.');
    assert.equal(await one.ask('SET', 'x', 1), '+OK');
    assert.equal(await two.ask('GET', 'x'), '-NOAUTH Authentication required.');
    // What is piped behind AUTH is done as that user.
    assert.deepEqual(
      await two.pipeline([
        ['GET', 'x'],
        ['AUTH', 'app', 'pw'],
        ['ACL', 'WHOAMI'],
        ['GET', 'x'],
      ]),
      ['-NOAUTH Authentication required.', '+OK', '$3\r\napp', '$1\r\n1'],
    );
    one.destroy();
    two.destroy();
    assert.deepEqual(stage.shard.snapshot().mismatches, {});
  });

  test('AUTH while the source is down closes the client, and nothing else', async () => {
    const [source] = stage.servers;
    const [bystander, client] = [
      await Wire.open({ port: stage.shard.port }),
      await Wire.open({ port: stage.shard.port }),
    ];
    await source.kill('SIGKILL');
    client.send('AUTH', 'secret');
    await client.closed;
    bystander.send('HELLO', 3, 'AUTH', 'app', 'pw');
    await bystander.closed;
    const third = await Wire.open({ port: stage.shard.port });
    third.send('CLIENT', 'ID');
    await third.closed;
    await source.start();
    await withWire(stage.shard.port, async (wire) => assert.equal(await wire.ask('AUTH', 'secret'), '+OK'));
  });
});
