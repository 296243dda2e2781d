/** The order of keys in single steps: which request may go, what is reserved, and what goes when a reservation ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyLocks, type BlockedClient, type LockRequest } from '../../../src/pipeline/key-locks.js';
import type { Lane } from '../../../src/pipeline/lane.js';

const [A, B] = [{ name: 'A' }, { name: 'B' }] as unknown as [Lane, Lane];
const nothing = (): void => undefined;

const waits = (locks: KeyLocks, keys: readonly string[], go = nothing, writes = true): LockRequest =>
  locks.wait({ lane: A, keys, writes, go });

const blockedClient: BlockedClient = {
  lane: A,
  keys: ['k'],
  waitsOn: ['k'],
  destination: null,
  wakeup: null,
  unordered: false,
};

test('a key that is held lets its own lane go, and others where all only read', () => {
  type Use = readonly [lane: Lane | null, writes: boolean];
  const cases: readonly (readonly [held: readonly Use[], asks: Use, admitted: boolean])[] = [
    [[], [A, true], true],
    [[], [null, true], true],
    [[[A, true]], [A, true], true],
    [[[A, true]], [A, false], true],
    [[[A, true]], [B, false], false],
    [[[A, true]], [null, false], false],
    [[[A, false]], [B, false], true],
    [[[A, false]], [null, false], true],
    [[[A, false]], [B, true], false],
    [[[A, false]], [null, true], false],
    [[[A, false], [B, false]], [A, false], true], // prettier-ignore
    [[[A, false], [B, false]], [A, true], false], // prettier-ignore
    [[[A, false], [B, false]], [B, true], false], // prettier-ignore
    [[[A, false], [A, false]], [A, true], true], // prettier-ignore
  ];
  for (const [at, [held, [lane, writes], admitted]] of cases.entries()) {
    const locks = new KeyLocks();
    for (const [holder, wrote] of held) locks.hold(holder!, ['k'], wrote);
    assert.deepEqual([at, locks.admits(lane, ['i', 'k'], writes)], [at, admitted]);
    for (const [, wrote] of held) locks.release(['k'], wrote);
    assert.deepEqual([at, locks.admits(null, ['k'], true)], [at, true], 'after all are released');
  }
});

test('a key is held until each of those who hold it has released it', () => {
  const locks = new KeyLocks();
  locks.hold(A, ['k'], true);
  locks.hold(A, ['k'], false);
  locks.hold(A, ['k'], true);
  const free = (): readonly boolean[] => [locks.admits(B, ['k'], false), locks.admits(B, ['k'], true)];
  const seen = [free()];
  for (const writes of [true, true, false]) {
    locks.release(['k'], writes);
    seen.push(free());
  }
  assert.deepEqual(seen, [
    [false, false],
    [false, false],
    [true, false],
    [true, true],
  ]);
});

test('a release of a key that no request holds changes nothing', () => {
  const locks = new KeyLocks();
  locks.release(['k'], true);
  locks.hold(A, ['j'], true);
  locks.release(['k', 'j'], true);
  assert.equal(locks.admits(B, ['k', 'j'], true), true);
});

test('a reservation keeps all requests from its keys until it ends, and ending it twice does nothing', () => {
  const locks = new KeyLocks();
  const [first, second] = [locks.reserve(['k', 'j']), locks.reserve(['k'])];
  const free = (): readonly boolean[] => ['k', 'j', 'i'].map((key) => locks.admits(A, [key], false));
  const seen = [free()];
  for (const each of [first, first, second]) {
    locks.releaseReservation(each);
    seen.push(free());
  }
  assert.deepEqual(seen, [
    [false, false, true],
    [false, true, true],
    [false, true, true],
    [true, true, true],
  ]);
  assert.equal(locks.active, false);
});

test('an order is active while there are two lanes, a reservation, a client that blocks, or one that waits', () => {
  const cases: readonly (readonly [what: string, begin: (locks: KeyLocks) => () => void])[] = [
    ['two lanes', (locks) => ((locks.tracking = true), () => void (locks.tracking = false))],
    [
      'a reservation',
      (locks) =>
        (
          (each) => () =>
            locks.releaseReservation(each)
        )(locks.reserve(['k'])),
    ],
    ['a client that blocks', (locks) => (locks.block(blockedClient), () => locks.unblock(blockedClient))],
    [
      'one that waits',
      (locks) =>
        (
          (each) => () =>
            locks.leave(each)
        )(waits(locks, ['k'])),
    ],
  ];
  for (const [what, begin] of cases) {
    const locks = new KeyLocks();
    const seen = [locks.active, locks.tracking];
    const end = begin(locks);
    seen.push(locks.active, locks.tracking, locks.concerns('k'), locks.concerns('j'));
    end();
    seen.push(locks.active, locks.tracking, locks.concerns('k'));
    const lanes = what === 'two lanes';
    assert.deepEqual([what, ...seen], [what, false, false, true, lanes, !lanes, false, false, false, false]);
  }
});

test('work that fails after its turn has come fails for its caller', async () => {
  const locks = new KeyLocks();
  const reservation = locks.reserve(['k']);
  const failed = locks.withLock(A, ['k'], true, () => Promise.reject(new Error('the server is gone')));
  locks.releaseReservation(reservation);
  await assert.rejects(failed, new Error('the server is gone'));
});

test('the work that follows a reservation runs before requests that wait for its keys', () => {
  const locks = new KeyLocks();
  const went: string[] = [];
  const reservation = locks.reserve(['k']);
  waits(locks, ['k'], () => went.push('waited'));
  reservation.then.push(() => went.push('followed'));
  locks.releaseReservation(reservation);
  assert.deepEqual(went, ['followed', 'waited']);
});

test('a command that names a key twice waits once for it', () => {
  const locks = new KeyLocks();
  const went: string[] = [];
  const reservation = locks.reserve(['k']);
  const left = waits(locks, ['k', 'k'], () => went.push('left'));
  waits(locks, ['k', 'k'], () => went.push('stays'));
  waits(locks, ['k'], () => went.push('last'));
  locks.leave(left);
  locks.releaseReservation(reservation);
  assert.deepEqual([went, locks.concerns('k'), locks.active], [['stays', 'last'], false, false]);
});

test('who waits again with its old place goes before those that came after it', () => {
  const locks = new KeyLocks();
  const went: string[] = [];
  const reservation = locks.reserve(['k', 'j']);
  const first = waits(locks, ['j'], () => went.push('first'));
  for (const name of ['second', 'third']) waits(locks, ['k'], () => went.push(name));
  locks.wait({ ...first.request, keys: ['k'] }, first);
  assert.equal(locks.concerns('j'), true);
  locks.releaseReservation(reservation);
  assert.deepEqual(went, ['first', 'second', 'third']);
});

test('readers that wait for one key all go when it is free, up to the first writer that may not', () => {
  const locks = new KeyLocks();
  const went: string[] = [];
  locks.hold(A, ['j'], true);
  const reservation = locks.reserve(['k']);
  const queue = (name: string, keys: readonly string[], writes: boolean): LockRequest =>
    locks.wait({ lane: B, keys, writes, go: () => went.push(name) });
  queue('reads both', ['k', 'j'], false);
  queue('reads', ['k'], false);
  queue('writes both', ['k', 'j'], true);
  queue('reads late', ['k'], false);
  locks.releaseReservation(reservation);
  assert.deepEqual(went, ['reads']);
  locks.release(['j'], true);
  assert.deepEqual(went, ['reads', 'reads both', 'writes both', 'reads late']);
});

test('a command whose work throws does not keep the next from going', () => {
  const locks = new KeyLocks();
  const went: string[] = [];
  const [one, two] = [locks.reserve(['k']), locks.reserve(['j'])];
  waits(locks, ['k'], () => {
    throw new Error('no');
  });
  waits(locks, ['j'], () => went.push('next'));
  assert.throws(() => locks.releaseReservation(one), new Error('no'));
  locks.releaseReservation(two);
  assert.deepEqual(went, ['next']);
});
