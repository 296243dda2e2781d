/** Which changes of a simulated server are unanswered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WORLD } from '../../world/events.js';
import type { End } from '../../world/network.js';
import { ServerHost } from '../../world/server-host.js';
import { SimulatedWorld } from '../../world/world.js';

const ADDRESS = { host: '10.0.0.2', port: 6379 };

async function connected(): Promise<{ world: SimulatedWorld; server: ServerHost; connect: () => Promise<End> }> {
  const world = new SimulatedWorld(1, { delayMs: [1, 1], lateShare: 0, lateMs: 0, splitShare: 0 });
  const server = new ServerHost(world, 'redis', ADDRESS);
  const connect = async (): Promise<End> => {
    let isConnected = false;
    const end = world.network.connect(WORLD, '10.0.0.1', ADDRESS, () => (isConnected = true));
    assert.ok(await world.events.run(() => isConnected, 100));
    return end;
  };
  return { world, server, connect };
}

const send = (end: End, command: string): void => void end.send(Buffer.from(`${command}\r\n`));

test('A change is unanswered from the command until its whole reply has arrived', async () => {
  const { world, server, connect } = await connected();
  const end = await connect();
  send(end, 'SET a 1');
  assert.equal(server.unanswered.has('0 a'), false);
  await world.events.run(() => server.entry('0 a') !== undefined, 100);
  assert.equal(server.unanswered.has('0 a'), true);
  await world.events.run(() => end.bytesArrived > 0, 100);
  assert.equal(server.unanswered.has('0 a'), false);
});

test('A change is over when the end that waits for its reply is closed', async () => {
  const { world, server, connect } = await connected();
  const end = await connect();
  send(end, 'SET a 1');
  await world.events.run(() => server.entry('0 a') !== undefined, 100);
  end.close();
  assert.equal(server.unanswered.has('0 a'), false);
});

test('What a woken client changes is unanswered until its own reply has arrived', async () => {
  const { world, server, connect } = await connected();
  const [waiter, pusher] = [await connect(), await connect()];
  send(waiter, 'BLMOVE from to LEFT RIGHT 0');
  await world.events.run(() => false, 50);
  pusher.silence(1_000);
  send(pusher, 'LPUSH from element');
  await world.events.run(() => waiter.bytesArrived > 0, 100);
  assert.equal(server.unanswered.has('0 to'), false);
  assert.equal(server.unanswered.has('0 from'), true);
  await world.events.run(() => pusher.bytesArrived > 0, 2_000);
  assert.equal(server.unanswered.has('0 from'), false);
});

test('What an XADD with `~` trims is unanswered until the reply behind its own has arrived', async () => {
  const { world, server, connect } = await connected();
  const end = await connect();
  send(end, 'XADD s MAXLEN ~ 1 * f v');
  await world.events.run(() => end.bytesArrived > 0, 100);
  assert.equal(server.unanswered.has('0 s'), true);
  const { bytesArrived } = end;
  send(end, 'XLEN s');
  await world.events.run(() => end.bytesArrived > bytesArrived, 100);
  assert.equal(server.unanswered.has('0 s'), false);
});
