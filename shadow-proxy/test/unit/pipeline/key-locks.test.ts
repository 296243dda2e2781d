/** The queue for keys: which request may go, the order of requests, and requests that leave. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lane } from '../../../src/pipeline/lane.js';
import { KeyLocks, type LockRequest } from '../../../src/pipeline/key-locks.js';

const [A, B] = [{ name: 'A' }, { name: 'B' }] as unknown as [Lane, Lane];

/** An order that notes each request that goes; it holds its keys (or, without a lane, reserves them) until `end`. */
function scene(): {
  order: KeyLocks;
  went: string[];
  arrive(name: string, lane: Lane | null, keys: readonly string[], writes?: boolean): LockRequest | null;
  end(name: string): void;
} {
  const order = new KeyLocks();
  order.tracking = true;
  const went: string[] = [];
  const ends = new Map<string, () => void>();
  const take = (name: string, lane: Lane | null, keys: readonly string[], writes: boolean): void => {
    went.push(name);
    if (lane === null) {
      const reservation = order.reserve(keys);
      ends.set(name, () => order.giveUp(reservation));
    } else {
      order.hold(lane, keys, writes);
      ends.set(name, () => order.release(keys, writes));
    }
  };
  return {
    order,
    went,
    arrive(name, lane, keys, writes = true) {
      if (order.admits(lane, keys, writes)) {
        take(name, lane, keys, writes);
        return null;
      }
      return order.wait({ lane, keys, writes, go: () => take(name, lane, keys, writes) });
    },
    end(name) {
      ends.get(name)!();
    },
  };
}

test('a later request on a key waits behind earlier requests that wait for it, also where nothing else is in the way', () => {
  const { went, arrive, end } = scene();
  arrive('a', A, ['k']);
  arrive('exclusive', null, ['k', 'j']);
  arrive('same lane', A, ['k']);
  arrive('other key', B, ['j']);
  arrive('no such key', B, ['i']);
  assert.deepEqual(went, ['a', 'no such key']);
  end('a');
  assert.deepEqual(went.slice(2), ['exclusive']);
  end('exclusive');
  assert.deepEqual(went.slice(3), ['same lane', 'other key']);
});

test('readers do not queue behind readers, but behind writers', () => {
  const { went, arrive, end } = scene();
  arrive('writes', A, ['k']);
  arrive('reads both', B, ['k', 'j'], false);
  arrive('reads one', B, ['j'], false);
  arrive('writes one', B, ['j']);
  arrive('reads late', B, ['j'], false);
  assert.deepEqual(went, ['writes', 'reads one']);
  end('writes');
  assert.deepEqual(went.slice(2), ['reads both', 'writes one', 'reads late']);
});

test('a command that needs several keys is not passed by a stream of commands that need one each', () => {
  const { went, arrive, end } = scene();
  arrive('k0', A, ['k']);
  arrive('j0', A, ['j']);
  arrive('both', B, ['k', 'j']);
  for (let i = 1; i < 50; i++) {
    arrive(`k${i}`, A, ['k']);
    arrive(`j${i}`, A, ['j']);
  }
  end('k0');
  assert.deepEqual(went, ['k0', 'j0']);
  end('j0');
  assert.deepEqual(went, ['k0', 'j0', 'both']);
  end('both');
  assert.equal(went.length, 3 + 98);
});

test('who leaves the queue lets those go that stood behind it', () => {
  const { order, went, arrive, end } = scene();
  arrive('a', A, ['k']);
  const ticket = arrive('exclusive', null, ['k', 'j'])!;
  arrive('b', B, ['j']);
  assert.deepEqual(went, ['a']);
  order.leave(ticket);
  order.leave(ticket);
  assert.deepEqual(went, ['a', 'b']);
  end('a');
  assert.deepEqual(went, ['a', 'b']);
});

test('who goes and finds that it needs more keys keeps its place', () => {
  const { order, went, arrive, end } = scene();
  arrive('a', A, ['k']);
  arrive('b', A, ['j']);
  const more = order.wait({
    lane: B,
    keys: ['k'],
    writes: true,
    go: () => {
      const keys = ['k', 'j'];
      assert.equal(order.admits(B, keys, true, more), false);
      order.wait({ lane: B, keys, writes: true, go: () => went.push('more') }, more);
    },
  });
  arrive('k late', A, ['k']);
  arrive('j late', A, ['j']);
  end('a');
  assert.deepEqual(went, ['a', 'b', 'j late'], 'what had queued for a key before it was needed, too, is not sent back');
});

