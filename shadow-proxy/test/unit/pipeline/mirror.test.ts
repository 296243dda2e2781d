/** The mirror's lane: what it takes, when it sends, and how long it waits to connect again; without a server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandTable } from '../../../src/command/table.js';
import type { LatencyRecorder } from '../../../src/io/latency.js';
import { Turn } from '../../../src/io/turn.js';
import { MirrorLane } from '../../../src/pipeline/mirror.js';
import { Operation, WRITE } from '../../../src/pipeline/operation.js';
import { argumentsOf } from '../../../src/resp/decode.js';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { FrameReader } from '../../../src/resp/reader.js';
import type { Workload } from '../../../src/route/router.js';
import type { Connection, ConnectionOwner } from '../../../src/upstream/connection.js';
import type { Server } from '../../../src/upstream/server.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();
const TABLE = new CommandTable();
const REPLY = Buffer.from('+OK\r\n');

function effect(...args: readonly Argument[]): Operation {
  const frame = encodeCommand(args);
  const spec = TABLE.byName(String(args[0]).toLowerCase());
  const operation = new Operation(frame, 0, frame.length, null, spec, {} as Workload, 0, 2, WRITE);
  operation.reply = REPLY;
  operation.replyEnd = REPLY.length;
  operation.answeredAt = clock.now;
  return operation;
}

const nothing = (): void => undefined;

/** A mirror whose server takes connections as long as it is up. */
function mirrored(queueBytes = 1 << 20) {
  const state = { up: true, attempts: [] as number[], sent: [] as string[], dropped: 0, unconfirmed: 0 };
  let owner: ConnectionOwner | null = null;
  const connection = {
    ...{ clientId: 7, ended: false, congested: false, destroy: nothing },
    attach: (by: ConnectionOwner) => (owner = by),
    outbox: {
      bytes: 0,
      add: (frame: Buffer, start: number) =>
        void state.sent.push(
          argumentsOf(frame, start)
            .map((arg) => arg.toString('latin1'))
            .join(' '),
        ),
    },
  };
  const server = {
    ...{ runId: 'r', endpoint: { label: 'the mirror', credentials: undefined }, connections: { kill: nothing } },
    open: () => {
      state.attempts.push(clock.now);
      return state.up ? Promise.resolve(connection as unknown as Connection) : Promise.reject(new Error('refused'));
    },
  } as unknown as Server;
  const lane = new MirrorLane(
    server,
    {} as Workload,
    { queueBytes, batchMs: 2 },
    { sent: nothing, answered: nothing, reset: nothing } as unknown as LatencyRecorder,
    {
      ...{ matched: nothing, differs: nothing, accepted: nothing, connected: nothing },
      unconfirmed: () => state.unconfirmed++,
      dropped: () => state.dropped++,
    },
    new Turn(),
  );
  return {
    lane,
    state,
    confirm(count: number) {
      const reader = new FrameReader();
      reader.feed(Buffer.concat(Array<Buffer>(count).fill(REPLY)));
      owner!.readable(reader);
    },
    cut: () => owner!.lost(new Error('cut')),
  };
}

const SIZE = effect('SET', 'k', 'v').size;

test('effects wait up to the bound, to the byte; what is more is dropped, and the next one has room again', async () => {
  for (const [queueBytes, fit] of [
    [3 * SIZE - 1, 2],
    [3 * SIZE, 3],
    [3 * SIZE + 1, 3],
  ] as const) {
    const { lane, state, confirm } = mirrored(queueBytes);
    lane.start();
    await clock.settle();
    for (let i = 0; i < 4; i++) lane.append(effect('SET', 'k', 'v'));
    assert.deepEqual([lane.queued, state.dropped, lane.queuedBytes], [fit, 4 - fit, fit * SIZE], `${queueBytes} bytes`);
    lane.flush();
    confirm(1);
    lane.append(effect('SET', 'k', 'v'));
    assert.deepEqual([lane.queued, state.dropped], [fit, 4 - fit]);
    lane.close();
  }
});

test('one effect has room however large it is, and what clears a database always', () => {
  const { lane, state } = mirrored(1);
  lane.append(effect('SET', 'k', 'v'));
  assert.deepEqual([lane.queued, state.dropped], [1, 0]);
  lane.append(effect('FLUSHALL'));
  assert.deepEqual([lane.queued, state.dropped], [2, 0]);
  lane.append(effect('SET', 'k', 'v'));
  assert.deepEqual([lane.queued, state.dropped], [2, 1]);
  lane.close();
});

