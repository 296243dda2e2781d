/** When a lease at one server is silent, alive, first or late: to the millisecond, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Lease } from '../../../src/lease/lease.js';
import type { View } from '../../../src/lease/other-processes.js';
import { FakeClock, watched } from '../../support/fake-clock.js';
import { LeaseServer } from '../../support/lease-server.js';

const clock = FakeClock.install();

const at = (server: LeaseServer, process: string): Lease =>
  new Lease('source', server.dialer, 'a', process, { regain: () => Promise.resolve(), lost: () => undefined });

/** A lease that is held, and one that waits for it. */
async function two(): Promise<{ server: LeaseServer; holder: Lease; waiter: Lease }> {
  const server = new LeaseServer(clock, 'a server');
  const [holder, waiter] = [at(server, 'one'), at(server, 'two')];
  await holder.open('waits');
  assert.equal(await holder.claim(), true);
  await waiter.open('waits');
  return { server, holder, waiter };
}

/** Looks at each of these times, in ms from now on, and returns the last view. */
async function lookAt(lease: Lease, ...times: readonly number[]): Promise<View> {
  const since = clock.now;
  let view!: View;
  for (const time of times) {
    await clock.advance(since + time - clock.now);
    view = await lease.observe();
  }
  return view;
}

test('a holder is silent when it was watched for 2,000 ms without a word', async () => {
  for (const [ms, silent] of [
    [1_999, false],
    [2_000, true],
    [2_001, true],
  ] as const) {
    const { waiter } = await two();
    await clock.advance(3_000);
    assert.equal((await lookAt(waiter, 0, 1_000, 1_500, ms)).silent, silent, `${ms} ms`);
  }
});

test('it is not before it was idle for 3 whole seconds', async () => {
  for (const [ms, silent] of [
    [2_999, false],
    [3_000, true],
  ] as const) {
    const { waiter } = await two();
    assert.equal((await lookAt(waiter, 0, 1_000, 2_000, ms)).silent, silent, `${ms} ms`);
  }
});

test('a pause of more than 1,000 ms between two looks starts the watch from zero', async () => {
  for (const [pause, silent] of [
    [1_000, true],
    [1_001, false],
  ] as const) {
    const { waiter } = await two();
    await clock.advance(3_000);
    assert.equal((await lookAt(waiter, 0, pause, 2_000)).silent, silent, `${pause} ms`);
  }
});

test('a look that took more than 1,000 ms starts the watch from zero, too', async () => {
  for (const [late, silent] of [
    [1_000, true],
    [1_001, false],
  ] as const) {
    const { server, waiter } = await two();
    await clock.advance(3_000);
    await lookAt(waiter, 0, 500);
    const { push } = [...server.callers.values()][1].end;
    const { end } = [...server.callers.values()][1];
    // The first answer is on its way for so long.
    end.push = (...args) => {
      end.push = push;
      setTimeout(() => push.apply(end, args), late);
      return true;
    };
    const looked = waiter.observe();
    await clock.advance(late);
    await looked;
    assert.equal((await lookAt(waiter, 1_500 - late)).silent, silent, `${late} ms`);
  }
});

test('a holder is alive when it has said something since it is watched', async () => {
  for (const [ms, alive] of [
    [1_000, false],
    [1_001, true],
  ] as const) {
    const { holder, waiter } = await two();
    await lookAt(waiter, 0, 500);
    await clock.advance(ms - 500);
    await holder.ping();
    assert.equal((await waiter.observe()).alive, alive, `${ms} ms`);
  }
});

test('who waits is first, unless one that came before has said something within 3 seconds', async () => {
  for (const [ms, first] of [
    [2_999, false],
    [3_000, true],
  ] as const) {
    const server = new LeaseServer(clock, 'a server');
    const [early, late] = [at(server, 'one'), at(server, 'two')];
    await early.open('waits');
    await late.open('waits');
    await clock.advance(ms);
    assert.equal((await late.observe()).first, first, `${ms} ms`);
    assert.equal((await early.observe()).first, true);
  }
});

test('a handshake that the server does not answer times out after 1,000 ms', async () => {
  const server = new LeaseServer(clock, 'a server');
  server.silent = true;
  const opening = watched(at(server, 'one').open('waits'));
  await clock.advance(999);
  assert.equal(opening.state, 'pending');
  await clock.advance(1);
  assert.equal(opening.state, 'rejected');
  assert.match(String(opening.reason), /a server does not answer/);
});

test('a lease is given back within 500 ms, though the server does not answer', async () => {
  const { server, holder } = await two();
  server.silent = true;
  const released = holder.release('clean');
  const seen = watched(released);
  await clock.advance(499);
  assert.equal(seen.state, 'pending');
  await clock.advance(1);
  assert.equal(await released, null);
});

