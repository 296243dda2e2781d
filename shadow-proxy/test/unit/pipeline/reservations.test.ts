/** Reservations, what they and waiting commands report, and the clients that block. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lane } from '../../../src/pipeline/lane.js';
import { KeyLocks, reservationsOf, type BlockedClient } from '../../../src/pipeline/key-locks.js';

const [A, B] = [{ name: 'A' }, { name: 'B' }] as unknown as [Lane, Lane];

/** Runs `work` while the monotonic clock shows `now`, in ms. */
function at<T>(now: number, work: () => T): T {
  const clock = performance.now;
  performance.now = () => now;
  try {
    return work();
  } finally {
    performance.now = clock;
  }
}

const client = (waitsOn: readonly string[], destination: string | null = null): BlockedClient => ({
  lane: A,
  keys: destination === null ? waitsOn : [...waitsOn, destination],
  waitsOn,
  destination,
  waking: null,
  unordered: false,
});

const waits = (order: KeyLocks, keys: readonly string[]) =>
  order.wait({ lane: A, keys, writes: true, go: () => undefined });

test('reservations are counted by age: under 1 s, under 10 s, older', () => {
  const [first, second] = [new KeyLocks(), new KeyLocks()];
  for (const [order, since] of [
    [first, 20_000],
    [first, 19_001],
    [second, 19_000],
    [second, 10_001],
    [second, 10_000],
    [second, 1_000],
  ] as const)
    at(since, () => order.reserve(['k']));
  assert.deepEqual(reservationsOf([first, second], 20_000), {
    byAge: { 'under-1s': 2, 'under-10s': 2, older: 2 },
    oldestMs: 19_000,
    longestWaitMs: 0,
  });
});

test('without reservations and waiting commands, all figures are 0', () => {
  const none = { byAge: { 'under-1s': 0, 'under-10s': 0, older: 0 }, oldestMs: 0, longestWaitMs: 0 };
  assert.deepEqual(reservationsOf([], 5_000), none);
  assert.deepEqual(reservationsOf([new KeyLocks()], 5_000), none);
});

test('the longest wait is that of the first command that still waits', () => {
  const [first, second] = [new KeyLocks(), new KeyLocks()];
  assert.equal(first.waitsSince(), null);
  at(100, () => {
    first.reserve(['k']);
    second.reserve(['k']);
  });
  at(300, () => waits(first, ['k']));
  const oldest = at(200, () => waits(first, ['k']));
  at(250, () => waits(first, ['k']));
  at(400, () => waits(second, ['k']));
  assert.equal(first.waitsSince(), 200);
  assert.equal(reservationsOf([first, second], 1_000).longestWaitMs, 800);
  first.leave(oldest);
  assert.equal(first.waitsSince(), 250);
  assert.equal(reservationsOf([second], 1_000).longestWaitMs, 600);
});

test('a command that waits again keeps its place and its age', () => {
  const order = new KeyLocks();
  at(0, () => order.reserve(['k']));
  const before = at(100, () => waits(order, ['k']));
  const again = at(500, () => order.wait({ lane: A, keys: ['j'], writes: true, go: () => undefined }, before));
  assert.deepEqual([again.number, again.since, order.waitsSince()], [before.number, 100, 100]);
  // The first request no longer waits.
  order.leave(again);
  assert.equal(order.waitsSince(), null);
});

test('reservedSince lists the reservations that are not released', () => {
  const order = new KeyLocks();
  const first = at(10, () => order.reserve(['a']));
  at(20, () => order.reserve(['a', 'b']));
  assert.deepEqual(order.reservedSince(), [10, 20]);
  order.giveUp(first);
  order.giveUp(first);
  assert.deepEqual(order.reservedSince(), [20]);
  // The second one still has the key.
  assert.deepEqual([order.concerns('a'), order.concerns('b'), order.active], [true, true, true]);
  assert.equal(order.admits(A, ['a'], false), false);
});

test('a reservation excludes every lane, readers too, and its release admits them', () => {
  const order = new KeyLocks();
  const reservation = order.reserve(['k']);
  assert.deepEqual(
    [order.admits(A, ['k'], false), order.admits(A, ['j'], true), order.admits(null, ['k'], true)],
    [false, true, false],
  );
  order.giveUp(reservation);
  assert.deepEqual([order.admits(A, ['k'], true), order.active], [true, false]);
});

