/**
 * CLIENT: the proxy's clients, as Redis would tell of them; and CLIENT REPLY.
 *
 * Needs real servers: the wordings and fields of CLIENT.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sourceHas } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { besideRedis } from '../../support/twin.js';
import { Wire } from '../../support/wire.js';
import { missing } from '../../support/needs.js';

const before70 = await missing('redis>=7.0');

describe('CLIENT', () => {
  const beside = besideRedis();
  const { same } = beside;

  test('each subcommand, and what is wrong with it, as Redis says it', { skip: before70 }, async () =>
    same([
      [
        ['CLIENT', 'GETNAME'],
        ['CLIENT', 'SETNAME', 'n'],
        ['CLIENT', 'GETNAME'],
        ['HELLO', 3],
        ['CLIENT', 'GETNAME'],
        ['CLIENT', 'SETNAME', ''],
        ['CLIENT', 'GETNAME'],
        ['RESET'],
        ['CLIENT', 'GETNAME'],
      ],
      [
        ['CLIENT', 'SETNAME'],
        ['CLIENT', 'SETNAME', 'a b'],
        ['CLIENT', 'SETNAME', 'a', 'b'],
        ['CLIENT', 'GETNAME', 'x'],
        ['CLIENT', 'ID', 'x'],
        ['client', 'getname'],
      ],
      [
        ['CLIENT', 'SETINFO', 'lib-name', 'x'],
        ['CLIENT', 'NO-EVICT', 'ON'],
        ['CLIENT', 'NO-EVICT', 'maybe'],
        ['CLIENT', 'NO-EVICT'],
        ['CLIENT', 'NO-TOUCH', 'ON'],
        ['CLIENT', 'GETREDIR'],
        ['CLIENT', 'TRACKINGINFO'],
        ['HELLO', 3],
        ['CLIENT', 'TRACKINGINFO'],
      ],
      [
        ['CLIENT', 'KILL'],
        ['CLIENT', 'KILL', 'x'],
        ['CLIENT', 'KILL', '127.0.0.1:1'],
        ['CLIENT', 'KILL', 'ID', '0'],
        // Valkey sees a syntax error there.
        ...((await sourceHas('valkey', '8.1')) ? [] : [['CLIENT', 'KILL', 'ID', 'x']]),
        ['CLIENT', 'KILL', 'ID', '99999'],
        ['CLIENT', 'KILL', 'TYPE', 'x'],
        ['CLIENT', 'KILL', 'TYPE', 'pubsub'],
      ],
      [
        ['CLIENT', 'KILL', 'FOO', 'x'],
        ['CLIENT', 'KILL', 'ID', '99999', 'ADDR'],
        ['CLIENT', 'KILL', 'SKIPME', 'perhaps'],
        ['CLIENT', 'KILL', 'ADDR', '1.2.3.4:5', 'SKIPME', 'no'],
        ['CLIENT', 'KILL', 'LADDR', '1.2.3.4:5'],
      ],
      [
        ['CLIENT', 'LIST', 'TYPE', 'x'],
        ['CLIENT', 'LIST', 'FOO'],
        ['CLIENT', 'LIST', 'TYPE'],
        ['CLIENT', 'LIST', 'ID'],
        ['CLIENT', 'LIST', 'ID', 'x'],
        ['CLIENT', 'LIST', 'TYPE', 'replica'],
      ],
      [
        ['CLIENT', 'UNBLOCK', '99999'],
        ['CLIENT', 'UNBLOCK', 'x'],
        ['CLIENT', 'UNBLOCK'],
        ['CLIENT', 'REPLY'],
        ['CLIENT', 'REPLY', 'MAYBE'],
        ['CLIENT', 'REPLY', 'ON'],
        ['CLIENT', 'HELP', 'x'],
      ],
      [
        ['MULTI'],
        ['CLIENT', 'SETNAME', 'm'],
        ['SET', 'k', 1],
        ['CLIENT', 'GETNAME'],
        ['EXEC'],
        ['MULTI'],
        ['CLIENT', 'GETNAME', 'x'],
        ['EXEC'],
      ],
    ]),
  );

  test('what a client asks for that no server knows counts for neither', async () => {
    const wire = await beside.rig.wire();
    await wire.pipeline([
      ['CLIENT', 'SETINFO', 'LIB-NAME', 'x'],
      ['CLIENT', 'SETINFO'],
      ['CLIENT', 'MAINT_NOTIFICATIONS', 'ON', 'moving-endpoint-type', 'auto'],
      ['HYBRID'],
    ]);
    await wire.pipeline([
      ['MULTI'],
      ['CLIENT', 'SETINFO', 'LIB-VER', '1'],
      ['CLIENT', 'MAINT_NOTIFICATIONS', 'ON'],
      ['EXEC'],
    ]);
    assert.deepEqual(beside.rig.shard.snapshot().unsupported, {});
    wire.destroy();
  });

  test('LIST, INFO and ID tell of the clients of the proxy, and of nothing else', async () => {
    const [one, two] = [await beside.rig.wire(), await beside.rig.wire()];
    await one.ask('HELLO', 3, 'SETNAME', 'one');
    await two.ask('SELECT', 3);
    const id = (await one.ask('CLIENT', 'ID')).slice(1);
    const list = await two.ask('CLIENT', 'LIST');
    assert.match(
      list,
      new RegExp(`id=${id} addr=127\\.0\\.0\\.1:${one.socket.localPort} .* name=one .* db=0 .* resp=3`),
    );
    assert.match(list, new RegExp(`addr=127\\.0\\.0\\.1:${two.socket.localPort} .* db=3 .* resp=2`));
    assert.equal(list.match(/^id=/gm)!.length, beside.rig.shard.snapshot().clients);
    assert.doesNotMatch(list, /shadow-proxy/);
    assert.equal((await two.ask('CLIENT', 'LIST', 'ID', id, 999)).match(/^id=/gm)!.length, 1);
    assert.match(await one.ask('CLIENT', 'INFO'), /name=one/);
    one.destroy();
    two.destroy();
  });

  test('INFO has the fields of the source, and what is true of them', async () => {
    const [wire, direct] = [await beside.rig.wire(), await Wire.open({ port: beside.twin.port })];
    const infoOf = async (asked: Promise<string>): Promise<ReadonlyMap<string, string>> =>
      new Map(
        (await asked)
          .split('\r\n')
          .at(-1)!
          .trim()
          .split(' ')
          .map((field) => field.split('=') as [string, string]),
      );
    for (const each of [wire, direct]) await each.ask('CLIENT', 'SETINFO', 'LIB-NAME', 'lib');
    const said = await infoOf(wire.ask('CLIENT', 'INFO'));
    const redis = await infoOf(direct.ask('CLIENT', 'INFO'));
    assert.deepEqual(
      [...redis.keys()].filter((name) => !said.has(name)),
      [],
    );
    for (const name of ['multi', 'flags', 'cmd', 'events', 'redir', 'omem', 'oll', 'user', 'resp', 'lib-name'])
      assert.equal(said.get(name), redis.get(name), name);
    for (const each of [wire, direct]) {
      assert.equal((await each.pipeline([['MULTI'], ['SET', 'k', 'v'], ['CLIENT', 'INFO']])).at(-1), '+QUEUED');
      assert.match(await each.ask('EXEC'), / flags=x .* multi=[12] /);
      each.destroy();
    }
  });

  test('LIST shows the last command of each client, and what a client has not read', async () => {
    const [one, two, three] = [await beside.rig.wire(), await beside.rig.wire(), await beside.rig.wire()];
    const ids = await Promise.all([one, two].map(async (wire) => (await wire.ask('CLIENT', 'ID')).slice(1)));
    const line = async (id: string): Promise<string> => three.ask('CLIENT', 'LIST', 'ID', id);
    assert.match(await line(ids[0]), / cmd=client\|id /);
    await one.ask('SET', 'large', 'x'.repeat(1 << 20));
    assert.match(await line(ids[0]), / omem=0 .* events=r cmd=set /);
    two.socket.pause();
    for (let i = 0; i < 64; i++) two.send('GET', 'large');
    await until(async () => / omem=[1-9]\d* tot-mem=[1-9]\d* events=rw cmd=get /.test(await line(ids[1])));
    for (const each of [one, two, three]) each.destroy();
  });

  test('KILL ends a client of the proxy, with what it has in flight, and no other', async () => {
    const [one, two, three] = [await beside.rig.wire(), await beside.rig.wire(), await beside.rig.wire()];
    const id = (await two.ask('CLIENT', 'ID')).slice(1);
    assert.equal(await one.ask('CLIENT', 'KILL', 'ID', id), ':1');
    await two.closed;
    assert.equal(await one.ask('CLIENT', 'KILL', `127.0.0.1:${three.socket.localPort}`), '+OK');
    await three.closed;
    const [four, own] = [await beside.rig.wire(), await one.ask('CLIENT', 'ID')];
    await four.ask('PING');
    await until(() => beside.rig.shard.snapshot().clients === 2);
    assert.equal(await one.ask('CLIENT', 'KILL', 'TYPE', 'normal'), ':1');
    await four.closed;
    assert.equal(await one.ask('PING'), '+PONG');
    assert.equal(await one.ask('CLIENT', 'KILL', 'ID', own.slice(1), 'SKIPME', 'no'), ':1');
    await one.closed;
    await until(() => beside.rig.shard.snapshot().clients === 0);
    assert.match(await (await beside.rig.wire()).ask('SET', 'after', 1), /OK/);
  });

  test('CLIENT REPLY OFF and SKIP keep back just what they say', async () => {
    for (const port of [beside.twin.port, beside.rig.shard.port]) {
      const wire = await Wire.open({ port });
      const said = async (...lines: (readonly (string | number)[])[]): Promise<string[]> => {
        for (const line of lines) wire.send(...line);
        wire.send('ECHO', 'end');
        const replies: string[] = [];
        for (;;) {
          const reply = await wire.frame();
          if (reply === '$3\r\nend') return replies;
          replies.push(reply);
        }
      };
      assert.deepEqual(await said(['SET', 'r', 1], ['CLIENT', 'REPLY', 'SKIP'], ['SET', 'r', 2], ['GET', 'r']), [
        '+OK',
        '$1\r\n2',
      ]);
      assert.deepEqual(
        await said(
          ['CLIENT', 'REPLY', 'OFF'],
          ['INCR', 'r'],
          ['PING'],
          ['MGET', 'r'],
          ['CLIENT', 'ID'],
          ['FOO'],
          ['CLIENT', 'REPLY', 'ON'],
          ['GET', 'r'],
        ),
        ['+OK', '$1\r\n3'],
      );
      assert.deepEqual(
        await said(['CLIENT', 'REPLY', 'SKIP'], ['CLIENT', 'REPLY', 'SKIP'], ['INCR', 'r'], ['GET', 'r']),
        ['$1\r\n4'],
      );
      assert.deepEqual(await said(['CLIENT', 'REPLY', 'SKIP'], ['CLIENT', 'SETNAME', 'n'], ['CLIENT', 'GETNAME']), [
        '$1\r\nn',
      ]);
      assert.deepEqual(await said(['CLIENT', 'REPLY', 'SKIP'], ['MULTI'], ['INCR', 'r'], ['EXEC']), [
        '+QUEUED',
        '*1\r\n:5',
      ]);
      assert.deepEqual(
        await said(
          ['CLIENT', 'REPLY', 'OFF'],
          ['SELECT', 1],
          ['SET', 'r', 'x'],
          ['HELLO', 3],
          ['FLUSHDB'],
          ['XADD', 's', 'MAXLEN', '~', 1, '*', 'f', 'v'],
          ['CLIENT', 'REPLY', 'ON'],
          ['GET', 'r'],
        ),
        ['+OK', '_'],
      );
      wire.destroy();
    }
    await beside.rig.assertEqual();
  });
});