test('the server had the connection when it was asked, not when it answered', async () => {
  const { server, holder } = await two();
  const since = clock.now;
  await clock.advance(700);
  const { end } = [...server.callers.values()][0];
  const { push } = end;
  end.push = (...args) => (setTimeout(() => push.apply(end, args), 300), true);
  const pinged = holder.ping();
  await clock.advance(300);
  await pinged;
  assert.equal(holder.tenure?.aliveAt, since + 700);
});

test('a lease that two processes claimed belongs to none, and a lease that was given back is distinguished from one that was left', async () => {
  const { server, holder, waiter } = await two();
  assert.equal(await waiter.claim(), false);
  assert.deepEqual(server.words, ['holds', 'waits']);
  assert.equal(await holder.release('left'), true);
  const { holder: none, goodbye } = await waiter.observe();
  assert.deepEqual([none, goodbye?.process, goodbye?.word], [null, 'one', 'left']);
  assert.equal(await waiter.claim(), true);
});

test('shards of a cluster that share a slot have one lease, others each their own', async () => {
  const named = (server: LeaseServer, shard: string, process: string): Lease =>
    new Lease('target', server.dialer, shard, process, { regain: () => Promise.resolve(), lost: () => undefined });
  const server = new LeaseServer(clock, 'a server');
  const holder = named(server, 'slots-0@0-5460', 'one');
  await holder.open('waits');
  assert.equal(await holder.claim(), true);
  for (const [shard, free] of [
    ['slots-5460@5460-10922', false],
    ['slots-5461@5461-10922', true],
    ['slots-7@7,9000', false],
    ['slots-9@nonsense-99999', true],
    ['cache-0', true],
  ] as const) {
    const other = named(server, shard, shard);
    await other.open('waits');
    assert.equal(await other.claim(), free, shard);
    await other.release('clean');
    other.close();
  }
});

test('a process that waits sees where the holder serves, and each sees where the others answer as Sentinels', async () => {
  const server = new LeaseServer(clock, 'a server');
  const [holder, waiter] = [at(server, 'one'), at(server, 'two')];
  holder.places = { service: '', sentinel: '[fd00::1]:26379' };
  waiter.places = { service: '', sentinel: '10.0.0.2:26379' };
  await holder.open('waits');
  await waiter.open('waits');
  assert.equal(await holder.claim(), true);
  assert.deepEqual((await waiter.observe()).holder?.places, { service: '', sentinel: '[fd00::1]:26379' });
  await holder.announce({ service: '[fd00::1]:6379', sentinel: '[fd00::1]:26379' });
  await holder.publishNote('note');
  const view = await waiter.observe();
  assert.deepEqual(view.holder?.places, { service: '[fd00::1]:6379', sentinel: '[fd00::1]:26379' });
  assert.equal(view.holder.note, 'note');
  const sentinels = async (lease: Lease): Promise<string[]> =>
    (await lease.others.present()).map(({ places }) => places.sentinel);
  assert.deepEqual(await sentinels(holder), ['10.0.0.2:26379']);
  assert.deepEqual(await sentinels(waiter), ['[fd00::1]:26379']);
  await clock.advance(3_000);
  assert.deepEqual(await sentinels(holder), [], 'one that is silent is not there');
  await holder.release('clean');
  assert.deepEqual(await sentinels(waiter), [], 'nor is one that has released the lease');
});

test('a process without such addresses has the same name as before', async () => {
  const { server, waiter } = await two();
  const names = [...server.callers.values()].map(({ name }) => name);
  assert.deepEqual(names, ['shadow-proxy-lease:a:one:holds:', 'shadow-proxy-lease:a:two:waits:']);
  assert.deepEqual((await waiter.observe()).holder?.places, { service: '', sentinel: '' });
});

test('a holder ends data connections of other processes, whatever follows their names, and keeps its own', async () => {
  const { server, holder } = await two();
  const kept = ['shadow-proxy:a:one', 'shadow-proxy:a:one:cart@10.0.0.7,+3', 'shadow-proxy:b:two:10.0.0.7', 'cart'];
  const ended = ['shadow-proxy:a:two', 'shadow-proxy:a:two:10.0.0.7', 'shadow-proxy:a:one2:10.0.0.7', 'shadow-proxy:a'];
  for (const name of [...kept, ...ended]) {
    await at(server, 'data').open('waits');
    [...server.callers.values()].at(-1)!.name = name;
  }
  await holder.others.end(await holder.others.list());
  const names = [...server.callers.values()].map(({ name }) => name);
  assert.deepEqual(
    names.filter((name) => !name.startsWith('shadow-proxy-lease:')),
    kept,
  );
});
