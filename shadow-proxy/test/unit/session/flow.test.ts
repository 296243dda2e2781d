/** Holding a client and reading on, with a client that does nothing by itself. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Flow, MAX_UNREAD, type Flowing } from '../../../src/session/flow.js';
import type { ClientState } from '../../../src/session/client-state.js';

class Socket extends EventEmitter {
  paused = false;
  timeoutMs = 0;
  writableNeedDrain = false;
  pause = (): this => ((this.paused = true), this);
  resume = (): this => ((this.paused = false), this);
  setTimeout = (ms: number): this => ((this.timeoutMs = ms), this);
}

/** A flow, and what it does: how often it ran, what it spent of the turn, which retries it left with others. */
function scene(share = 1_000) {
  const socket = new Socket();
  const client = { socket, closed: false, blocked: null } as unknown as ClientState & { closed: boolean };
  const seen = { runs: 0, usedUp: 0, closed: 0 };
  const open: { retry: () => void; place: number | undefined }[] = [];
  const of = {
    client,
    inFlight: 0,
    unread: 0,
    hasRoom: true,
    turnBudget: { share: () => share, usedUp: () => void seen.usedUp++ } as unknown as Flowing['turnBudget'],
    maxUnreadBytes: 5 * MAX_UNREAD,
    onceOpen: (retry: () => void, place?: number) => void open.push({ retry, place }),
    run: () => void seen.runs++,
    closeForOutput: () => void seen.closed++,
    failed: (problem: unknown) => {
      throw problem;
    },
  };
  return { flow: new Flow(of), of, socket, seen, open, client };
}

test('a held client is not read; resume dispatches what is left, and only then it is read on', () => {
  const { flow, socket, seen } = scene();
  flow.resume();
  assert.equal(seen.runs, 0, 'it was not held');
  flow.hold();
  assert.deepEqual([flow.held, socket.paused], [true, true]);
  flow.resume();
  assert.deepEqual([flow.held, socket.paused, seen.runs, flow.next()], [false, true, 1, false]);
  flow.readOn();
  assert.equal(socket.paused, false);
});

test('a client that is held for as long as may be is read on while there is room for what it sends', () => {
  const { flow, of, socket } = scene();
  flow.holdOpen(true);
  assert.equal(socket.paused, false);
  flow.readNoFurther();
  of.hasRoom = false;
  flow.resume();
  flow.holdOpen(true);
  assert.deepEqual([flow.held, socket.paused], [true, true]);
  of.hasRoom = true;
  flow.resume();
  flow.holdOpen(true);
  assert.equal(socket.paused, false);
});

test('resume while the command is being dispatched leaves the rest to the loop that dispatches', () => {
  const { flow, seen } = scene();
  flow.begin(1, 0);
  flow.hold();
  flow.resume();
  assert.deepEqual([flow.held, seen.runs], [false, 0]);
  flow.end();
  flow.hold();
  flow.resume();
  assert.equal(seen.runs, 1);
});

test('commands that are answered do not resume a client that waits for something else', () => {
  const { flow } = scene();
  flow.holdUntil(4);
  flow.resume();
  flow.hold();
  flow.settled(4);
  assert.equal(flow.held, true, 'it had gone on before so few were in flight');
  flow.resume();
  flow.holdUntil(4);
  flow.hold();
  flow.settled(3);
  assert.equal(flow.held, true, 'what it waits for now came later');
  flow.resume();
  flow.pauseUntil(2);
  flow.settled(2);
  assert.equal(flow.held, false);
});

test('a client that has left is not resumed', () => {
  const { flow, seen, client } = scene();
  flow.hold();
  client.closed = true;
  flow.resume();
  assert.deepEqual([flow.held, seen.runs], [true, 0]);
});

test('the share of a turn: bytes that were read, and 256 for each command', async () => {
  const { flow, seen, socket } = scene(1_000);
  flow.begin(1, 400);
  assert.equal(flow.waitsForTurn(), false);
  flow.next();
  assert.equal(flow.waitsForTurn(), false, '344 are left');
  flow.next();
  assert.equal(flow.waitsForTurn(), false, '88 are left');
  flow.next();
  assert.deepEqual([flow.waitsForTurn(), seen.usedUp, socket.paused], [true, 1, true]);
  flow.end();
  await nextTurn();
  assert.deepEqual([flow.held, seen.runs], [false, 1]);
  // The next turn has a share of its own; the same turn has none left.
  flow.begin(1, 0);
  assert.equal(flow.waitsForTurn(), true);
  await nextTurn();
  flow.begin(2, 0);
  assert.equal(flow.waitsForTurn(), false);
});

test('a command that has to wait is looked at again, once', async () => {
  const { flow, of, open } = scene();
  flow.retryWhen('open');
  assert.deepEqual([flow.held, open.length, open[0].place], [true, 1, undefined]);
  open[0].retry();
  assert.deepEqual([flow.held, flow.next(), flow.next()], [false, true, false]);

  of.inFlight = 1;
  flow.retryWhen('idle');
  flow.settled(1);
  assert.equal(flow.held, true);
  flow.settled(0);
  assert.deepEqual([flow.held, flow.next()], [false, true]);
  of.inFlight = 0;
  flow.retryWhen('idle');
  assert.deepEqual([flow.held, flow.next()], [false, true]);

  for (const settle of [() => Promise.resolve(), () => Promise.reject(new Error('refused'))]) {
    flow.retryWhen(settle());
    assert.equal(flow.held, true);
    await nextTurn();
    assert.deepEqual([flow.held, flow.next()], [false, true]);
  }
});

