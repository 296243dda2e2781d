/**
 * Whatever reads and writes the clients' sockets, clients get the same.
 *
 * Needs real sockets: Node's sockets, native sockets and front threads, with TLS and without.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { frontThreads } from '../../../src/front/threads.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { halfClose } from '../../support/half-close.js';
import { withRig, type Rig, type RigOptions } from '../../support/rig.js';
import { makeCertificates } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';
import { missing, needs } from '../../support/needs.js';

const MIB = 1 << 20;
const withoutNative = await missing('native');

/** As many workers as Node allows here: one before 22.12. */
const { threads: workers } = frontThreads(2, 1, false);

const KINDS = [
  { name: "Node's sockets", sockets: 'node', threads: 0, lacks: false },
  { name: `${workers} front thread(s) of Node`, sockets: 'node', threads: workers, lacks: false },
  { name: 'native sockets', sockets: 'auto', threads: 0, lacks: withoutNative },
  { name: 'two native front threads', sockets: 'auto', threads: 2, lacks: withoutNative },
] as const;

for (const { name, sockets, threads, lacks } of KINDS) {
  const withThreads = (options: RigOptions, body: (rig: Rig) => Promise<void>): Promise<void> =>
    withRig({ ...options, sockets, threads }, body);
  describe(name, { skip: lacks }, () => protocol(withThreads));
}

