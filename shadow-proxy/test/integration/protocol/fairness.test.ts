/**
 * One client cannot make the others wait: what it asks for costs what it is worth, and they have their turn in between.
 *
 * Needs real sockets: how much kernels take of large replies before the next client has its turn.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { encodeCommand } from '../../../src/resp/encode.js';
import { LargeReplies, type Taker } from '../../../src/session/large-replies.js';
import { startCpuClock } from '../../support/cpu.js';
import { startRig, type Rig } from '../../support/rig.js';
import type { Wire } from '../../support/wire.js';
import { until } from '../../support/shard.js';

const MIB = 1 << 20;

/** A client that asks for large replies. */
class Asker implements Taker {
  inFlight = 0;
  resumed = 0;
  resume(): void {
    this.resumed++;
  }
}

test('clients with large replies take turns, in the order in which they came', () => {
  const replies = new LargeReplies();
  const [a, b, c] = [new Asker(), new Asker(), new Asker()];
  assert.ok(replies.admits(a));
  a.inFlight = 1;
  assert.ok(replies.admits(a), 'nobody waits');
  assert.ok(!replies.admits(b) && !replies.admits(c));
  assert.ok(!replies.admits(a), 'the others first');
  a.inFlight = 0;
  replies.idle(a);
  assert.deepEqual([b.resumed, c.resumed], [1, 1], 'the first that has nothing to send passes its turn on');
  assert.ok(replies.admits(b) && !replies.admits(c) && !replies.admits(a));
  b.inFlight = 1;
  replies.left(b);
  assert.ok(!replies.admits(c), 'what it has in flight is still to come');
  b.inFlight = 0;
  replies.idle(b);
  assert.equal(c.resumed, 2);
  assert.ok(replies.admits(c));
  replies.left(c);
  assert.equal(a.resumed, 1);
});

test('clients without any reply so far send few reads at once, and one each after a large reply', () => {
  const replies = new LargeReplies();
  const tries = Array.from({ length: 20 }, () => replies.mayTry(0));
  assert.equal(tries.filter(Boolean).length, 7);
  replies.tried(20);
  assert.ok(replies.mayTry(1));
  replies.seen(1);
  assert.ok(!replies.mayTry(2));
  assert.ok(replies.mayTry(3_000));
});

describe('fairness', () => {
  let rig: Rig & { stop(): Promise<void> };
  before(async () => {
    rig = await startRig();
    const wire = await rig.wire();
    await wire.ask('SET', 'big', Buffer.alloc(MIB, 'v'));
    await wire.ask('SET', 'small', 'v');
  });
  after(() => rig.stop());

  /** Sends `bytes`, then a PING of another client: how much the first has received when the second has its reply. */
  async function receivedBeforeOther(bytes: Buffer): Promise<{ received: number; greedy: Wire }> {
    const [greedy, other] = [await rig.wire(), await rig.wire()];
    let received = 0;
    greedy.socket.on('data', (chunk: Buffer) => (received += chunk.length));
    greedy.sendBytes(bytes);
    await until(() => received > 0);
    assert.equal(await other.ask('ECHO', 'x'), '$1\r\nx');
    return { received, greedy };
  }

  test('a client that asks for 120 MiB at once makes another wait for a few of them', async () => {
    const count = 120;
    const { received, greedy } = await receivedBeforeOther(
      Buffer.concat(Array.from({ length: count }, () => encodeCommand(['GET', 'big']))),
    );
    assert.ok(received < 40 * MIB, `${(received / MIB).toFixed(0)} MiB were in front`);
    const replies = await greedy.frames(count, 60_000);
    assert.ok(replies.every((reply) => reply.length === MIB + 10));
  });

  test('ten clients that ask for large replies at once make another wait for little more than one of each', async () => {
    const [clients, count] = [10, 24];
    const other = await rig.wire();
    const greedy = await Promise.all(Array.from({ length: clients }, () => rig.wire()));
    let received = 0;
    for (const wire of greedy) {
      wire.socket.on('data', (chunk: Buffer) => (received += chunk.length));
      wire.sendBytes(Buffer.concat(Array.from({ length: count }, () => encodeCommand(['GET', 'big']))));
    }
    await until(() => received > 0);
    assert.equal(await other.ask('ECHO', 'x'), '$1\r\nx');
    assert.ok(received < 40 * MIB, `${(received / MIB).toFixed(0)} MiB were in front`);
    for (const wire of greedy) {
      const replies = await wire.frames(count, 60_000);
      assert.ok(replies.every((reply) => reply.length === MIB + 10));
    }
  });

  test('a client with large replies that has to wait goes on when those before it hang up', async () => {
    const greedy = await Promise.all(Array.from({ length: 8 }, () => rig.wire()));
    const asked = Buffer.concat(Array.from({ length: 8 }, () => encodeCommand(['GET', 'big'])));
    for (const wire of greedy) wire.sendBytes(asked);
    await Promise.all(greedy.map((wire) => wire.frames(2, 60_000)));
    for (const wire of greedy.slice(1)) wire.socket.destroy();
    assert.equal((await greedy[0].frames(6, 60_000)).length, 6);
  });

  test('a client that sends 50,000 commands at once makes another wait for a few of them', async () => {
    const count = 50_000;
    const { received, greedy } = await receivedBeforeOther(
      Buffer.concat(Array.from({ length: count }, (_, i) => encodeCommand(['ECHO', `${i}`.padStart(5, '0')]))),
    );
    assert.ok(received / 11 < 10_000, `${received / 11} replies were in front`);
    const replies = await greedy.frames(count, 60_000);
    assert.ok(replies.every((reply, i) => reply === `$5\r\n${`${i}`.padStart(5, '0')}`));
  });

  test('replies of the proxy that wait behind one of the server cost what they are long', async () => {
    const wire = await rig.wire();
    const refused = 30_000;
    const usedMs = startCpuClock();
    wire.sendBytes(Buffer.from('ping\r\n'.repeat(10_922) + 'monitor\r\n'.repeat(refused)));
    const replies = await wire.frames(10_922 + refused, 60_000);
    const used = usedMs();
    assert.deepEqual([...new Set(replies.slice(0, 10_922))], ['+PONG']);
    assert.equal(new Set(replies.slice(10_922)).size, 1);
    assert.match(replies.at(-1)!, /^-ERR shadow-proxy: MONITOR/);
    // About 0.3 s; where each is put behind the others by copying them, more than 10 s.
    assert.ok(used < 3_000, `${used} ms of CPU`);
  });

  test('commands without a reply leave the others their turn, too', async () => {
    const [greedy, other] = [await rig.wire(), await rig.wire()];
    greedy.send('CLIENT', 'REPLY', 'OFF');
    greedy.sendBytes(Buffer.from('monitor\r\n'.repeat(300_000)));
    greedy.send('CLIENT', 'REPLY', 'ON');
    let rounds = 0;
    while (greedy.unread.length === 0) {
      await other.ask('PING');
      rounds++;
    }
    assert.ok(rounds >= 50, `${rounds} rounds beside 300,000 commands`);
    assert.equal(await greedy.frame(), '+OK');
  });
});
