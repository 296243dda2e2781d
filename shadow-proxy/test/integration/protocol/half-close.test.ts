/**
 * A client that closes its side (`shutdown(SHUT_WR)`) and goes on reading gets from the proxy what it would get from
 * Redis.
 *
 * Needs real sockets: half-closed connections, with TLS and without, beside those of a Redis.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { startRedis, type LocalServer } from '../../../src/local/servers.js';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { halfClose } from '../../support/half-close.js';
import { startRig, withRig, type Rig } from '../../support/rig.js';
import { makeCertificates } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { spinFor } from '../../support/spin.js';
import { needs } from '../../support/needs.js';

const commands = (...list: (readonly Argument[])[]): Buffer => Buffer.concat(list.map((args) => encodeCommand(args)));

describe('a half-closed client', () => {
  let rig: Rig & { stop(): Promise<void> };
  let twin: LocalServer;
  before(async () => {
    [rig, twin] = await Promise.all([startRig(), startRedis()]);
  });
  after(() => Promise.all([rig.stop(), twin.stop()]));

  /** The same on a Redis without a proxy. */
  async function same(what: string, bytes: Buffer): Promise<string> {
    const [proxy, redis] = await Promise.all([halfClose(rig.shard.port, bytes), halfClose(twin.port, bytes)]);
    assert.equal(proxy, redis, what);
    return proxy;
  }

  test('gets the replies to all that it has sent', async () => {
    const reads = Array.from({ length: 300 }, (_, i): Argument[] => (i % 2 === 0 ? ['INCR', 'n'] : ['GET', 'n']));
    assert.match(await same('a pipeline', commands(['DEL', 'n'], ...reads)), /\$3\r\n150\r\n$/);
    await same('one command', commands(['PING']));
    await same('nothing', Buffer.alloc(0));
    await same('inline', Buffer.from('PING\r\nECHO x\r\n'));
    await same('an unfinished command behind', Buffer.concat([commands(['ECHO', 'x']), Buffer.from('*2\r\n$3\r\nGE')]));
    await same('a refused command', commands(['NOSUCH'], ['GET']));
    await same('a protocol error', Buffer.concat([commands(['PING']), Buffer.from('*1\r\n!\r\n')]));
  });

  test('gets the replies of a transaction, and of what the proxy must wait for', async () => {
    await same(
      'a transaction',
      commands(['DEL', 'n'], ['MULTI'], ['INCR', 'n'], ['INCR', 'n'], ['EXEC'], ['GET', 'n']),
    );
    await same('one without EXEC', commands(['MULTI'], ['INCR', 'n']));
    await same('a watched one', commands(['DEL', 'w'], ['WATCH', 'w'], ['MULTI'], ['INCR', 'w'], ['EXEC']));
    await same(
      'other lanes',
      commands(
        ['SET', 'a', 1],
        ['CLIENT', 'SETNAME', 'x'],
        ['CLIENT', 'GETNAME'],
        ['SELECT', 3],
        ['GET', 'a'],
        ['SELECT', 0],
        ['GET', 'a'],
      ),
    );
    await same(
      'a script',
      commands(['EVAL', "redis.call('SET', KEYS[1], 'x') return redis.call('GET', KEYS[1])", 1, 's']),
    );
    await rig.shard.settled();
  });

  test('does not wait: what blocks ends with the connection, and takes nothing', async () => {
    await same('something to pop', commands(['DEL', 'q'], ['RPUSH', 'q', 1], ['BLPOP', 'q', 0]));
    await same('nothing to pop', commands(['DEL', 'q'], ['BLPOP', 'q', 0], ['PING']));
    // The side is closed before the server is asked whether there is something.
    await same('nothing to pop, behind something slow', commands(['EVAL', spinFor(0.2), 0], ['BLPOP', 'q', 0]));
    await until(() => rig.shard.snapshot().clients === 0);
    const wire = await rig.wire();
    assert.equal(await wire.ask('RPUSH', 'q', 'kept'), ':1');
    assert.equal(await wire.ask('LRANGE', 'q', 0, -1), '*1\r\n$4\r\nkept');
    await same('a subscription', commands(['SUBSCRIBE', 'c']));
    await until(() => rig.shard.snapshot().clients === 1);
    wire.destroy();
    await rig.assertEqual();
  });

  test('gets large replies whole, also where it is slow to read them, which Redis does not promise', async () => {
    const wire = await rig.wire();
    await wire.ask('SET', 'big', 'x'.repeat(1 << 20));
    const reply = await halfClose(
      rig.shard.port,
      commands(...Array.from({ length: 20 }, (): Argument[] => ['GET', 'big'])),
      { readMs: 1_600 },
    );
    assert.equal(reply.length, 20 * ((1 << 20) + 12));
    wire.destroy();
  });

  test('also over TLS', async (t) => {
    if (!(await needs(t, 'openssl'))) return;
    const listenTls = makeCertificates();
    await withRig({ listenTls }, async ({ shard }) => {
      assert.equal(
        await halfClose(shard.port, commands(['SET', 'a', 1], ['GET', 'a']), { ca: readFileSync(listenTls.ca) }),
        '+OK\r\n$1\r\n1\r\n',
      );
    });
  });
});