test('holdUntil and pauseUntil resume when no more than so many are in flight', () => {
  const { flow, seen } = scene();
  flow.holdUntil(2);
  flow.settled(3);
  assert.equal(flow.held, true);
  flow.settled(2);
  assert.deepEqual([flow.held, seen.runs], [false, 1]);
  flow.settled(1);
  assert.equal(seen.runs, 1, 'only once');
  flow.holdUntilIdle();
  flow.settled(1);
  assert.equal(flow.held, true);
  flow.settled(0);
  assert.equal(flow.held, false);
  flow.pauseUntil(1);
  flow.settled(1);
  assert.equal(flow.held, false);
});

test('a pause keeps a command that is to be looked at again; a hold is done with it', () => {
  for (const [again, stop] of [
    [true, (flow: Flow) => flow.pause()],
    [false, (flow: Flow) => flow.hold()],
  ] as const) {
    const { flow } = scene();
    flow.holdForRetry();
    stop(flow);
    flow.resume();
    assert.equal(flow.next(), again);
  }
  const { flow, seen } = scene();
  flow.holdForRetry();
  flow.skip();
  assert.deepEqual([flow.held, seen.runs, flow.next()], [false, 1, false]);
});

test('whenIdle and atEnd run their work when nothing is in flight, at once where nothing is', () => {
  const { flow, of } = scene();
  const did: string[] = [];
  flow.whenIdle(() => did.push('idle'));
  assert.deepEqual([did, flow.held], [['idle'], true]);
  of.inFlight = 2;
  flow.whenIdle(() => did.push('later'));
  flow.settled(1);
  assert.equal(did.length, 1);
  // The last one who waits for the end takes the place of others.
  flow.atEnd(() => did.push('end'));
  of.inFlight = 0;
  flow.settled(0);
  assert.deepEqual(did, ['idle', 'end']);
  flow.atEnd(() => did.push('at once'));
  assert.deepEqual(did.slice(2), ['at once']);
  flow.holdForRetry();
  flow.resumeWhenIdle();
  assert.deepEqual([flow.held, flow.next()], [false, true]);
});

test('atEnd waits for the command at hand, which may send something when nothing is in flight', () => {
  const { flow, of } = scene();
  const did: string[] = [];
  flow.hold();
  flow.atEnd(() => did.push('held'));
  assert.deepEqual([did, flow.isWorking], [[], true]);
  // It has sent its last part.
  of.inFlight = 1;
  flow.resume();
  assert.deepEqual([did, flow.isWorking], [[], false]);
  of.inFlight = 0;
  flow.settled(0);
  assert.deepEqual(did, ['held']);
  // It has begun when nothing was in flight.
  flow.whenIdle(() => undefined);
  flow.atEnd(() => did.push('begun'));
  assert.equal(did.length, 1);
  flow.resume();
  assert.deepEqual(did, ['held', 'begun']);
  // What waits to be dispatched again never is.
  flow.retryWhen('open');
  flow.atEnd(() => did.push('waiting'));
  assert.equal(did.at(-1), 'waiting');
});

test('holdOpen holds the command, and still reads: the client’s end is seen', () => {
  const { flow, socket } = scene();
  flow.holdOpen(true);
  assert.deepEqual([flow.held, socket.paused], [true, false]);
  flow.resume();
  assert.equal(flow.next(), true);
});

test('a client that leaves more than 1 MiB unread waits until it has read', async () => {
  const { flow, of, socket } = scene();
  of.unread = MAX_UNREAD;
  assert.equal(flow.leavesTooMuch, false);
  of.unread = MAX_UNREAD + 1;
  assert.equal(flow.leavesTooMuch, true);
  flow.awaitTurn();
  await nextTurn();
  assert.equal(flow.held, false, 'all was given to the system');
  socket.writableNeedDrain = true;
  flow.awaitTurn();
  await nextTurn();
  assert.deepEqual([flow.held, socket.timeoutMs], [true, 100]);
  socket.emit('drain');
  assert.deepEqual(
    [flow.held, socket.timeoutMs, socket.listenerCount('drain'), socket.listenerCount('timeout')],
    [false, 0, 0, 0],
  );
});

test('a client that reads nothing is given twice as much each time, up to its limit, then closed', async () => {
  const { flow, of, socket, seen } = scene();
  socket.writableNeedDrain = true;
  for (const most of [2, 4, 5, 5]) {
    of.unread = 5 * MAX_UNREAD;
    flow.awaitTurn();
    await nextTurn();
    if (!flow.held) break;
    socket.emit('timeout');
    assert.equal(flow.held, false);
    of.unread = most * MAX_UNREAD;
    assert.equal(flow.leavesTooMuch, false);
    of.unread = most * MAX_UNREAD + 1;
    assert.equal(flow.leavesTooMuch, true, `${most} MiB`);
  }
  of.unread = 5 * MAX_UNREAD + 1;
  flow.awaitTurn();
  await nextTurn();
  socket.emit('timeout');
  assert.deepEqual([seen.closed, flow.held], [1, true]);
  // What it reads then sets its bound back to 1 MiB.
  socket.emit('drain');
  of.unread = MAX_UNREAD + 1;
  assert.deepEqual([flow.held, flow.leavesTooMuch], [false, true]);
});