test('afterReservations waits for those of its time, and not for later ones', async () => {
  const order = new KeyLocks();
  await order.afterReservations();
  const [first, second] = [order.reserve(['a']), order.reserve(['b'])];
  let over = false;
  const done = order.afterReservations().then(() => (over = true));
  order.reserve(['c']);
  order.giveUp(first);
  await new Promise(setImmediate);
  assert.equal(over, false);
  order.giveUp(second);
  await done;
  assert.equal(order.reservedSince().length, 1);
});

test('withLock works at once where nothing is in the way, and takes its turn where something is', async () => {
  const order = new KeyLocks();
  const did: string[] = [];
  const work = (name: string) => () => {
    did.push(name);
    return Promise.resolve(name);
  };
  const idle = order.withLock(null, ['k'], true, work('idle'));
  assert.deepEqual(did, ['idle']);
  assert.equal(await idle, 'idle');
  order.tracking = true;
  order.hold(A, ['k'], true);
  const other = order.withLock(B, ['j'], true, work('other key'));
  const same = order.withLock(A, ['k'], true, work('same lane'));
  const late = order.withLock(B, ['k'], false, work('other lane'));
  assert.deepEqual(did, ['idle', 'other key', 'same lane']);
  assert.deepEqual(await Promise.all([other, same]), ['other key', 'same lane']);
  order.release(['k'], true);
  assert.deepEqual(did, ['idle', 'other key', 'same lane', 'other lane']);
  assert.equal(await late, 'other lane');
  order.hold(A, ['k'], false);
  let wrote = false;
  const writer = order.withLock(B, ['k'], true, async () => (wrote = true));
  assert.equal(wrote, false);
  order.release(['k'], false);
  assert.equal(await writer, true);
});

test('keys that several lanes read are held by none of them', () => {
  const order = new KeyLocks();
  order.tracking = true;
  order.hold(A, ['k'], false);
  assert.equal(order.admits(A, ['k'], true), true);
  order.hold(B, ['k'], false);
  assert.deepEqual(
    [order.admits(A, ['k'], true), order.admits(B, ['k'], true), order.admits(A, ['k'], false)],
    [false, false, true],
  );
  order.release(['k'], false);
  assert.equal(order.admits(A, ['k'], true), false);
  order.release(['k'], false);
  order.release(['k'], false);
  assert.equal(order.admits(A, ['k'], true), true);
  // A reader is admitted beside readers of any lane, and never beside a writer of another.
  order.hold(A, ['k'], true);
  order.hold(A, ['k'], false);
  assert.deepEqual([order.admits(A, ['k'], false), order.admits(B, ['k'], false)], [true, false]);
  order.release(['k'], true);
  assert.equal(order.admits(B, ['k'], false), true);
});

test('wokenBy follows what woken clients write in turn, and nothing else', () => {
  const order = new KeyLocks();
  assert.deepEqual([...order.wokenBy(['a'])], []);
  const first = client(['a', 'b'], 'c');
  const second = client(['c']);
  const third = client(['d'], 'a');
  for (const each of [first, second, third]) order.block(each);
  assert.deepEqual([...order.wokenBy(['a'])], [first, second]);
  assert.deepEqual([...order.wokenBy(['b', 'a'])], [first, second]);
  assert.deepEqual([...order.wokenBy(['c'])], [second]);
  assert.deepEqual([...order.wokenBy(['d'])], [third, first, second]);
  assert.deepEqual([...order.wokenBy(['e'])], []);
  assert.deepEqual(order.withWoken(['e']), ['e']);
  assert.deepEqual(order.withWoken(['c']), ['c', 'c']);
  assert.deepEqual(order.withWoken(['b']), ['b', 'a', 'b', 'c', 'c']);
});

test('blocked lists each client once, until it is unblocked', () => {
  const order = new KeyLocks();
  const [first, second] = [client(['a', 'b']), client(['b'])];
  assert.deepEqual([order.active, [...order.blocked()]], [false, []]);
  order.block(first);
  order.block(second);
  assert.deepEqual([...order.blocked()], [first, second]);
  order.unblock(first);
  order.unblock(first);
  assert.deepEqual(
    [[...order.blocked()], order.concerns('a'), order.concerns('b'), order.active],
    [[second], false, true, true],
  );
  order.unblock(second);
  assert.deepEqual([order.blocked().size, order.concerns('b'), order.active], [0, false, false]);
});
