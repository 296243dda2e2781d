/**
 * What goes over the wire: inline commands, malformed input, pipelines, types of RESP3, large values.
 *
 * Needs real sockets: bytes in pieces of every size, malformed frames, and clients that do not read.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { startCpuClock } from '../../support/cpu.js';
import { startRig } from '../../support/rig.js';
import { makeCertificates, sourceHas } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { besideRedis } from '../../support/twin.js';
import { Wire, withWire } from '../../support/wire.js';
import { type Line } from '../../support/dialogue.js';
import { missing, needs } from '../../support/needs.js';

const raw = (text: string): Buffer => Buffer.from(text, 'latin1');

describe('the wire', () => {
  const beside = besideRedis();
  const { same } = beside;

  test('inline commands', async () =>
    same([
      [
        raw('PING\r\n'),
        raw('ping\n'),
        raw('SET inline "a b\\x41\\n"\r\n'),
        raw('GET inline\r\n'),
        raw("SET inline 'it\\'s'\r\n"),
        raw('GET inline\r\n'),
        raw('  \r\n\r\nECHO  x  \r\n'),
      ],
      [raw('MULTI\r\n'), raw('INCR counter\n'), raw('EXEC\r\n'), raw('HELLO 3\r\n'), raw('DEL counter inline\r\n')],
      [raw('SET a "unbalanced\r\n'), raw('PING\r\n')],
      // Valkey 9.1 takes it for one word.
      ...((await sourceHas('valkey', '9.1')) ? [] : [[raw("ECHO 'x'y\r\n")]]),
      [raw(`ECHO ${'x'.repeat(70_000)}`)],
    ]));

  test('malformed input is answered with the error of Redis, and closes that client only', async () => {
    const bystander = await beside.rig.wire();
    await bystander.ask('SET', 'by', 1);
    await same(
      [
        '*x\r\n',
        '*-5\r\nPING\r\n',
        '*99999999999\r\n',
        '*1\r\n$x\r\n',
        '*1\r\n$-1\r\n',
        '*1\r\nPING\r\n',
        '*1\r\n:1\r\n',
        '*2\r\n$3\r\nGET\r\nfoo\r\n',
        '*1\r\n$999999999999\r\n',
        '*3\r\n$3\r\nSET\r\n$1\r\na\r\n+x\r\n',
        `*${'1'.repeat(70_000)}`,
        // Redis 8.6 waits for more without a bound.
        ...((await sourceHas('redis', '8.6')) ? [] : [`*1\r\n$${'1'.repeat(70_000)}`]),
        '*1\r\n$ 4\r\nPING\r\n',
        '*1\r\n$04\r\nPING\r\n',
        '* 1\r\n$4\r\nPING\r\n',
        '*1\r\n\u00e9\r\n',
      ].map((text): Line[] => [raw(text), ['PING']]),
    );
    assert.equal(await bystander.ask('INCR', 'by'), ':2');
    // What came before the malformed part is answered first.
    await withWire(beside.rig.shard.port, async (wire) => {
      wire.sendBytes(
        Buffer.concat([
          encodeCommand(['INCR', 'by']),
          encodeCommand(['SELECT', 2]),
          encodeCommand(['GET', 'by']),
          raw('*1\r\n!\r\n'),
          encodeCommand(['INCR', 'by']),
        ]),
      );
      assert.deepEqual(await wire.frames(4), [':3', '+OK', '$-1', "-ERR Protocol error: expected '$', got '!'"]);
      await wire.closed;
    });
    assert.equal(await bystander.ask('GET', 'by'), '$1\r\n3');
    bystander.destroy();
  });

  test('an HTTP request closes the connection before what is in it is read', async () => {
    for (const request of [
      'POST / HTTP/1.1\r\nHost: x\r\n\r\nSET http 1\r\n',
      'GET / HTTP/1.1\r\nHost: x\r\n\r\nSET http 1\r\n',
    ]) {
      await withWire(beside.rig.shard.port, async (wire) => {
        wire.sendBytes(raw(request));
        await wire.closed;
      });
    }
    const wire = await beside.rig.wire();
    assert.equal(await wire.ask('EXISTS', 'http'), ':0');
    wire.destroy();
  });

  test('as many arguments as KeyDB takes reach the mirror', async (t) => {
    if (!(await needs(t, 'keydb'))) return;
    const keys = 1024 * 1024 - 1;
    const most = await beside.rig.wire();
    const del = Buffer.concat([raw(`*${keys + 1}\r\n$3\r\nDEL\r\n`), raw('$1\r\nk\r\n'.repeat(keys))]);
    most.sendBytes(del);
    assert.deepEqual(await most.frames(1), [':0']);
    await beside.rig.shard.settled();
    assert.equal(beside.rig.shard.snapshot().suspects.total, 0);
    most.destroy();
  });

  test('a command in pieces of every size', async () => {
    const bytes = Buffer.concat(
      [['SET', 'piece', 'value\r\n'], ['GET', 'piece'], ['MULTI'], ['APPEND', 'piece', 'x'], ['EXEC']].map((args) =>
        encodeCommand(args),
      ),
    );
    for (const size of [1, 2, 3, 7, 20, 50]) {
      await withWire(beside.rig.shard.port, async (wire) => {
        for (let at = 0; at < bytes.length; at += size) {
          wire.sendBytes(bytes.subarray(at, at + size));
          await new Promise(setImmediate);
        }
        assert.deepEqual(await wire.frames(5), ['+OK', '$7\r\nvalue\r\n', '+OK', '+QUEUED', '*1\r\n:8']);
      });
    }
  });

  test('the types of both protocols', async () => {
    const setUp: Line[] = [
      ['FLUSHALL'],
      ['HSET', 'h', 'f', 'v', 'g', 'w'],
      ['ZADD', 'z', 1.5, 'a', '+inf', 'b', -0.25, 'c'],
      ['SADD', 's', 'x'],
      ['SET', 'str', 'v'],
      ['GEOADD', 'geo', 13.361389, 38.115556, 'p'],
      ['XADD', 'x', '1-1', 'f', 'v'],
      ['XGROUP', 'CREATE', 'x', 'g', 0],
      ['RPUSH', 'l', 1, 2, 3],
    ];
    const questions: Line[] = [
      ['HGETALL', 'h'],
      ['HGETALL', 'none'],
      ['ZSCORE', 'z', 'a'],
      ['ZSCORE', 'z', 'b'],
      ['ZSCORE', 'z', 'none'],
      ['ZRANGE', 'z', 0, -1, 'WITHSCORES'],
      ['ZMSCORE', 'z', 'a', 'none'],
      ['ZINCRBY', 'z', 0.5, 'a'],
      ['SMEMBERS', 's'],
      ['SISMEMBER', 's', 'x'],
      ['GET', 'none'],
      ['MGET', 'str', 'none'],
      ['LPOP', 'none', 2],
      ['LPOP', 'l', 2],
      ['GEOPOS', 'geo', 'p', 'none'],
      ['GEODIST', 'geo', 'p', 'none'],
      ['XREAD', 'STREAMS', 'x', 0],
      ['XREAD', 'STREAMS', 'x', '$'],
      ['XINFO', 'STREAM', 'x'],
      ['XPENDING', 'x', 'g'],
      ['CONFIG', 'GET', 'maxmemory'],
      ['COMMAND', 'COUNT'],
      ['EVAL', 'return {1, "a", false, {true}}', 1, 's'],
      ['EVAL', 'return {double=3.5}', 1, 's'],
      ['EVAL', 'redis.setresp(3) return redis.call("HGETALL", KEYS[1])', 1, 'h'],
      ['EVAL', 'return {map={a=1}}', 1, 's'],
      ['MULTI'],
      ['HGETALL', 'h'],
      ['ZSCORE', 'z', 'a'],
      ['GET', 'none'],
      ['EXEC'],
      ['OBJECT', 'ENCODING', 'none'],
      ['HRANDFIELD', 'none', 2, 'WITHVALUES'],
      ['ZPOPMIN', 'z'],
      ['LPOS', 'l', 'x'],
      ['LCS', 'str', 'str', 'IDX'],
    ];
    await same([
      [...setUp, ['HELLO', 2], ...questions],
      [...setUp, ['HELLO', 3], ...questions],
      [...setUp, ...questions.slice(0, 26).flatMap((line): Line[] => [['HELLO', 3], line, ['HELLO', 2]])],
    ]);
  });

  test('ten thousand commands at once are answered in order', async () => {
    for (const protocol of [2, 3]) {
      const wire = await beside.rig.wire();
      await wire.ask('HELLO', protocol);
      const commands: Argument[][] = Array.from({ length: 10_000 }, (_, i) => {
        if (i % 100 === 99) return ['ECHO', `e${i}`];
        return i % 3 === 0
          ? ['SET', `p:${i % 500}`, i]
          : i % 3 === 1
            ? ['GET', `p:${(i - 1) % 500}`]
            : ['INCR', 'pipelined'];
      });
      let counted = Number((await wire.ask('INCRBY', 'pipelined', 0)).slice(1));
      const replies = await wire.pipeline(commands, 20_000);
      for (const [i, [name, value]] of commands.entries()) {
        const expected =
          name === 'ECHO'
            ? `$${String(value).length}\r\n${value}`
            : name === 'SET'
              ? '+OK'
              : name === 'INCR'
                ? `:${++counted}`
                : `$${String(i - 1).length}\r\n${i - 1}`;
        if (name !== 'GET' || (i - 1) % 100 !== 99)
          assert.equal(replies[i], expected, `${i}: ${commands[i].join(' ')}`);
      }
      wire.destroy();
    }
    await beside.rig.shard.settled();
  });

  test('a pipeline with everything between its commands that the proxy must wait for', async () => {
    await withWire(beside.rig.shard.port, async (wire) => {
      const round = (i: number): Argument[][] => [
        ['SET', 'w', i],
        ['SELECT', 1],
        ['SET', 'w', -i],
        ['HELLO', 3],
        ['GET', 'w'],
        ['SELECT', 0],
        ['HELLO', 2],
        ['GET', 'w'],
        ['CLIENT', 'GETNAME'],
        ['FLUSHDB'],
        ['GET', 'w'],
        ['MULTI'],
        ['INCR', 'n'],
        ['EXEC'],
        ['SWAPDB', 0, 1],
        ['GET', 'w'],
        ['RESET'],
        ['FOO'],
      ];
      const replies = await wire.pipeline(Array.from({ length: 50 }, (_, i) => round(i + 1)).flat(), 20_000);
      for (let i = 0; i < 50; i++) {
        const [, , , hello, inOne, , , inZero, , , lost, , , exec, , swapped, reset, foo] = replies.slice(
          i * 18,
          i * 18 + 18,
        );
        assert.match(hello, /^%7/);
        assert.deepEqual(
          [inOne, inZero, lost, exec, swapped, reset],
          [
            `$${String(-i - 1).length}\r\n${-i - 1}`,
            `$${String(i + 1).length}\r\n${i + 1}`,
            '$-1',
            '*1\r\n:1',
            `$${String(-i - 1).length}\r\n${-i - 1}`,
            '+RESET',
          ],
        );
        assert.match(foo, /^-ERR unknown command/);
      }
    });
    await beside.rig.assertEqual();
  });

  test('a value of 64 MiB', async () => {
    const value = Buffer.alloc(64 << 20, 'large values are data too ');
    const digest = createHash('sha1').update(value).digest('hex');
    const [wire, other] = [await beside.rig.wire(), await beside.rig.wire()];
    wire.send('SET', 'large', value);
    wire.send('GET', 'large');
    let slowest = 0;
    let stop = false;
    const small = (async () => {
      while (!stop) {
        const usedMs = startCpuClock();
        await other.ask('PING');
        slowest = Math.max(slowest, usedMs());
      }
    })();
    assert.equal(await wire.frame(20_000), '+OK');
    const reply = await wire.frame(20_000);
    stop = true;
    await small;
    assert.equal(
      createHash('sha1')
        .update(Buffer.from(reply.slice(reply.indexOf('\n') + 1), 'latin1'))
        .digest('hex'),
      digest,
    );
    assert.equal(await wire.ask('STRLEN', 'large'), `:${64 << 20}`);
    await beside.rig.shard.settled(20_000);
    const behind = beside.rig.client({ of: beside.rig.target });
    assert.equal(
      createHash('sha1')
        .update((await behind.getBuffer('large'))!)
        .digest('hex'),
      digest,
    );
    assert.deepEqual(beside.rig.shard.snapshot().mismatches, {});
    assert.ok(slowest < 2_000, `another client waited for ${slowest} ms of work`);
    await wire.ask('DEL', 'large');
    wire.destroy();
    other.destroy();
  });

  test('a client that got a protocol error and does not close its end is closed', async () => {
    await until(() => beside.rig.shard.snapshot().clients === 0);
    const stubborn = connect({ port: beside.rig.shard.port, host: '127.0.0.1', allowHalfOpen: true });
    stubborn.on('error', () => undefined);
    stubborn.resume().write('*1\r\n!\r\n');
    await until(() => beside.rig.shard.snapshot().clients === 1);
    const keep = setInterval(() => stubborn.write('PING\r\n'), 50);
    await until(() => beside.rig.shard.snapshot().clients === 0);
    clearInterval(keep);
    stubborn.destroy();
  });

  test('a client that sends and does not read for a while gets everything', async () => {
    const wire = await Wire.open({ port: beside.rig.shard.port });
    await wire.ask('SET', 'big', 'x'.repeat(100_000));
    wire.socket.pause();
    wire.sendBytes(
      Buffer.concat(Array.from({ length: 500 }, (_, i) => encodeCommand(i % 2 ? ['GET', 'big'] : ['INCR', 'slow']))),
    );
    await until(() => beside.rig.shard.snapshot().clientBytes > 1_000_000);
    const other = await beside.rig.wire();
    assert.equal(await other.ask('PING'), '+PONG');
    wire.socket.resume();
    const replies = await wire.frames(500, 10_000);
    assert.deepEqual([replies[498], replies[499].length], [':250', 100_009]);
    wire.destroy();
    await beside.rig.assertEqual();
  });
});

for (const secure of [false, true]) {
  test(
    `a client that sends all of a large pipeline${secure ? ' over TLS' : ''} before it reads is served`,
    { timeout: 60_000, skip: secure && (await missing('openssl')) },
    async () => {
      const listenTls = secure ? makeCertificates() : undefined;
      const rig = await startRig({ listenTls });
      const wire = await Wire.open({
        port: rig.shard.port,
        ...(listenTls && { tls: { ca: readFileSync(listenTls.ca) } }),
      });
      try {
        await wire.ask('SET', 'k', 'x'.repeat(4_000));
        wire.socket.pause();
        // Much more, both ways, than sockets hold.
        const frame = encodeCommand(['GETSET', 'k', 'x'.repeat(4_000)]);
        for (let i = 0; i < 100; i++)
          await new Promise((sent) => wire.socket.write(Buffer.concat(Array.from({ length: 100 }, () => frame)), sent));
        wire.socket.resume();
        const replies = await wire.frames(10_000);
        assert.ok(replies.every((reply) => reply.length === 4_007));
        assert.equal(await wire.ask('PING'), '+PONG');
        await rig.assertEqual();
      } finally {
        wire.destroy();
        await rig.stop();
      }
    },
  );
}

test('a client that never reads is closed when it owes more than the limit, also by small replies', async () => {
  const rig = await startRig({ limits: { clientOutputBytes: 8_000_000 } });
  try {
    const [greedy, other] = [await rig.wire(), await rig.wire()];
    await greedy.ask('SET', 'k', 'x'.repeat(4_000));
    greedy.socket.pause();
    const frames = Buffer.concat(Array.from({ length: 1_000 }, () => encodeCommand(['GET', 'k'])));
    for (let i = 0; i < 20; i++) greedy.sendBytes(frames);
    await until(() => rig.shard.snapshot().clients === 1);
    assert.equal(await other.ask('STRLEN', 'k'), ':4000');
  } finally {
    await rig.stop();
  }
});

test('a client that leaves too much unread is closed, and costs no more memory than that', async () => {
  const rig = await startRig({ limits: { clientOutputBytes: 5_000_000 } });
  try {
    const [greedy, other] = [await rig.wire(), await rig.wire()];
    await other.ask('SET', 'big', 'x'.repeat(300_000));
    greedy.socket.pause();
    const before = process.memoryUsage().arrayBuffers;
    greedy.sendBytes(Buffer.concat(Array.from({ length: 500 }, () => encodeCommand(['GET', 'big']))));
    await until(() => rig.shard.snapshot().clients === 1);
    assert.ok(process.memoryUsage().arrayBuffers - before < 120_000_000);
    assert.equal(await other.ask('STRLEN', 'big'), ':300000');
    await rig.assertEqual();
  } finally {
    await rig.stop();
  }
});
