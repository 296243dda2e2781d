/** What the rooms see is the world in use: its clock, timers, random numbers, connections, listeners and files. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, test } from 'node:test';
import { newFrontListener } from '../../../src/front/front-listener.js';
import { isoTime, listenedMs, monotonicMs, unixMs, unixMsAtZero } from '../../../src/io/clock.js';
import { disk, replaceFile } from '../../../src/io/files.js';
import { Intake } from '../../../src/io/intake.js';
import { randomBytes, randomShare, randomUuid } from '../../../src/io/random.js';
import type { TcpSocket } from '../../../src/io/sockets.js';
import { after, afterReading, clearTimer, every, nextTurn, sleep, timeoutSignal } from '../../../src/io/timers.js';
import { Turn } from '../../../src/io/turn.js';
import { useWorld } from '../../../src/io/world.js';
import { StateStore } from '../../../src/storage/state.js';
import { Connection } from '../../../src/upstream/connection.js';
import { openSocket } from '../../../src/upstream/open-socket.js';
import { watched } from '../../support/fake-clock.js';
import { BEGINS_AT, OtherWorld } from '../../support/other-world.js';

let world: OtherWorld;
beforeEach(() => useWorld((world = new OtherWorld())));
afterEach(() => useWorld(null));

test('the clock is that of the world in use', async () => {
  assert.deepEqual([monotonicMs(), unixMs(), listenedMs()], [1, BEGINS_AT + 1, 1]);
  await world.advance(86_400_000);
  assert.equal(monotonicMs(), 86_400_001);
  assert.equal(isoTime(), '2040-01-02T00:00:00.001Z');
  assert.equal(new Turn().now(), 86_400_001);
});

test('without a world of its own, the process has Node’s', () => {
  useWorld(null);
  const [unixBefore, before] = [Date.now(), performance.now()];
  const [unix, now] = [unixMs(), monotonicMs()];
  assert.ok(unixBefore <= unix && unix <= Date.now());
  assert.ok(before <= now && now <= performance.now());
  assert.equal(unixMsAtZero(), performance.timeOrigin);
});

test('timers run when the clock of the world has come so far', async () => {
  const ran: string[] = [];
  const note = (what: string) => () => void ran.push(what);
  after(3_600_000, note('after an hour'));
  const ticks = every(1_500_000, note('each 25 minutes'));
  clearTimer(after(1, note('cleared')));
  nextTurn(note('next turn'));
  void sleep(60_000, 'a minute').then((value) => ran.push(value));
  void sleep(7_200_000).then(note('two hours'));
  await world.advance(3_600_000);
  assert.deepEqual(ran, ['next turn', 'a minute', 'each 25 minutes', 'each 25 minutes', 'after an hour']);
  clearTimer(ticks);
  clearTimer(undefined);
  await world.advance(86_400_000);
  assert.deepEqual(ran.slice(5), ['two hours']);
});

test('a sleep ends with its signal, and a signal after its time', async () => {
  const rest = new AbortController();
  const sleeping = watched(sleep(60_000, undefined, { signal: rest.signal }));
  const reason = new Error('enough');
  rest.abort(reason);
  await world.advance(0);
  assert.deepEqual([sleeping.state, sleeping.reason], ['rejected', reason]);
  await assert.rejects(sleep(1, undefined, { signal: rest.signal }), reason);
  const signal = timeoutSignal(2_000);
  await world.advance(1_999);
  assert.equal(signal.aborted, false);
  await world.advance(1);
  assert.equal((signal.reason as Error).name, 'TimeoutError');
});

test('what has arrived is read in the turn of the world', async () => {
  const read = watched(afterReading());
  assert.equal(read.state, 'pending');
  await world.advance(0);
  assert.equal(read.state, 'fulfilled');
});

test('random numbers are those of the world', () => {
  assert.deepEqual([randomShare(), randomShare()], [0.1, 0.2]);
  assert.deepEqual(randomBytes(3), Buffer.from([3, 3, 3]));
  assert.equal(randomUuid(), 'uuid-4');
});

test('a connection to a server goes through the world', async () => {
  world.listeners.set(6379, (socket: TcpSocket) =>
    socket.on('data', (bytes: Buffer) => socket.write(`$${bytes.length}\r\n${bytes.toString()}\r\n`)),
  );
  const opened = watched(openSocket({ host: 'redis-1', port: 6379 }, null, 1_000));
  await world.advance(0);
  const connection = new Connection(opened.value!, new Turn());
  const answer = watched(connection.ask('PING'));
  await world.advance(0);
  assert.equal(answer.value?.data?.toString(), '*1\r\n$4\r\nPING\r\n');
  connection.destroy();
});

test('a connection that is not made in time fails by the clock of the world', async () => {
  world.nextTurn = () => undefined;
  const opened = watched(openSocket({ host: 'redis-1', port: 6379 }, null, 5_000));
  await world.advance(4_999);
  assert.equal(opened.state, 'pending');
  await world.advance(1);
  assert.match((opened.reason as Error).message, /no connection to redis-1:6379 within 5000 ms/);
});

test('clients come in through a listener of the world', async () => {
  const heard: string[] = [];
  const options = { tls: null, proxyProtocol: null, maxConnections: 10, handshakeMs: 1_000 };
  const door = newFrontListener(0, null, new Intake(), options, {
    connected: (connect) => {
      const client = connect((buffer, start, end) => {
        heard.push(buffer.toString('latin1', start, end));
        client.write(Buffer.from('+PONG\r\n'));
      });
    },
    dropped: () => undefined,
    late: () => undefined,
    refused: () => undefined,
  });
  const listening = watched(door.listen({ host: '127.0.0.1', port: 7000 }));
  await world.advance(0);
  assert.equal(listening.state, 'fulfilled');
  const client = world.connectTcp({ port: 7000 });
  client.on('data', (bytes: Buffer) => heard.push(bytes.toString()));
  client.write('PING\r\n');
  await world.advance(0);
  assert.deepEqual(heard, ['PING\r\n', '+PONG\r\n']);
});

test('files are those of the world', async () => {
  replaceFile('/state/one', 'text');
  assert.equal(disk.readFile('/state/one').toString(), 'text');
  const store = await StateStore.open('/state', 'sessions');
  await store.update({ cleanShutdown: false }, { event: 'started' });
  assert.deepEqual(
    [...world.files.keys()].sort(),
    ['history.jsonl', 'reserve', 'state.json']
      .map((name) => `/state/sessions/${name}`)
      .concat('/state/one')
      .sort(),
  );
  const [event] = await store.history(1);
  assert.equal(event.time, '2040-01-01T00:00:00.001Z');
  assert.equal((await StateStore.open('/state', 'sessions')).previous?.revision, 1);
  assert.ok(!existsSync('/state'));
});