test('who goes may set keys free, and does nothing twice', () => {
  const { order, went, arrive, end } = scene();
  arrive('a', null, ['k', 'j']);
  order.wait({
    lane: null,
    keys: ['k'],
    writes: true,
    go: () => {
      went.push('short');
      order.giveUp(order.reserve(['k']));
    },
  });
  arrive('k', A, ['k']);
  arrive('j', A, ['j']);
  end('a');
  assert.deepEqual(went, ['a', 'short', 'k', 'j']);
});

test('a lookup costs nothing while no request waits, and little for keys that no request waits for', () => {
  const order = new KeyLocks();
  assert.equal(order.active, false);
  const reservation = order.reserve(['k']);
  const ticket = order.wait({ lane: A, keys: ['k', 'j'], writes: true, go: () => undefined });
  assert.deepEqual(
    [order.active, order.concerns('k'), order.concerns('j'), order.concerns('i')],
    [true, true, true, false],
  );
  order.giveUp(reservation);
  assert.deepEqual([order.active, order.concerns('k'), order.concerns('j')], [false, false, false]);
  order.leave(ticket);
  const waiter = { lane: A, keys: ['q', 'd'], waitsOn: ['q'], destination: 'd', waking: null, unordered: false };
  order.block(waiter);
  assert.deepEqual([order.active, order.concerns('q'), order.concerns('d')], [true, true, false]);
  assert.deepEqual(order.withWoken(['q']), ['q', 'q', 'd']);
  order.unblock(waiter);
  assert.equal(order.active, false);
});

test('in any order of requests, none waits forever, and no two that exclude each other have a turn at once', () => {
  for (let round = 0; round < 200; round++) {
    const order = new KeyLocks();
    order.tracking = true;
    const random = (n: number): number => Math.floor(Math.random() * n);
    const having = new Map<number, { lane: Lane | null; keys: readonly string[]; writes: boolean; end(): void }>();
    const queue: LockRequest[] = [];
    let arrived = 0;
    const take = (name: number, lane: Lane | null, keys: readonly string[], writes: boolean): void => {
      for (const other of having.values()) {
        const apart = other.lane !== lane || lane === null;
        assert.ok(
          !apart || !(writes || other.writes) || !keys.some((key) => other.keys.includes(key)),
          'two have a key at once',
        );
      }
      if (lane === null) {
        const reservation = order.reserve(keys);
        having.set(name, { lane, keys, writes, end: () => order.giveUp(reservation) });
      } else {
        order.hold(lane, keys, writes);
        having.set(name, { lane, keys, writes, end: () => order.release(keys, writes) });
      }
    };
    const finish = (): void => {
      const names = [...having.keys()];
      const name = names[random(names.length)];
      const { end } = having.get(name)!;
      having.delete(name);
      end();
    };
    for (let step = 0; step < 200; step++) {
      if (random(3) > 0) {
        const name = arrived++;
        const lane = [A, B, null][random(3)];
        const keys = Array.from({ length: 1 + random(3) }, () => 'abcd'[random(4)]);
        const writes = lane === null || random(2) === 0;
        if (order.admits(lane, keys, writes)) take(name, lane, keys, writes);
        else queue.push(order.wait({ lane, keys, writes, go: () => take(name, lane, keys, writes) }));
      } else if (random(10) === 0 && queue.length > 0) {
        order.leave(queue.splice(random(queue.length), 1)[0]);
      } else if (having.size > 0) finish();
    }
    while (having.size > 0) finish();
    order.tracking = false;
    assert.equal(order.active, false, 'somebody waits for ever');
  }
});

test('work that throws when its turn comes fails alone: who set the keys free, and who waits behind it, go on', async () => {
  const { order, went, arrive, end } = scene();
  arrive('first', A, ['k']);
  const thrown = order.withLock(B, ['k'], true, () => {
    throw new Error('not now');
  });
  arrive('behind it', B, ['k']);
  end('first');
  await assert.rejects(thrown, /not now/);
  assert.deepEqual(went, ['first', 'behind it']);
});
