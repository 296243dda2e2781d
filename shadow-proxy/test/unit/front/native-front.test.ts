/** The native front over loopback, on this thread and in one of its own: every byte arrives once, in order. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { loadNative } from '../../../src/front/native.js';
import { NativeFront } from '../../../src/front/native-front.js';
import type { ClientSocket } from '../../../src/io/client-socket.js';
import { Intake } from '../../../src/io/intake.js';
import { missing } from '../../support/needs.js';
import { until } from '../../support/shard.js';

const { native } = loadNative();
const skip = await missing('native');
const KIB = 1 << 10;
const MIB = 1 << 20;
const bytes = Buffer.from(Array.from({ length: MIB }, (_, i) => (i * 31 + (i >> 8) * 7) & 255));

interface Server {
  readonly front: NativeFront;
  readonly port: number;
  readonly sockets: ClientSocket[];
  readonly counts: { dropped: number; ended: number; closed: number };
  client(): Promise<Socket>;
}

/** @param served gets what a client has sent */
async function serve(
  threaded: boolean,
  body: (server: Server) => Promise<void>,
  served: (socket: ClientSocket, chunk: Buffer, start: number, end: number) => void = echo,
  maxConnections = 100,
): Promise<void> {
  const counts = { dropped: 0, ended: 0, closed: 0 };
  const sockets: ClientSocket[] = [];
  const front = new NativeFront(
    native!,
    threaded,
    new Intake(),
    { maxConnections },
    {
      connected: (connected) => {
        const socket = connected((chunk, start, end) => served(socket, chunk, start, end));
        socket.on('end', () => void counts.ended++).on('close', () => void counts.closed++);
        sockets.push(socket);
      },
      dropped: () => counts.dropped++,
    },
  );
  const first = createServer();
  await new Promise<void>((resolve) => first.listen(0, '127.0.0.1', resolve));
  const { port } = first.address() as AddressInfo;
  await front.listen({ host: '127.0.0.1', port, first });
  const clients: Socket[] = [];
  const client = async (): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
    clients.push(socket.on('error', () => undefined));
    await once(socket, 'connect');
    return socket;
  };
  try {
    await body({ front, port, sockets, counts, client });
  } finally {
    for (const each of [...clients, ...sockets]) each.destroy();
    await front.close();
    assert.equal(counts.closed, sockets.length, 'each socket was closed once');
  }
}

const echo = (socket: ClientSocket, chunk: Buffer, start: number, end: number): void =>
  socket.writeRange!(chunk, start, end);

async function received(socket: Socket, length: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let got = 0;
  while (got < length) {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) await once(socket, 'readable');
    else {
      chunks.push(chunk);
      got += chunk.length;
    }
  }
  return Buffer.concat(chunks);
}

