/**
 * An authority that misbehaves: its clients see what the loss of Redis would show them, and nobody gets a wrong reply.
 *
 * Needs real sockets: nonsense, single bytes, stalls and closed connections from a peer that is scripted.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { keeper, Peer, type Call, type Script } from '../../support/peer.js';
import { withRig } from '../../support/rig.js';
import { startTestShard, until, type TestShard } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

/** Runs `body` with a scripted source, a target that is well, and a shard between them in `dualwrite`. */
async function withPeer(
  script: Script,
  body: (source: Peer, shard: TestShard, target: Peer) => Promise<void>,
): Promise<void> {
  const [source, target] = await Promise.all([Peer.start(script), Peer.start(keeper(), 'b'.repeat(40))]);
  const shard = await startTestShard({ source, target });
  try {
    await body(source, shard, target);
  } finally {
    await shard.stop();
    await Promise.all([source.stop(), target.stop()]);
  }
}

/** Keeps strings, but treats GET of the key `bad` as the fault says. */
const except = (fault: Script): Script => {
  const good = keeper();
  return (call) => (call.args[0].toUpperCase() === 'GET' && call.args[1] === 'bad' ? fault(call) : good(call));
};

const FAULTS: Readonly<Record<string, Script>> = {
  'garbage in place of a reply': () => 'HTTP/1.1 400 Bad Request\r\n\r\n',
  'garbage inside a reply': () => '*2\r\n$1\r\na\r\n?\r\n',
  'a length that is none': () => '$12x\r\n',
  'a negative length that is not the null': () => '$-7\r\n',
  zeros: () => Buffer.alloc(100),
  'a reply that ends in the middle': ({ socket }) => {
    socket.end('$100\r\nonly some of i');
    return null;
  },
  'an array that ends in the middle': ({ socket }) => {
    socket.end('*3\r\n:1\r\n:2\r\n');
    return null;
  },
  'the end of the connection': ({ socket }) => {
    socket.end();
    return null;
  },
  'a reset of the connection': ({ socket }) => {
    socket.resetAndDestroy();
    return null;
  },
};

for (const [what, fault] of Object.entries(FAULTS)) {
  test(`${what} from the authority ends the client, and the next one is served`, async () => {
    await withPeer(except(fault), async (_source, shard) => {
      const [hit, idle] = [await Wire.open({ port: shard.port }), await Wire.open({ port: shard.port })];
      assert.equal(await idle.ask('SET', 'k', 'v'), '+OK');
      hit.sendBytes('GET k\r\nGET bad\r\nGET k\r\n');
      await hit.closed;
      assert.deepEqual(hit.unread, ['$1\r\nv']);
      // Who had nothing under way need not even know.
      assert.equal(await idle.ask('GET', 'k'), '$1\r\nv');
      const next = await Wire.open({ port: shard.port });
      assert.equal(await next.ask('GET', 'k'), '$1\r\nv');
      for (const wire of [idle, next]) wire.destroy();
      await until(() => shard.snapshot().clients === 0);
    });
  });
}

test('a reply that nobody asked for ends the lane, and is given to nobody', async () => {
  await withPeer(
    except(({ socket }) => {
      socket.write('$3\r\nbad\r\n$5\r\nextra\r\n');
      return null;
    }),
    async (_source, shard) => {
      const wire = await Wire.open({ port: shard.port });
      await wire.ask('SET', 'k', 'v');
      // Nothing else is under way: an extra reply is known for one.
      await shard.settled();
      wire.send('GET', 'bad');
      await until(() => wire.unread.length > 0 || wire.ended);
      const again = await Wire.open({ port: shard.port });
      for (let i = 0; i < 20; i++) assert.equal(await again.ask('ECHO', i), `$${String(i).length}\r\n${i}`);
      assert.ok(wire.unread.length <= 1 && !wire.unread.includes('$5\r\nextra'), wire.unread.join());
      wire.destroy();
      again.destroy();
    },
  );
});

test('a reply that comes unasked while nothing is under way ends the lane too', async () => {
  const good = keeper();
  let lane: Call['socket'] | undefined;
  const script: Script = (call) => {
    if (call.args[0] === 'SET') lane = call.socket;
    return good(call);
  };
  await withPeer(script, async (source, shard) => {
    const wire = await Wire.open({ port: shard.port });
    await wire.ask('SET', 'k', 'v');
    await until(() => shard.snapshot().mirror.queuedEffects === 0);
    for (const socket of source.sockets) socket.write('+SURPRISE\r\n');
    await until(() => lane!.destroyed);
    const next = wire.ended ? await Wire.open({ port: shard.port }) : wire;
    for (let i = 0; i < 20; i++) assert.equal(await next.ask('ECHO', i), `$${String(i).length}\r\n${i}`);
    next.destroy();
  });
});

