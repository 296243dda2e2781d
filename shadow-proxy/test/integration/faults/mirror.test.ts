/**
 * A mirror that misbehaves never hurts a client, and the proxy tries again.
 *
 * Needs real sockets: nonsense and closed connections from a peer that is scripted.
 */
import assert from 'node:assert/strict';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { startRedis } from '../../../src/local/servers.js';
import { differences } from '../../support/keyspace.js';
import { keeper, Peer, type Script } from '../../support/peer.js';
import { withServers } from '../../support/servers.js';
import { startTestShard, until, type TestShard } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { patienceMs } from '../../support/patience.js';

/** Runs `body` with a scripted target and a Redis that is well. */
async function withMirror(script: Script, body: (target: Peer, shard: TestShard) => Promise<void>): Promise<void> {
  const source = await startRedis();
  const target = await Peer.start(script);
  const shard = await startTestShard({ source, target, limits: { queueBytes: 1_000_000 } });
  try {
    await body(target, shard);
  } finally {
    await shard.stop();
    await Promise.all([source.stop(), target.stop()]);
  }
}

const FAULTS: Readonly<Record<string, Script>> = {
  garbage: () => 'garbage\r\n',
  'a reply in half, and the end': ({ socket }) => {
    socket.end('$100\r\nhalf');
    return null;
  },
  'the end of the connection': ({ socket }) => {
    socket.destroy();
    return null;
  },
  'a stall': () => null,
  'replies that nobody asked for': () => '+OK\r\n+OK\r\n+OK\r\n',
  'an error to everything': () => '-ERR no\r\n',
  'a reply of another type to everything': () => '*2\r\n:1\r\n:2\r\n',
  'one byte of each reply': () => '$',
  'values without end': ({ socket }) => {
    socket.write(`$${1 << 30}\r\n${'x'.repeat(10_000)}`);
    return null;
  },
};

for (const [what, fault] of Object.entries(FAULTS)) {
  test(`${what} from the mirror costs its clients nothing`, async () => {
    // Well at the start: nothing is written to a target that cannot be asked what it holds.
    let broken = false;
    const good = keeper();
    await withMirror(
      (call) => (broken ? fault(call) : good(call)),
      async (target, shard) => {
        broken = true;
        target.disconnect();
        const wires = await Promise.all([Wire.open({ port: shard.port }), Wire.open({ port: shard.port })]);
        let longest = 0;
        for (let round = 0; round < 15; round++) {
          const since = performance.now();
          const replies = await Promise.all(
            wires.map((wire, w) =>
              wire.pipeline(
                Array.from({ length: 20 }, (_, i) => (i % 2 ? ['GET', `k${w}`] : ['SET', `k${w}`, `${round} ${i}`])),
              ),
            ),
          );
          for (const got of replies)
            assert.deepEqual(got.slice(-2), ['+OK', `$${`${round} 18`.length}\r\n${round} 18`]);
          longest = Math.max(longest, performance.now() - since);
          await sleep(5);
        }
        assert.ok(longest < patienceMs(1_000), `a client waited ${longest} ms`);
        assert.ok(shard.shard.ready());
        // The mirror works again: its replies are compared, and the keys whose writes it missed are suspects.
        broken = false;
        target.disconnect();
        target.script = good;
        await until(() => shard.snapshot().mirror.connected && shard.snapshot().mirror.queuedEffects === 0);
        const { compared } = shard.snapshot();
        await wires[0].pipeline([
          ['SET', 'fresh', 1],
          ['GET', 'fresh'],
        ]);
        await until(() => shard.snapshot().compared >= compared + 2);
        for (const wire of wires) wire.destroy();
      },
    );
  });
}

/** A wire that can stop taking bytes, with no more room than the kernel has, and then break. */
async function fragileWire(port: number): Promise<{ url: string; stall(): void; cut(): void; close(): void }> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let stalled = false;
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    if (!stalled) client.pipe(upstream);
    upstream.pipe(client);
    pairs.add([client, upstream]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
    pairs.clear();
    stalled = false;
  };
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stall() {
      stalled = true;
      for (const [client, upstream] of pairs) client.unpipe(upstream).pause();
    },
    cut,
    close() {
      server.close();
      cut();
    },
  };
}

test('a transaction that the mirror got in part is neither finished nor lost', async () => {
  await withServers(async ({ source, target }) => {
    const wire = await fragileWire(target.port);
    const shard = await startTestShard({ source, target: wire.url });
    const client = await Wire.open({ port: shard.port });
    const large = 'x'.repeat(400_000);
    try {
      for (let round = 0; round < 3; round++) {
        wire.stall();
        const replies = await client.pipeline([
          ['MULTI'],
          ...Array.from({ length: 40 }, (_, i) => ['SET', `t:${i}`, `${round} ${large}`]),
          ['INCR', 'n'],
          ['EXEC'],
          ['SET', 'after', round],
        ]);
        assert.match(replies[42], /^\*41\r\n/);
        await until(() => shard.snapshot().mirror.queuedEffects > 10);
        wire.cut();
        await shard.settled(20_000);
      }
      assert.deepEqual(await differences(source, target), []);
      assert.deepEqual(shard.snapshot().mismatches, {});
    } finally {
      client.destroy();
      await shard.stop();
      wire.close();
    }
  });
});