function protocol(withThreads: (options: RigOptions, body: (rig: Rig) => Promise<void>) => Promise<void>): void {
  test('every client gets its replies, of every size, in order', () =>
    withThreads({}, async (rig) => {
      const value = Buffer.from(Array.from({ length: 3 * MIB }, (_, i) => 33 + ((i * 7 + (i >> 8)) % 90)));
      const clients = await Promise.all(Array.from({ length: 5 }, () => rig.wire()));
      await Promise.all(
        clients.map(async (client, i) => {
          for (const size of [0, 1, 95, 97, 5_000, 65_530, 65_536, 300_000, 1_048_576, 2_500_000]) {
            const wanted = value.subarray(i, i + size);
            const replies = await client.pipeline([
              ['SET', `k:${i}`, wanted],
              ['GET', `k:${i}`],
              ['INCR', `n:${i}`],
            ]);
            assert.equal(replies.length, 3);
            assert.equal(await client.ask('STRLEN', `k:${i}`), `:${size}`);
            assert.equal(await client.ask('GET', `k:${i}`), `$${size}\r\n${wanted.toString()}`);
          }
        }),
      );
      await rig.assertEqual();
    }));

  test('one that reads late gets everything, and others are served meanwhile', () =>
    withThreads({}, async (rig) => {
      const [slow, other] = [await rig.wire(), await rig.wire()];
      await other.ask('SET', 'big', Buffer.alloc(MIB, 'v'));
      slow.socket.pause();
      slow.sendBytes(Buffer.concat(Array.from({ length: 60 }, () => encodeCommand(['GET', 'big']))));
      // It owes what it does not read, and that is known.
      await until(() => rig.shard.snapshot().clientBytes > 5 * MIB);
      assert.equal(await other.ask('INCR', 'n'), ':1');
      slow.socket.resume();
      const frames = await slow.frames(60);
      assert.ok(frames.every((frame) => frame.length > MIB && frame.endsWith('vvv')));
      await until(() => rig.shard.snapshot().clientBytes < MIB);
    }));

  test('one that reads nothing is closed at its limit', () =>
    withThreads({ limits: { clientOutputBytes: 4 * MIB } }, async (rig) => {
      const [slow, other] = [await rig.wire(), await rig.wire()];
      await other.ask('SET', 'big', Buffer.alloc(MIB, 'v'));
      slow.socket.pause();
      slow.sendBytes(Buffer.concat(Array.from({ length: 100 }, () => encodeCommand(['GET', 'big']))));
      await until(() => rig.shard.snapshot().clientsClosed.output === 1);
      slow.socket.resume();
      await slow.closed;
      assert.equal(await other.ask('PING'), '+PONG');
    }));

  test('one that sends more than it is read is read on when its turn comes', () =>
    withThreads({}, async (rig) => {
      const [blocked, other] = [await rig.wire(), await rig.wire()];
      const more = Array.from({ length: 3_000 }, () => encodeCommand(['SET', 'k', Buffer.alloc(1_000, 'x')]));
      blocked.sendBytes(Buffer.concat([encodeCommand(['BLPOP', 'q', 0]), ...more, encodeCommand(['ECHO', 'last'])]));
      // It has been read as far as it is: the rest lies in its socket, and nothing shows it.
      await sleep(200);
      assert.equal(await other.ask('LPUSH', 'q', 'v'), ':1');
      const frames = await blocked.frames(3_002);
      assert.equal(frames.at(-1), '$4\r\nlast');
    }));

  test('one that is one too many gets an error, and one that closes its side gets its last replies', () =>
    withThreads({ limits: { clients: 2 } }, async (rig) => {
      const [, second] = [await rig.wire(), await rig.wire()];
      // Of clients on two threads, either may be seen first.
      await until(() => rig.shard.snapshot().clients === 2);
      assert.match(await halfClose(rig.shard.port, Buffer.alloc(0)), /^-ERR max number of clients reached\r\n$/);
      second.destroy();
      await until(() => rig.shard.snapshot().clients === 1);
      const said = [encodeCommand(['INCR', 'n']), encodeCommand(['INCR', 'n'])];
      assert.equal(await halfClose(rig.shard.port, Buffer.concat(said)), ':1\r\n:2\r\n');
      await until(() => rig.shard.snapshot().clients === 1);
    }));

  test('addresses are those of the connection; QUIT, CLIENT KILL and the end of the shard close it', () =>
    withThreads({}, async (rig) => {
      const wires: Wire[] = await Promise.all(Array.from({ length: 4 }, () => rig.wire()));
      const { localPort } = wires[0].socket;
      assert.match(String(await wires[0].ask('CLIENT', 'INFO')), new RegExp(` addr=127\\.0\\.0\\.1:${localPort} `));
      assert.equal(await wires[1].ask('QUIT'), '+OK');
      await wires[1].closed;
      assert.equal(await wires[0].ask('CLIENT', 'KILL', 'ADDR', `127.0.0.1:${wires[2].socket.localPort}`), ':1');
      await wires[2].closed;
      const { port } = rig.shard;
      await rig.shard.stop();
      await Promise.all([wires[0].closed, wires[3].closed]);
      await listens(port);
    }));

  test('clients that connect while the shard stops are closed, and do not hold it up', async (t) => {
    const sockets: Socket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    await withThreads({}, async (rig) => {
      const connecting = Array.from({ length: 40 }, () => {
        const socket = connect({ port: rig.shard.port, host: '127.0.0.1' })
          .resume()
          .on('error', () => undefined);
        sockets.push(socket);
        return socket;
      });
      // They are connected, as the kernel and front threads see it, before this thread hears of any.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      const until20Ms = performance.now() + 20;
      while (performance.now() < until20Ms);
      await rig.shard.stop();
      await until(() => connecting.every((socket) => socket.closed || socket.readableEnded));
    });
  });

  test('also over TLS', async (t) => {
    if (!(await needs(t, 'openssl'))) return;
    const listenTls = makeCertificates();
    await withThreads({ listenTls }, async (rig) => {
      const client = rig.client({ tls: { ca: readFileSync(listenTls.ca) } });
      const value = 'v'.repeat(200_000);
      assert.equal(await client.set('k', value), 'OK');
      assert.equal(await client.get('k'), value);
      await rig.assertEqual();
    });
  });

  test('an address that another process has is refused', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await assert.rejects(
      withThreads({ port }, () => Promise.resolve()),
      /EADDRINUSE|in use/,
    );
    server.close();
  });
}

/** Resolves when the port can be listened at. */
async function listens(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.on('error', reject).listen(port, '127.0.0.1', resolve));
  server.close();
}
