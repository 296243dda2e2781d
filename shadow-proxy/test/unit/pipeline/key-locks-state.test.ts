/** The order of keys in single steps: which request may go, what is reserved, and what goes when a reservation ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyLocks, type BlockedClient, type LockRequest } from '../../../src/pipeline/key-locks.js';
import type { Lane } from '../../../src/pipeline/lane.js';

const [A, B] = [{ name: 'A' }, { name: 'B' }] as unknown as [Lane, Lane];
const nothing = (): void => undefined;

const waits = (order: KeyLocks, keys: readonly string[], go = nothing, writes = true): LockRequest =>
  order.wait({ lane: A, keys, writes, go });

const waiter: BlockedClient = {
  lane: A,
  keys: ['k'],
  waitsOn: ['k'],
  destination: null,
  waking: null,
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
    const order = new KeyLocks();
    for (const [holder, wrote] of held) order.hold(holder!, ['k'], wrote);
    assert.deepEqual([at, order.admits(lane, ['i', 'k'], writes)], [at, admitted]);
    for (const [, wrote] of held) order.release(['k'], wrote);
    assert.deepEqual([at, order.admits(null, ['k'], true)], [at, true], 'after all are released');
  }
});

test('a key is held until each of those who hold it has released it', () => {
  const order = new KeyLocks();
  order.hold(A, ['k'], true);
  order.hold(A, ['k'], false);
  order.hold(A, ['k'], true);
  const free = (): readonly boolean[] => [order.admits(B, ['k'], false), order.admits(B, ['k'], true)];
  const seen = [free()];
  for (const writes of [true, true, false]) {
    order.release(['k'], writes);
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
  const order = new KeyLocks();
  order.release(['k'], true);
  order.hold(A, ['j'], true);
  order.release(['k', 'j'], true);
  assert.equal(order.admits(B, ['k', 'j'], true), true);
});

test('a reservation keeps all requests from its keys until it ends, and ending it twice does nothing', () => {
  const order = new KeyLocks();
  const [first, second] = [order.reserve(['k', 'j']), order.reserve(['k'])];
  const free = (): readonly boolean[] => ['k', 'j', 'i'].map((key) => order.admits(A, [key], false));
  const seen = [free()];
  for (const each of [first, first, second]) {
    order.giveUp(each);
    seen.push(free());
  }
  assert.deepEqual(seen, [
    [false, false, true],
    [false, true, true],
    [false, true, true],
    [true, true, true],
  ]);
  assert.equal(order.active, false);
});

test('an order is active while there are two lanes, a reservation, a client that blocks, or one that waits', () => {
  const cases: readonly (readonly [what: string, begin: (order: KeyLocks) => () => void])[] = [
    ['two lanes', (order) => ((order.tracking = true), () => void (order.tracking = false))],
    [
      'a reservation',
      (order) =>
        (
          (each) => () =>
            order.giveUp(each)
        )(order.reserve(['k'])),
    ],
    ['a client that blocks', (order) => (order.block(waiter), () => order.unblock(waiter))],
    [
      'one that waits',
      (order) =>
        (
          (each) => () =>
            order.leave(each)
        )(waits(order, ['k'])),
    ],
  ];
  for (const [what, begin] of cases) {
    const order = new KeyLocks();
    const seen = [order.active, order.tracking];
    const end = begin(order);
    seen.push(order.active, order.tracking, order.concerns('k'), order.concerns('j'));
    end();
    seen.push(order.active, order.tracking, order.concerns('k'));
    const lanes = what === 'two lanes';
    assert.deepEqual([what, ...seen], [what, false, false, true, lanes, !lanes, false, false, false, false]);
  }
});

test('work that fails after its turn has come fails for its caller', async () => {
  const order = new KeyLocks();
  const reservation = order.reserve(['k']);
  const failed = order.withLock(A, ['k'], true, () => Promise.reject(new Error('the server is gone')));
  order.giveUp(reservation);
  await assert.rejects(failed, new Error('the server is gone'));
});

test('the work that follows a reservation runs before requests that wait for its keys', () => {
  const order = new KeyLocks();
  const went: string[] = [];
  const reservation = order.reserve(['k']);
  waits(order, ['k'], () => went.push('waited'));
  reservation.then.push(() => went.push('followed'));
  order.giveUp(reservation);
  assert.deepEqual(went, ['followed', 'waited']);
});

test('a command that names a key twice waits once for it', () => {
  const order = new KeyLocks();
  const went: string[] = [];
  const reservation = order.reserve(['k']);
  const left = waits(order, ['k', 'k'], () => went.push('left'));
  waits(order, ['k', 'k'], () => went.push('stays'));
  waits(order, ['k'], () => went.push('last'));
  order.leave(left);
  order.giveUp(reservation);
  assert.deepEqual([went, order.concerns('k'), order.active], [['stays', 'last'], false, false]);
});

test('who waits again with its old place goes before those that came after it', () => {
  const order = new KeyLocks();
  const went: string[] = [];
  const reservation = order.reserve(['k', 'j']);
  const first = waits(order, ['j'], () => went.push('first'));
  for (const name of ['second', 'third']) waits(order, ['k'], () => went.push(name));
  order.wait({ ...first.request, keys: ['k'] }, first);
  assert.equal(order.concerns('j'), true);
  order.giveUp(reservation);
  assert.deepEqual(went, ['first', 'second', 'third']);
});

test('readers that wait for one key all go when it is free, up to the first writer that may not', () => {
  const order = new KeyLocks();
  const went: string[] = [];
  order.hold(A, ['j'], true);
  const reservation = order.reserve(['k']);
  const queue = (name: string, keys: readonly string[], writes: boolean): LockRequest =>
    order.wait({ lane: B, keys, writes, go: () => went.push(name) });
  queue('reads both', ['k', 'j'], false);
  queue('reads', ['k'], false);
  queue('writes both', ['k', 'j'], true);
  queue('reads late', ['k'], false);
  order.giveUp(reservation);
  assert.deepEqual(went, ['reads']);
  order.release(['j'], true);
  assert.deepEqual(went, ['reads', 'reads both', 'writes both', 'reads late']);
});

test('a command whose work throws does not keep the next from going', () => {
  const order = new KeyLocks();
  const went: string[] = [];
  const [one, two] = [order.reserve(['k']), order.reserve(['j'])];
  waits(order, ['k'], () => {
    throw new Error('no');
  });
  waits(order, ['j'], () => went.push('next'));
  assert.throws(() => order.giveUp(one), new Error('no'));
  order.giveUp(two);
  assert.deepEqual(went, ['next']);
});
