/** The mirror's lane: what it takes, when it sends, and how long it waits to connect again; without a server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandTable } from '../../../src/command/table.js';
import { Latencies } from '../../../src/io/latency.js';
import { Turn } from '../../../src/io/turn.js';
import { MirrorLane } from '../../../src/pipeline/mirror.js';
import { BEYOND, Operation, READ, SWAPS, WRITE } from '../../../src/pipeline/operation.js';
import { argumentsOf } from '../../../src/resp/decode.js';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { FrameReader } from '../../../src/resp/frame-reader.js';
import type { Workload } from '../../../src/route/router.js';
import { DatabaseRefused } from '../../../src/upstream/handshake.js';
import type { Connection, ConnectionOwner } from '../../../src/upstream/connection.js';
import type { Server } from '../../../src/upstream/server.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();
const TABLE = new CommandTable();
const REPLY = Buffer.from('+OK\r\n');

function effect(...args: readonly Argument[]): Operation {
  return effectIn(0, ...args);
}

function effectIn(db: number, ...args: readonly Argument[]): Operation {
  const frame = encodeCommand(args);
  const spec = TABLE.byName(String(args[0]).toLowerCase());
  const operation = new Operation(frame, 0, frame.length, null, spec, {} as Workload, db, 2, WRITE);
  operation.reply = REPLY;
  operation.replyEnd = REPLY.length;
  operation.answeredAt = clock.now;
  return operation;
}

const nothing = (): void => undefined;
const words = (frame: Buffer, start: number): string =>
  argumentsOf(frame, start)
    .map((arg) => arg.toString('latin1'))
    .join(' ');

/** A mirror whose server takes connections as long as it is up, in the databases that it has. */
function mirrored(queueBytes = 1 << 20) {
  const state = {
    up: true,
    attempts: [] as number[],
    /** In database 0, and in each. */
    sent: [] as string[],
    sentIn: {} as Record<number, string[]>,
    databases: 16,
    opened: [] as number[],
    destroyed: [] as number[],
    dropped: 0,
    refused: [] as string[],
    unconfirmed: 0,
    connected: [] as boolean[],
  };
  const owners = new Map<number, ConnectionOwner>();
  const connectionIn = (db: number): Connection => {
    state.opened.push(db);
    const sent = (state.sentIn[db] = db === 0 ? state.sent : []);
    return {
      ...{ clientId: 7, ended: false, congested: false, destroy: () => void state.destroyed.push(db) },
      attach: (by: ConnectionOwner) => owners.set(db, by),
      outbox: { bytes: 0, add: (frame: Buffer, start: number) => void sent.push(words(frame, start)) },
    } as unknown as Connection;
  };
  const server = {
    ...{ runId: 'r', endpoint: { label: 'the mirror', credentials: undefined }, connections: { kill: nothing } },
    open: async ({ db }: { db: number }) => {
      state.attempts.push(clock.now);
      if (!state.up) throw new Error('refused');
      if (db >= state.databases) throw new DatabaseRefused('ERR DB index is out of range', db);
      return connectionIn(db);
    },
  } as unknown as Server;
  const lane = new MirrorLane(
    server,
    {} as Workload,
    { queueBytes, batchMs: 2 },
    new Latencies(),
    {
      ...{ matched: nothing, differs: nothing, accepted: nothing, database: nothing },
      connected: (up) => void state.connected.push(up),
      failed: (_operation, thrown) => {
        throw thrown;
      },
      unconfirmed: () => state.unconfirmed++,
      dropped: () => state.dropped++,
      refused: ({ frame, start }, reason) => void state.refused.push(`${reason}: ${words(frame, start)}`),
    },
    new Turn(),
  );
  const answer = (db: number, ...replies: readonly Buffer[]): void => {
    const reader = new FrameReader();
    reader.feed(Buffer.concat(replies));
    owners.get(db)!.readable(reader);
  };
  return {
    lane,
    state,
    answer: (db: number, ...replies: readonly string[]) =>
      answer(db, ...replies.map((reply) => Buffer.from(`${reply}\r\n`))),
    confirm: (count: number, db = 0) => answer(db, ...Array<Buffer>(count).fill(REPLY)),
    cut: (db = 0) => owners.get(db)!.lost(new Error('cut')),
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

test('scripts that the mirror has not answered count, and its last answer is noted', async () => {
  const { lane, confirm } = mirrored();
  lane.start();
  await clock.settle();
  lane.append(effect('EVAL', 'return 1', '0'));
  lane.append(effect('SET', 'k', 'v'));
  lane.append(effect('EVAL', 'return 1', '0'));
  lane.flush();
  assert.equal(lane.longCommands.scripts, 2);
  await clock.advance(50);
  confirm(1);
  assert.deepEqual([lane.longCommands.scripts, lane.repliedAt], [1, clock.now]);
  confirm(2);
  assert.equal(lane.longCommands.scripts, 0);
  lane.close();
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

test('effects that were sent and not confirmed when the connection is lost are reported; effects that were not sent go to the next connection', async () => {
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

// ── databases ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** A lane that is connected. */
async function connected() {
  const all = mirrored();
  all.lane.start();
  await clock.settle();
  return all;
}

test('each database has a connection of its own, which is confirmed before an effect is sent', async () => {
  const { lane, state, confirm } = await connected();
  for (const db of [0, 5, 0, 5]) lane.append(effectIn(db, 'SET', 'k', db));
  lane.flush();
  assert.deepEqual(state.sentIn, { 0: ['SET k 0'], 5: [] }, 'what follows waits for the database');
  await clock.settle();
  assert.deepEqual(state.sentIn, { 0: ['SET k 0', 'SET k 0'], 5: ['SET k 5', 'SET k 5'] });
  let over = false;
  lane.afterAppended(() => (over = true));
  confirm(2, 5);
  assert.deepEqual([over, lane.queued, lane.isEmpty], [false, 2, false]);
  confirm(2);
  assert.deepEqual([over, lane.queued, lane.isEmpty], [true, 0, true]);
  assert.equal(lane.queuedBytes, 0);
  lane.close();
});

test('effects in a database that is refused are refused by name; the others go on, and nothing is connected again', async () => {
  const { lane, state, confirm } = await connected();
  state.databases = 4;
  let over = false;
  for (const db of [5, 0, 5]) lane.append(effectIn(db, 'SET', 'k', db));
  lane.afterAppended(() => (over = true));
  lane.flush();
  await clock.settle();
  assert.deepEqual([state.refused, state.sent], [Array(2).fill('database-refused: SET k 5'), ['SET k 0']]);
  assert.deepEqual([lane.refusalOf(5), lane.refusalOf(0)], ['ERR DB index is out of range', null]);
  confirm(1);
  assert.deepEqual([over, lane.queuedBytes, state.connected], [true, 0, [true]]);
  state.databases = 16;
  await clock.advance(999);
  lane.append(effectIn(5, 'SET', 'k', 'at once'));
  lane.flush();
  await clock.settle();
  assert.equal(lane.refused.length, 1, 'it is not asked for again within a second');
  await clock.advance(1);
  lane.append(effectIn(5, 'SET', 'k', 'refused yet'));
  lane.flush();
  await clock.settle();
  assert.deepEqual(lane.refused, []);
  lane.append(effectIn(5, 'SET', 'k', 'taken'));
  lane.flush();
  assert.deepEqual(state.sentIn[5], ['SET k taken']);
  assert.deepEqual(state.opened, [0, 5]);
  lane.close();
});

test('what reaches beyond its database waits for the others, and they wait for it', async () => {
  const { lane, state, confirm } = await connected();
  lane.append(effectIn(5, 'SET', 'k', 'before'));
  lane.flush();
  await clock.settle();
  const move = effectIn(0, 'MOVE', 'k', 5);
  move.reach = BEYOND;
  lane.append(move);
  lane.append(effectIn(0, 'SET', 'same', 'database'));
  lane.append(effectIn(5, 'SET', 'k', 'after'));
  lane.flush();
  assert.deepEqual(state.sentIn, { 0: [], 5: ['SET k before'] });
  confirm(1, 5);
  assert.deepEqual(state.sentIn, { 0: ['MOVE k 5', 'SET same database'], 5: ['SET k before'] });
  confirm(1);
  assert.equal(state.sentIn[5].length, 1);
  confirm(1);
  assert.deepEqual(state.sentIn[5], ['SET k before', 'SET k after']);
  lane.close();
});

test('after SWAPDB every connection selects its database again, and is sent nothing before that is confirmed', async () => {
  const { lane, state, confirm, answer } = await connected();
  lane.append(effectIn(5, 'SET', 'k', 'before'));
  lane.flush();
  await clock.settle();
  confirm(1, 5);
  const swap = effectIn(0, 'SWAPDB', 0, 5);
  swap.reach = SWAPS;
  lane.append(swap);
  for (const db of [0, 5]) lane.append(effectIn(db, 'SET', 'k', db));
  lane.flush();
  assert.deepEqual(state.sent, ['SWAPDB 0 5']);
  confirm(1);
  assert.deepEqual(state.sent, ['SWAPDB 0 5', 'SELECT 0']);
  confirm(1);
  assert.deepEqual(state.sentIn, { 0: ['SWAPDB 0 5', 'SELECT 0', 'SET k 0'], 5: ['SET k before', 'SELECT 5'] });
  assert.throws(
    () => answer(5, '-NOPERM'),
    /refused to select database 5: NOPERM/,
    'its connection is closed for that',
  );
  lane.close();
});

test('the first HELLO 3 of a connection is confirmed before what follows it; later ones are sent along', async () => {
  const { lane, state, confirm, answer } = await connected();
  const spoken = (protocol: 2 | 3, key: string): Operation => {
    const { frame, spec, workload } = effect('SET', key, 'v');
    const operation = new Operation(frame, 0, frame.length, null, spec, workload, 0, protocol, WRITE);
    Object.assign(operation, { reply: REPLY, replyEnd: REPLY.length, answeredAt: clock.now });
    return operation;
  };
  let over = false;
  lane.append(spoken(2, 'a'));
  lane.append(spoken(3, 'b'));
  lane.afterAppended(() => (over = true));
  lane.append(spoken(2, 'c'));
  lane.append(spoken(3, 'd'));
  lane.flush();
  assert.deepEqual(state.sent, ['SET a v', 'HELLO 3']);
  confirm(1);
  answer(0, '%0');
  assert.deepEqual(state.sent.slice(2), ['SET b v', 'HELLO 2', 'SET c v', 'HELLO 3', 'SET d v']);
  assert.equal(over, false, 'a HELLO is no effect');
  confirm(1);
  assert.equal(over, true);
  answer(0, '*0');
  confirm(1);
  answer(0, '%0');
  confirm(1);
  assert.deepEqual([lane.isEmpty, lane.queuedBytes], [true, 0]);
  lane.close();
});

test('the lag is that of the oldest effect, also where a HELLO is sent before it', async () => {
  const { lane, confirm, answer } = await connected();
  const spoken = (protocol: 2 | 3): Operation => {
    const { frame, spec, workload } = effect('SET', 'k', 'v');
    const operation = new Operation(frame, 0, frame.length, null, spec, workload, 0, protocol, WRITE);
    return Object.assign(operation, { reply: REPLY, replyEnd: REPLY.length, answeredAt: clock.now });
  };
  lane.append(spoken(3));
  lane.flush();
  answer(0, '%0');
  confirm(1);
  lane.append(spoken(2));
  await clock.advance(3);
  lane.flush();
  assert.equal(lane.lagMs(clock.now), 3);
  lane.close();
});

test('without HELLO 3, writes are sent all the same, and reads are inconclusive', async () => {
  const { lane, state, answer } = await connected();
  const [write, read] = ([WRITE, READ] as const).map((follow) => {
    const { frame, spec, workload } = effect('SET', follow === READ ? 'read' : 'written', 'v');
    const operation = new Operation(frame, 0, frame.length, null, spec, workload, 0, 3, follow);
    return Object.assign(operation, { reply: REPLY, replyEnd: REPLY.length, answeredAt: clock.now });
  });
  lane.append(write);
  lane.append(read);
  lane.flush();
  answer(0, '-ERR unknown command');
  assert.deepEqual(state.sent, ['HELLO 3', 'SET written v']);
  assert.deepEqual(state.refused, ['protocol-refused: SET read v']);
  lane.close();
});

test('when one connection is lost, the others are closed with it, and all that they were sent is unconfirmed', async () => {
  const { lane, state, cut } = await connected();
  for (const db of [0, 5]) lane.append(effectIn(db, 'SET', 'k', db));
  lane.flush();
  await clock.settle();
  cut(5);
  assert.deepEqual([state.unconfirmed, state.destroyed, state.connected], [2, [0, 5], [true, false]]);
  await clock.settle();
  assert.deepEqual(
    [state.connected, state.opened],
    [
      [true, false, true],
      [0, 5, 0],
    ],
  );
  lane.close();
});

test('a connection that carried nothing for a minute is closed, but for that of database 0', async () => {
  const { lane, state, confirm } = await connected();
  for (const db of [0, 5]) lane.append(effectIn(db, 'SET', 'k', db));
  lane.flush();
  await clock.settle();
  confirm(1);
  await clock.advance(70_000);
  assert.deepEqual(state.destroyed, [], 'it waits for a reply');
  confirm(1, 5);
  await clock.advance(61_000);
  assert.deepEqual([state.destroyed, state.connected, lane.connected], [[5], [true], true]);
  lane.append(effectIn(5, 'SET', 'k', 'again'));
  lane.flush();
  await clock.settle();
  assert.deepEqual(state.sentIn[5], ['SET k again']);
  lane.close();
});
