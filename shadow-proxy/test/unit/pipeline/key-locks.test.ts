/** The queue for keys: which request may go, the order of requests, and requests that leave. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lane } from '../../../src/pipeline/lane.js';
import { KeyLocks, type LockRequest } from '../../../src/pipeline/key-locks.js';

const [A, B] = [{ name: 'A' }, { name: 'B' }] as unknown as [Lane, Lane];

/** An order that notes each request that goes; it holds its keys (or, without a lane, reserves them) until `end`. */
function scene(): {
  locks: KeyLocks;
  went: string[];
  arrive(name: string, lane: Lane | null, keys: readonly string[], writes?: boolean): LockRequest | null;
  end(name: string): void;
} {
  const locks = new KeyLocks();
  locks.tracking = true;
  const went: string[] = [];
  const ends = new Map<string, () => void>();
  const take = (name: string, lane: Lane | null, keys: readonly string[], writes: boolean): void => {
    went.push(name);
    if (lane === null) {
      const reservation = locks.reserve(keys);
      ends.set(name, () => locks.releaseReservation(reservation));
    } else {
      locks.hold(lane, keys, writes);
      ends.set(name, () => locks.release(keys, writes));
    }
  };
  return {
    locks,
    went,
    arrive(name, lane, keys, writes = true) {
      if (locks.admits(lane, keys, writes)) {
        take(name, lane, keys, writes);
        return null;
      }
      return locks.wait({ lane, keys, writes, go: () => take(name, lane, keys, writes) });
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
  const { locks, went, arrive, end } = scene();
  arrive('a', A, ['k']);
  const lockRequest = arrive('exclusive', null, ['k', 'j'])!;
  arrive('b', B, ['j']);
  assert.deepEqual(went, ['a']);
  locks.leave(lockRequest);
  locks.leave(lockRequest);
  assert.deepEqual(went, ['a', 'b']);
  end('a');
  assert.deepEqual(went, ['a', 'b']);
});

test('who goes and finds that it needs more keys keeps its place', () => {
  const { locks, went, arrive, end } = scene();
  arrive('a', A, ['k']);
  arrive('b', A, ['j']);
  const more = locks.wait({
    lane: B,
    keys: ['k'],
    writes: true,
    go: () => {
      const keys = ['k', 'j'];
      assert.equal(locks.admits(B, keys, true, more), false);
      locks.wait({ lane: B, keys, writes: true, go: () => went.push('more') }, more);
    },
  });
  arrive('k late', A, ['k']);
  arrive('j late', A, ['j']);
  end('a');
  assert.deepEqual(went, ['a', 'b', 'j late'], 'what had queued for a key before it was needed, too, is not sent back');
});

test('who goes may set keys free, and does nothing twice', () => {
  const { locks, went, arrive, end } = scene();
  arrive('a', null, ['k', 'j']);
  locks.wait({
    lane: null,
    keys: ['k'],
    writes: true,
    go: () => {
      went.push('short');
      locks.releaseReservation(locks.reserve(['k']));
    },
  });
  arrive('k', A, ['k']);
  arrive('j', A, ['j']);
  end('a');
  assert.deepEqual(went, ['a', 'short', 'k', 'j']);
});

test('a lookup costs nothing while no request waits, and little for keys that no request waits for', () => {
  const locks = new KeyLocks();
  assert.equal(locks.active, false);
  const reservation = locks.reserve(['k']);
  const lockRequest = locks.wait({ lane: A, keys: ['k', 'j'], writes: true, go: () => undefined });
  assert.deepEqual(
    [locks.active, locks.concerns('k'), locks.concerns('j'), locks.concerns('i')],
    [true, true, true, false],
  );
  locks.releaseReservation(reservation);
  assert.deepEqual([locks.active, locks.concerns('k'), locks.concerns('j')], [false, false, false]);
  locks.leave(lockRequest);
  const blockedClient = { lane: A, keys: ['q', 'd'], waitsOn: ['q'], destination: 'd', wakeup: null, unordered: false };
  locks.block(blockedClient);
  assert.deepEqual([locks.active, locks.concerns('q'), locks.concerns('d')], [true, true, false]);
  assert.deepEqual(locks.withWoken(['q']), ['q', 'q', 'd']);
  locks.unblock(blockedClient);
  assert.equal(locks.active, false);
});

test('in any order of requests, none waits forever, and no two that exclude each other have a turn at once', () => {
  for (let round = 0; round < 200; round++) {
    const locks = new KeyLocks();
    locks.tracking = true;
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
        const reservation = locks.reserve(keys);
        having.set(name, { lane, keys, writes, end: () => locks.releaseReservation(reservation) });
      } else {
        locks.hold(lane, keys, writes);
        having.set(name, { lane, keys, writes, end: () => locks.release(keys, writes) });
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
        if (locks.admits(lane, keys, writes)) take(name, lane, keys, writes);
        else queue.push(locks.wait({ lane, keys, writes, go: () => take(name, lane, keys, writes) }));
      } else if (random(10) === 0 && queue.length > 0) {
        locks.leave(queue.splice(random(queue.length), 1)[0]);
      } else if (having.size > 0) finish();
    }
    while (having.size > 0) finish();
    locks.tracking = false;
    assert.equal(locks.active, false, 'somebody waits for ever');
  }
});

test('work that throws when its turn comes fails alone: who set the keys free, and who waits behind it, go on', async () => {
  const { locks, went, arrive, end } = scene();
  arrive('first', A, ['k']);
  const thrown = locks.withLock(B, ['k'], true, () => {
    throw new Error('not now');
  });
  arrive('behind it', B, ['k']);
  end('first');
  await assert.rejects(thrown, /not now/);
  assert.deepEqual(went, ['first', 'behind it']);
});