for (const threaded of [false, true])
  describe(
    `a native front ${threaded ? 'in a thread of its own' : 'on the sequencing thread'}`,
    { skip, timeout: 30_000 },
    () => {
      test('bytes of every size return in order, to the client that sent them', () =>
        serve(threaded, async ({ client }) => {
          const clients = await Promise.all(Array.from({ length: 20 }, client));
          await Promise.all(
            clients.map(async (socket, i) => {
              for (const size of [1, 95, 97, 4 * KIB, 64 * KIB, 64 * KIB + 1, 300_000, 7]) {
                const sent = bytes.subarray(i, i + size);
                socket.write(sent);
                assert.ok((await received(socket, size)).equals(sent), `${size} bytes`);
              }
            }),
          );
        }));

      test('what a client does not read is kept for it, known, and sent when it reads', () =>
        serve(
          threaded,
          async ({ client, sockets }) => {
            const [slow, other] = [await client(), await client()];
            slow.write('x');
            await until(() => sockets.length === 2 && sockets[0].writableLength > 10 * MIB);
            const drained = new Promise<void>((resolve) => sockets[0].once('drain', resolve));
            // It holds up nobody.
            other.write('y');
            await received(other, 40 * MIB);
            const all = await received(slow, 40 * MIB);
            for (let i = 0; i < 40; i++) assert.ok(all.subarray(i * MIB, (i + 1) * MIB).equals(bytes), `MiB ${i}`);
            await drained;
            assert.equal(sockets[0].writableLength, 0);
          },
          (socket) => {
            for (let i = 0; i < 40; i++) socket.writeRange!(bytes, 0, MIB);
          },
        ));

      test('a client that is paused is read no further, and loses nothing', () => {
        const heard: number[] = [];
        return serve(
          threaded,
          async ({ client, sockets }) => {
            const socket = await client();
            socket.write('a');
            await until(() => heard.length === 1);
            sockets[0].pause();
            socket.write('b');
            // The kernel has the byte, and nothing shows it.
            await sleep(20);
            for (let i = 0; i < 16; i++) socket.write(bytes);
            // No more may be heard: it would have been by now.
            await sleep(100);
            // What had come before the front knew of it.
            const before = heard.length;
            assert.ok(before < 4 * MIB, `${before}`);
            sockets[0].resume();
            await until(() => heard.length === 2 + 16 * MIB);
            assert.deepEqual(heard.slice(0, 2), [97, 98]);
            assert.ok(Buffer.from(heard.slice(2, 2 + MIB)).equals(bytes));
          },
          (_socket, chunk, start, end) => {
            for (let i = start; i < end; i++) heard.push(chunk[i]);
          },
        );
      });

      test('a client that closes its side gets its last bytes; one that resets is closed', () =>
        serve(threaded, async ({ client, sockets, counts }) => {
          const [half, broken] = [await client(), await client()];
          half.end(bytes.subarray(0, 200_000));
          assert.ok((await received(half, 200_000)).equals(bytes.subarray(0, 200_000)));
          await until(() => counts.ended === 1);
          assert.equal(counts.closed, 0);
          const own = sockets.find((each) => each.remotePort === half.localPort)!;
          own.end();
          await once(half, 'end');
          await until(() => counts.closed === 1);
          broken.resetAndDestroy();
          await until(() => counts.closed === 2);
        }));

      test('what was written before the end is sent, however it ends', () =>
        serve(
          threaded,
          async ({ client }) => {
            for (const how of ['end', 'destroySoon']) {
              const socket = await client();
              socket.write(how);
              assert.ok((await received(socket, MIB)).equals(bytes), how);
              await once(socket, 'end');
              socket.end();
            }
          },
          (socket, chunk, start, end) => {
            socket.writeRange!(bytes, 0, MIB);
            if (chunk.toString('latin1', start, end) === 'end') socket.end();
            else socket.destroySoon();
          },
        ));

      test('one that is one too many is closed and counted, until there may be more', () =>
        serve(
          threaded,
          async ({ client, front, sockets, counts }) => {
            await client();
            const second = await client();
            await until(() => sockets.length === 2);
            await once((await client()).resume(), 'end');
            await until(() => counts.dropped === 1);
            front.renew({ maxConnections: 3 });
            await until(async () => {
              const third = await client();
              third.write('x');
              const echoed = received(third, 1).then((said) => said.toString() === 'x');
              const closed = once(third, 'end').then(() => false);
              return Promise.race([echoed, closed]).catch(() => false);
            });
            assert.equal((await ask(second, 'y')).toString(), 'y');
          },
          echo,
          2,
        ));

      test('a place that is taken again is another client: orders for the one before do not reach it', () =>
        serve(threaded, async ({ client, sockets, counts }) => {
          for (let i = 0; i < 50; i++) {
            const socket = await client();
            await ask(socket, 'x');
            socket.resetAndDestroy();
            await until(() => counts.closed === i + 1);
          }
          const last = await client();
          await ask(last, 'x');
          for (const socket of sockets.slice(0, -1)) {
            assert.equal(socket.writable, false);
            socket.write(Buffer.from('for another'));
            socket.destroy();
          }
          assert.equal((await ask(last, 'y')).toString(), 'y');
        }));

      test('clients are numbered one after the other, without the places of those that are still there', () =>
        serve(threaded, async ({ client, sockets, counts }) => {
          const numbers = (): number[] => sockets.map((socket) => (socket as unknown as { readonly id: number }).id);
          await ask(await client(), 'x');
          for (let i = 0; i < 130; i++) {
            const socket = await client();
            await ask(socket, 'x');
            socket.resetAndDestroy();
            await until(() => counts.closed === i + 1);
          }
          // Of 64 places, the first one's client has number 0.
          const expected = Array.from({ length: 200 }, (_, number) => number).filter((n) => n === 0 || n % 64 !== 0);
          assert.deepEqual(numbers(), expected.slice(0, 131));
        }));

      test('addresses are those of the connection', () =>
        serve(threaded, async ({ client, port, sockets }) => {
          const socket = await client();
          await until(() => sockets.length === 1);
          const { remoteAddress, remotePort, localAddress, localPort } = sockets[0];
          assert.deepEqual([remoteAddress, localAddress, localPort], ['127.0.0.1', '127.0.0.1', port]);
          assert.equal(remotePort, socket.localPort);
        }));
    },
  );

test('a sequencing thread that is busy holds the front up, and misses nothing', { skip }, () =>
  serve(true, async ({ port }) => {
    const size = 24 * MIB;
    const worker = new Worker(
      `const { connect } = require('node:net');
       const { workerData: { port, size }, parentPort } = require('node:worker_threads');
       const hash = (h, bytes) => { for (const b of bytes) h = (Math.imul(h, 31) + b) | 0; return h; };
       const sent = Buffer.from(Array.from({ length: size / 64 }, (_, i) => (i * 7 + (i >> 9)) & 255));
       let [expected, got, heard] = [0, 0, 0];
       const socket = connect(port, '127.0.0.1', () => {
         for (let i = 0; i < 64; i++) { socket.write(sent); expected = hash(expected, sent); }
       });
       socket.on('data', (chunk) => {
         got = hash(got, chunk);
         heard += chunk.length;
         if (heard === size) { parentPort.postMessage(got === expected); socket.destroy(); }
       });`,
      { eval: true, workerData: { port, size } },
    );
    let over = false;
    const same = once(worker, 'message').then(([equal]) => {
      over = true;
      return equal as boolean;
    });
    // More than a ring's worth comes meanwhile.
    const cell = new Int32Array(new SharedArrayBuffer(4));
    while (!over) {
      Atomics.wait(cell, 0, 0, 30);
      await sleep(5);
    }
    assert.equal(await same, true);
    await worker.terminate();
  }),
);

test('an address that another one has is refused, by its code', { skip }, async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const front = new NativeFront(
    native!,
    false,
    new Intake(),
    { maxConnections: 1 },
    {
      connected: () => undefined,
      dropped: () => undefined,
    },
  );
  const { port } = server.address() as AddressInfo;
  await assert.rejects(front.listen({ host: '127.0.0.1', port, first: null }), { code: 'EADDRINUSE' });
  await front.close();
  server.close();
});

async function ask(socket: Socket, text: string): Promise<Buffer> {
  socket.write(text);
  return received(socket, text.length);
}