test('of effects that belong together all are dropped, or none', () => {
  const block = (): Operation[] => [1, 2, 3].map((value) => effect('SET', 'k', value));
  for (const [queueBytes, fits] of [
    [4 * SIZE - 1, false],
    [4 * SIZE, true],
  ] as const) {
    const { lane, state } = mirrored(queueBytes);
    lane.append(effect('SET', 'k', 'v'));
    lane.appendAll(block());
    assert.deepEqual([lane.queued, state.dropped], fits ? [4, 0] : [1, 3]);
    lane.close();
  }
});

test('effects are sent 2 ms after the first of them, or when they are 2,048', async () => {
  const { lane, state } = mirrored(4 << 20);
  lane.start();
  await clock.settle();
  lane.append(effect('SET', 'k', 1));
  await clock.advance(1);
  lane.append(effect('SET', 'k', 2));
  assert.deepEqual(state.sent, []);
  await clock.advance(1);
  assert.deepEqual(state.sent, ['SET k 1', 'SET k 2']);
  state.sent.length = 0;
  for (let i = 0; i < 2047; i++) lane.append(effect('SET', 'k', i));
  await clock.settle();
  assert.equal(state.sent.length, 0);
  lane.append(effect('SET', 'k', 2047));
  await clock.settle();
  assert.equal(state.sent.length, 2048);
  lane.close();
});

test('a time to live that waited for more than 4 ms is sent as what is left of it', async () => {
  for (const [late, sent] of [
    [4, 'PEXPIRE k 1000'],
    [5, 'PEXPIRE k 995'],
  ] as const) {
    const { lane, state } = mirrored();
    lane.start();
    await clock.settle();
    const operation = effect('PEXPIRE', 'k', 1000);
    clock.jump(late);
    lane.append(operation);
    lane.flush();
    assert.deepEqual(state.sent, [sent]);
    lane.close();
  }
});

test('it connects again after 20 ms, twice that each time, a second at most', async () => {
  const { lane, state } = mirrored();
  state.up = false;
  lane.start();
  await clock.advance(5_000);
  const waits = state.attempts.slice(1).map((at, i) => at - state.attempts[i]);
  assert.deepEqual(waits.slice(0, 8), [20, 40, 80, 160, 320, 640, 1_000, 1_000]);
  state.up = true;
  await clock.advance(1_000);
  assert.equal(lane.connected, true);
  lane.close();
});

test('what was sent and not confirmed when its connection is lost is told; what was not sent goes to the next one', async () => {
  const { lane, state, confirm, cut } = mirrored();
  lane.start();
  await clock.settle();
  let after = false;
  for (let i = 0; i < 3; i++) lane.append(effect('SET', 'k', i));
  lane.flush();
  confirm(1);
  lane.afterAppended(() => (after = true));
  lane.append(effect('SET', 'k', 'later'));
  state.sent.length = 0;
  cut();
  assert.deepEqual([state.unconfirmed, after, lane.queued], [2, true, 1]);
  await clock.settle();
  assert.deepEqual(state.sent, ['SET k later']);
  lane.close();
});

test('what comes behind a gate is neither sent nor taken for confirmed until it is opened', async () => {
  const { lane, state, confirm } = mirrored();
  lane.start();
  await clock.settle();
  lane.append(effect('SET', 'k', 1));
  const open = lane.gate();
  lane.append(effect('SET', 'k', 2));
  lane.flush();
  assert.deepEqual(state.sent, ['SET k 1']);
  confirm(1);
  let after = false;
  lane.afterAppended(() => (after = true));
  assert.deepEqual([after, lane.isEmpty, lane.gates], [false, false, 1]);
  open();
  assert.deepEqual([state.sent, after], [['SET k 1', 'SET k 2'], false]);
  confirm(1);
  assert.deepEqual([after, lane.isEmpty], [true, true]);
  lane.close();
});

test('a lane with a closed gate is not empty, though nothing is queued', async () => {
  const { lane } = mirrored();
  assert.equal(lane.isEmpty, true);
  const open = lane.gate();
  const second = lane.gate();
  let over = false;
  lane.afterAppended(() => (over = true));
  assert.deepEqual([lane.queued, lane.isEmpty, over], [0, false, false]);
  open();
  assert.deepEqual([lane.isEmpty, over], [false, false], 'a second gate is closed');
  second();
  assert.deepEqual([lane.isEmpty, over], [true, true]);
});