test('one byte at a time is only slow', async () => {
  const good = keeper();
  const queue: Promise<void>[] = [Promise.resolve()];
  const drip: Script = (call) => {
    const reply = Buffer.from(good(call)!);
    queue.push(
      queue.at(-1)!.then(async () => {
        for (const byte of reply) {
          call.socket.write(Buffer.from([byte]));
          await new Promise(setImmediate);
        }
      }),
    );
    return null;
  };
  await withPeer(drip, async (_source, shard) => {
    const wires = await Promise.all(Array.from({ length: 5 }, () => Wire.open({ port: shard.port })));
    await Promise.all(
      wires.map(async (wire, w) => {
        const replies = await wire.pipeline(
          Array.from({ length: 40 }, (_, i) => (i % 2 ? ['GET', `k${w}`] : ['SET', `k${w}`, `value ${w} ${i}`])),
        );
        for (let i = 0; i < 40; i++)
          assert.equal(replies[i], i % 2 ? `$${`value ${w} ${i - 1}`.length}\r\nvalue ${w} ${i - 1}` : '+OK');
      }),
    );
    for (const wire of wires) wire.destroy();
  });
});

test('a stall holds those up who wait for it, and its end lets them go, each with its own reply', async () => {
  const good = keeper();
  const held: (() => void)[] = [];
  let stalled = false;
  const script: Script = (call) => {
    const reply = good(call);
    if (!stalled) return reply;
    held.push(() => call.socket.write(reply!));
    return null;
  };
  await withPeer(script, async (source, shard) => {
    const wires = await Promise.all(Array.from({ length: 10 }, () => Wire.open({ port: shard.port })));
    // Clients that have had a reply: of others few reads are in flight at a time.
    for (const wire of wires) await wire.ask('ECHO', 'x');
    stalled = true;
    for (const [i, wire] of wires.entries()) for (let n = 0; n < 10; n++) wire.send('ECHO', `${i}:${n}`);
    await until(() => held.length === 100);
    assert.ok(wires.every(({ unread }) => unread.length === 0));
    // One of the waiting clients disconnects; no other client gets its replies.
    wires[3].destroy();
    stalled = false;
    for (const answer of held) answer();
    for (const [i, wire] of wires.entries())
      if (i !== 3)
        assert.deepEqual(
          await wire.frames(10),
          Array.from({ length: 10 }, (_, n) => `$3\r\n${i}:${n}`),
        );
    // And a stall that ends with the connection ends the clients.
    stalled = true;
    wires[0].send('ECHO', 'lost');
    await until(() => held.length === 101);
    source.disconnect();
    await wires[0].closed;
    stalled = false;
    const next = await Wire.open({ port: shard.port });
    assert.equal(await next.ask('ECHO', 'x'), '$1\r\nx');
    for (const wire of [...wires, next]) wire.destroy();
  });
});

test('an authority that says nothing to new connections holds up who needs one, and nobody else', async () => {
  await withPeer(keeper(), async (source, shard) => {
    const [old, stranger] = [await Wire.open({ port: shard.port }), await Wire.open({ port: shard.port })];
    await old.ask('SET', 'k', 'v');
    const lanes = [...source.sockets];
    source.silent = true;
    // Another protocol is another lane.
    stranger.send('HELLO', 3);
    stranger.send('GET', 'k');
    await until(() => source.sockets.size > lanes.length);
    await until(() => stranger.unread.length > 0);
    assert.equal(await old.ask('GET', 'k'), '$1\r\nv');
    assert.equal(stranger.unread.length, 1);
    for (const socket of source.sockets) if (!lanes.includes(socket)) socket.destroy();
    await stranger.closed;
    source.silent = false;
    assert.equal(await old.ask('GET', 'k'), '$1\r\nv');
    const next = await Wire.open({ port: shard.port });
    assert.match(await next.ask('HELLO', 3), /^%7/);
    assert.equal(await next.ask('GET', 'k'), '$1\r\nv');
    for (const wire of [old, next]) wire.destroy();
  });
});

test('while the authority is down, the proxy closes the connection of every client that sends a command', async () => {
  await withPeer(keeper(), async (source, shard) => {
    const wire = await Wire.open({ port: shard.port });
    await wire.ask('SET', 'k', 'v');
    await source.stop();
    await wire.ask('GET', 'k').then(
      (reply) => assert.fail(reply),
      () => undefined,
    );
    for (let i = 0; i < 5; i++) {
      const refused = await Wire.open({ port: shard.port });
      refused.send('GET', 'k');
      await refused.closed;
      assert.deepEqual(refused.unread, []);
    }
    assert.equal(shard.shard.ready(), false);
  });
});

test('clients that reconnect by themselves go on when the authority does', async () => {
  let broken = false;
  const good = keeper();
  const script: Script = (call) => {
    if (!broken) return good(call);
    call.socket.destroy();
    return null;
  };
  await withPeer(script, async (_source, shard) => {
    const client = new Redis({
      host: '127.0.0.1',
      port: shard.port,
      enableReadyCheck: false,
      retryStrategy: () => 10,
      maxRetriesPerRequest: null,
    });
    client.on('error', () => undefined);
    for (let i = 0; i < 20; i++) {
      broken = i % 4 === 3;
      const asked = client.echo(`round ${i}`);
      if (broken) await sleep(20);
      broken = false;
      assert.equal(await asked, `round ${i}`);
    }
    client.disconnect();
  });
});

test('an authority that is back is ready, though no client asks for it', async () => {
  await withRig({ default: { stage: 'off' } }, async ({ source, shard }) => {
    assert.equal(shard.shard.ready(), true);
    await source.kill('SIGKILL');
    await until(() => !shard.shard.ready());
    await source.restart();
    await until(() => shard.shard.ready(), 5_000);
  });
});
