/**
 * What clients may cost together, and how long a client may do nothing.
 *
 * Needs real sockets: what kernels buffer for clients that do not read, TLS handshakes, and TCP keepalive.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';
import { makeCertificates } from '../../support/servers.js';
import { partsOf, until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { needs } from '../../support/needs.js';

const MIB = 1 << 20;
const repeat = (count: number, ...args: Argument[]): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => encodeCommand(args)));

describe('limits of clients', () => {
  test('readers that do not read are closed, the largest first, before all of them take too much', () =>
    withRig({ limits: { totalClientBytes: 24 * MIB } }, async (rig) => {
      const good = await rig.wire();
      await good.ask('SET', 'big', Buffer.alloc(MIB, 'v'));
      const small = await rig.wire();
      small.socket.pause();
      small.sendBytes(repeat(4, 'GET', 'big'));
      const before = process.memoryUsage.rss();
      const greedy = await Promise.all(Array.from({ length: 20 }, () => rig.wire()));
      for (const wire of greedy) {
        wire.socket.pause();
        wire.sendBytes(repeat(200, 'GET', 'big'));
      }
      const { shard } = rig.shard;
      await until(() => shard.snapshot().clientsClosed.memory >= 3);
      assert.equal(await good.ask('STRLEN', 'big'), `:${MIB}`);
      // They ask on: what they take must stay bounded.
      await sleep(1_500);
      assert.ok(shard.snapshot().clientBytes <= 24 * MIB, `${shard.snapshot().clientBytes}`);
      assert.ok(process.memoryUsage.rss() - before < 400 * MIB);
      small.socket.resume();
      assert.equal((await small.frames(4)).length, 4);
      // What the others asked for is still being answered, and mirrored.
      for (const wire of greedy) wire.socket.destroy();
      await until(() => partsOf(shard).sequencer.isEmpty);
      await rig.assertEqual();
    }));

  for (const [kind, sockets, threads] of [
    ["Node's sockets", 'node', 0],
    ['native sockets', 'auto', 0],
    ['native front threads', 'auto', 2],
  ] as const)
    test(`clients that do not read their last reply are closed before all of them take too much: ${kind}`, async (t) => {
      if (sockets === 'auto' && !(await needs(t, 'native'))) return;
      const limit = 8 * MIB;
      await withRig({ sockets, threads, limits: { totalClientBytes: limit } }, async (rig) => {
        const good = await rig.wire();
        // It fits into the ring of a front.
        await good.ask('SET', 'big', Buffer.alloc(900 * 1024, 'v'));
        const { shard } = rig.shard;
        const { sessions } = partsOf(shard).clients;
        // How much of a reply the kernel leaves here differs from machine to machine.
        for (let kept = 0; kept <= limit && shard.snapshot().clientsClosed.memory === 0;) {
          const known = new Set(sessions.keys());
          const wire = await rig.wire();
          await wire.ask('PING');
          const [session] = [...sessions].filter(([id]) => !known.has(id)).map(([, each]) => each);
          wire.socket.pause();
          // Until the buffers of the kernel are full, and the first byte is kept here.
          while (session.client.socket.writableLength === 0 && !session.client.socket.destroyed) {
            wire.send('GET', 'big');
            await good.ask('GET', 'big');
            await sleep(5);
          }
          kept += session.client.socket.writableLength;
        }
        await until(() => shard.snapshot().clientsClosed.memory > 0, 5_000);
        await until(() => shard.snapshot().clientBytes <= limit);
      });
    });

  test('what is sent and not run yet counts: transactions, unfinished commands, what stands behind a command that blocks', () =>
    withRig({ limits: { totalClientBytes: 4 * MIB } }, async (rig) => {
      const good = await rig.wire();
      const { shard } = rig.shard;
      const uses = [
        Buffer.concat([encodeCommand(['MULTI']), repeat(80, 'SET', 'k', Buffer.alloc(64 * 1024, 'x'))]),
        Buffer.concat([Buffer.from('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$104857600\r\n'), Buffer.alloc(6 * MIB, 'x')]),
      ];
      for (const [i, bytes] of uses.entries()) {
        const wire = await rig.wire();
        wire.sendBytes(bytes);
        await until(() => shard.snapshot().clientsClosed.memory > i);
        await wire.closed;
      }
      const blocked = await Promise.all(Array.from({ length: 8 }, () => rig.wire()));
      for (const wire of blocked)
        wire.sendBytes(
          Buffer.concat([encodeCommand(['BLPOP', 'q', 0]), repeat(240, 'SET', 'k', Buffer.alloc(4096, 'x'))]),
        );
      await until(() => shard.snapshot().clientsClosed.memory > uses.length);
      assert.equal(await good.ask('PING'), '+PONG');
      assert.equal(await good.ask('EXISTS', 'k'), ':0');
      await rig.assertEqual();
    }));

  for (const [does, sent, replies] of [
    [
      'sends more than its share of each turn',
      [encodeCommand(['CLIENT', 'REPLY', 'OFF']), Buffer.from('monitor\r\n'.repeat(1_000_000))],
      0,
    ],
    [
      'blocks again and again with much behind that',
      [repeat(40, 'BLPOP', 'q', '0.001'), repeat(16_000, 'MONITOR', 'x'.repeat(1_000))],
      40 + 16_000,
    ],
  ] as const)
    test(`a client that ${does} is read no faster than it is served, and is not closed`, () =>
      withRig({ limits: { totalClientBytes: 6 * MIB } }, async (rig) => {
        const { shard } = rig.shard;
        const wire = await rig.wire();
        for (const bytes of sent) wire.sendBytes(bytes);
        wire.sendBytes(repeat(1, 'CLIENT', 'REPLY', 'ON'));
        let most = 0;
        const timer = setInterval(() => (most = Math.max(most, shard.snapshot().clientBytes)), 5);
        const frames = await wire.frames(replies + 1).finally(() => clearInterval(timer));
        assert.equal(frames.at(-1), '+OK');
        assert.ok(most > 0 && most < 2 * MIB, `${most} bytes`);
        assert.equal(shard.snapshot().clientsClosed.memory, 0);
      }));

  test('what a client has sent is let go of when it hangs up', () =>
    withRig({}, async (rig) => {
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc') as () => void;
      const held = (): number => {
        collect();
        return getHeapStatistics().external_memory;
      };
      const unfinished = Buffer.concat([
        Buffer.from('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$104857600\r\n'),
        Buffer.alloc(8 * MIB, 'x'),
      ]);
      const before = held();
      const { shard } = rig.shard;
      for (let i = 0; i < 10; i++) {
        const wire = await rig.wire();
        wire.sendBytes(unfinished);
        await until(() => wire.socket.writableLength === 0);
        wire.socket.end();
        await wire.closed;
        wire.socket.destroy();
      }
      await until(() => shard.snapshot().clients === 0);
      await until(() => held() - before < 20 * MIB);
    }));

  test('a transaction that is too large is refused, and lets go of what it has queued', () =>
    withRig({ limits: { transactionBytes: MIB } }, async (rig) => {
      const wire = await rig.wire();
      const value = Buffer.alloc(64 * 1024, 'x');
      const replies = await wire.pipeline([
        ['MULTI'],
        ...Array.from({ length: 30 }, () => ['SET', 'k', value]),
        ['EXEC'],
        ['EXISTS', 'k'],
      ]);
      assert.deepEqual(
        replies.slice(1, 16),
        Array.from({ length: 15 }, () => '+QUEUED'),
      );
      assert.match(
        replies[16],
        /^-ERR shadow-proxy: the transaction takes more than 1048576 bytes \(limits\.transactionBytes/,
      );
      assert.deepEqual(
        replies.slice(17, 31),
        Array.from({ length: 14 }, () => '+QUEUED'),
      );
      assert.match(replies[31], /^-EXECABORT/);
      assert.equal(replies[32], ':0');
      assert.deepEqual(await wire.pipeline([['MULTI'], ['SET', 'k', 1], ['EXEC']]), ['+OK', '+QUEUED', '*1\r\n+OK']);
    }));

  test('a client that does not log in is closed, where a password is needed', () =>
    withRig(
      { servers: { source: { config: { requirepass: 'pw' } } }, sourcePassword: 'pw', limits: { loginMs: 500 } },
      async (rig) => {
        const [stranger, known] = [await rig.wire(), await rig.wire()];
        assert.equal(await known.ask('AUTH', 'pw'), '+OK');
        assert.match(await stranger.ask('GET', 'k'), /^-NOAUTH/);
        await stranger.closed;
        // Longer than `loginMs`: who has logged in must stay.
        await sleep(1_200);
        assert.equal(await known.ask('PING'), '+PONG');
        assert.equal(rig.shard.snapshot().clientsClosed.login, 1);
      },
    ));

  test('a client that is idle for too long is closed; one that blocks, or waits for messages, is not', () =>
    withRig({ limits: { idleMs: 800 } }, async (rig) => {
      const [idle, busy, blocked, subscriber] = await Promise.all(Array.from({ length: 4 }, () => rig.wire()));
      blocked.send('BLPOP', 'q', 0);
      await subscriber.ask('SUBSCRIBE', 'c');
      await idle.ask('PING');
      for (const until = performance.now() + 2_600; performance.now() < until; await sleep(100)) await busy.ask('PING');
      await idle.closed;
      assert.deepEqual([busy.ended, blocked.ended, subscriber.ended], [false, false, false]);
      assert.equal(rig.shard.snapshot().clientsClosed.idle, 1);
      await busy.ask('RPUSH', 'q', 'x');
      assert.equal(await blocked.frame(), '*2\r\n$1\r\nq\r\n$1\r\nx');
    }));

  test('guessing passwords is slow, and logging in is not', () =>
    withRig({ servers: { source: { config: { requirepass: 'pw' } } }, sourcePassword: 'pw' }, async (rig) => {
      const wire = await rig.wire();
      for (let i = 0; i < 10; i++) assert.match(await wire.ask('AUTH', `guess-${i}`), /^-WRONGPASS/);
      const began = performance.now();
      assert.match(await wire.ask('AUTH', 'guess'), /^-WRONGPASS/);
      assert.ok(performance.now() - began >= 950);
      let answered = false;
      const guess = (await rig.wire()).ask('AUTH', 'guess').then(() => (answered = true));
      assert.equal(await (await rig.wire()).ask('AUTH', 'pw'), '+OK');
      assert.equal(answered, false);
      await guess;
      assert.equal(rig.shard.snapshot().clientErrors.source.WRONGPASS, 12);
    }));

  test('one client too many gets an error, and a TLS handshake that does not complete counts as a client, too', async (t) => {
    if (!(await needs(t, 'openssl'))) return;
    await withRig({ limits: { clients: 2 } }, async (rig) => {
      await Promise.all([rig.wire(), rig.wire()]);
      const third = await rig.wire();
      assert.equal(await third.frame(), '-ERR max number of clients reached');
      await third.closed;
      assert.equal(rig.shard.snapshot().clientsClosed.connections, 1);
      await withRig({ limits: { clients: 2, loginMs: 700 }, listenTls: makeCertificates() }, async ({ shard }) => {
        const silent = await Promise.all([Wire.open({ port: shard.port }), Wire.open({ port: shard.port })]);
        const beyond = await Wire.open({ port: shard.port });
        await beyond.closed;
        assert.equal(shard.snapshot().clientsClosed.connections, 1);
        await Promise.all(silent.map(({ closed }) => closed));
        assert.equal(shard.snapshot().clientsClosed.login, 2);
      });
    });
  });

  test('clients are probed by TCP keepalive', { skip: process.platform !== 'linux' && 'needs /proc/net/tcp' }, () =>
    withRig({}, async (rig) => {
      const socket = connect(rig.shard.port, '127.0.0.1');
      await new Promise((resolve) => socket.once('connect', resolve));
      await until(() => rig.shard.snapshot().clients === 1);
      const { port } = socket.address() as AddressInfo;
      const hex = (number: number): string => number.toString(16).toUpperCase().padStart(4, '0');
      const lines = readFileSync('/proc/net/tcp', 'latin1').split('\n');
      const line = lines.find((each) => each.includes(`:${hex(rig.shard.port)} 0100007F:${hex(port)} `));
      // The sixth field is the timer: 02 is that of keepalive, with what is left of it in ticks of 10 ms.
      assert.match(line!.trim().split(/\s+/)[5], /^02:0000[67]/);
      socket.destroy();
    }),
  );
});
