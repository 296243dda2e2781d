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
  wakeup: null,
  unordered: false,
});

const waits = (locks: KeyLocks, keys: readonly string[]) =>
  locks.wait({ lane: A, keys, writes: true, go: () => undefined });

test('reservations are counted by age: under 1 s, under 10 s, older', () => {
  const [first, second] = [new KeyLocks(), new KeyLocks()];
  for (const [locks, since] of [
    [first, 20_000],
    [first, 19_001],
    [second, 19_000],
    [second, 10_001],
    [second, 10_000],
    [second, 1_000],
  ] as const)
    at(since, () => locks.reserve(['k']));
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
  const locks = new KeyLocks();
  at(0, () => locks.reserve(['k']));
  const before = at(100, () => waits(locks, ['k']));
  const again = at(500, () => locks.wait({ lane: A, keys: ['j'], writes: true, go: () => undefined }, before));
  assert.deepEqual([again.number, again.since, locks.waitsSince()], [before.number, 100, 100]);
  // The first request no longer waits.
  locks.leave(again);
  assert.equal(locks.waitsSince(), null);
});

test('reservedSince lists the reservations that are not released', () => {
  const locks = new KeyLocks();
  const first = at(10, () => locks.reserve(['a']));
  at(20, () => locks.reserve(['a', 'b']));
  assert.deepEqual(locks.reservedSince(), [10, 20]);
  locks.releaseReservation(first);
  locks.releaseReservation(first);
  assert.deepEqual(locks.reservedSince(), [20]);
  // The second one still has the key.
  assert.deepEqual([locks.concerns('a'), locks.concerns('b'), locks.active], [true, true, true]);
  assert.equal(locks.admits(A, ['a'], false), false);
});

test('a reservation excludes every lane, readers too, and its release admits them', () => {
  const locks = new KeyLocks();
  const reservation = locks.reserve(['k']);
  assert.deepEqual(
    [locks.admits(A, ['k'], false), locks.admits(A, ['j'], true), locks.admits(null, ['k'], true)],
    [false, true, false],
  );
  locks.releaseReservation(reservation);
  assert.deepEqual([locks.admits(A, ['k'], true), locks.active], [true, false]);
});

test('afterReservations waits for those of its time, and not for later ones', async () => {
  const locks = new KeyLocks();
  await locks.afterReservations();
  const [first, second] = [locks.reserve(['a']), locks.reserve(['b'])];
  let over = false;
  const done = locks.afterReservations().then(() => (over = true));
  locks.reserve(['c']);
  locks.releaseReservation(first);
  await new Promise(setImmediate);
  assert.equal(over, false);
  locks.releaseReservation(second);
  await done;
  assert.equal(locks.reservedSince().length, 1);
});

test('withLock works at once where nothing is in the way, and takes its turn where something is', async () => {
  const locks = new KeyLocks();
  const did: string[] = [];
  const work = (name: string) => () => {
    did.push(name);
    return Promise.resolve(name);
  };
  const idle = locks.withLock(null, ['k'], true, work('idle'));
  assert.deepEqual(did, ['idle']);
  assert.equal(await idle, 'idle');
  locks.tracking = true;
  locks.hold(A, ['k'], true);
  const other = locks.withLock(B, ['j'], true, work('other key'));
  const same = locks.withLock(A, ['k'], true, work('same lane'));
  const late = locks.withLock(B, ['k'], false, work('other lane'));
  assert.deepEqual(did, ['idle', 'other key', 'same lane']);
  assert.deepEqual(await Promise.all([other, same]), ['other key', 'same lane']);
  locks.release(['k'], true);
  assert.deepEqual(did, ['idle', 'other key', 'same lane', 'other lane']);
  assert.equal(await late, 'other lane');
  locks.hold(A, ['k'], false);
  let wrote = false;
  const writer = locks.withLock(B, ['k'], true, async () => (wrote = true));
  assert.equal(wrote, false);
  locks.release(['k'], false);
  assert.equal(await writer, true);
});

test('keys that several lanes read are held by none of them', () => {
  const locks = new KeyLocks();
  locks.tracking = true;
  locks.hold(A, ['k'], false);
  assert.equal(locks.admits(A, ['k'], true), true);
  locks.hold(B, ['k'], false);
  assert.deepEqual(
    [locks.admits(A, ['k'], true), locks.admits(B, ['k'], true), locks.admits(A, ['k'], false)],
    [false, false, true],
  );
  locks.release(['k'], false);
  assert.equal(locks.admits(A, ['k'], true), false);
  locks.release(['k'], false);
  locks.release(['k'], false);
  assert.equal(locks.admits(A, ['k'], true), true);
  // A reader is admitted beside readers of any lane, and never beside a writer of another.
  locks.hold(A, ['k'], true);
  locks.hold(A, ['k'], false);
  assert.deepEqual([locks.admits(A, ['k'], false), locks.admits(B, ['k'], false)], [true, false]);
  locks.release(['k'], true);
  assert.equal(locks.admits(B, ['k'], false), true);
});

test('wokenBy follows what woken clients write in turn, and nothing else', () => {
  const locks = new KeyLocks();
  assert.deepEqual([...locks.wokenBy(['a'])], []);
  const first = client(['a', 'b'], 'c');
  const second = client(['c']);
  const third = client(['d'], 'a');
  for (const each of [first, second, third]) locks.block(each);
  assert.deepEqual([...locks.wokenBy(['a'])], [first, second]);
  assert.deepEqual([...locks.wokenBy(['b', 'a'])], [first, second]);
  assert.deepEqual([...locks.wokenBy(['c'])], [second]);
  assert.deepEqual([...locks.wokenBy(['d'])], [third, first, second]);
  assert.deepEqual([...locks.wokenBy(['e'])], []);
  assert.deepEqual(locks.withWoken(['e']), ['e']);
  assert.deepEqual(locks.withWoken(['c']), ['c', 'c']);
  assert.deepEqual(locks.withWoken(['b']), ['b', 'a', 'b', 'c', 'c']);
});

test('blocked lists each client once, until it is unblocked', () => {
  const locks = new KeyLocks();
  const [first, second] = [client(['a', 'b']), client(['b'])];
  assert.deepEqual([locks.active, [...locks.blocked()]], [false, []]);
  locks.block(first);
  locks.block(second);
  assert.deepEqual([...locks.blocked()], [first, second]);
  locks.unblock(first);
  locks.unblock(first);
  assert.deepEqual(
    [[...locks.blocked()], locks.concerns('a'), locks.concerns('b'), locks.active],
    [[second], false, true, true],
  );
  locks.unblock(second);
  assert.deepEqual([locks.blocked().size, locks.concerns('b'), locks.active], [0, false, false]);
});
