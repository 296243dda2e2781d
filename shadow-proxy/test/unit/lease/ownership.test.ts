/** Who has the shard, and until when it is certain: to the millisecond, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LeaseError } from '../../../src/lease/lease.js';
import { Ownership, type Sight } from '../../../src/lease/ownership.js';
import { FakeClock, watched } from '../../support/fake-clock.js';
import { LeaseServer } from '../../support/lease-server.js';

const clock = FakeClock.install();
// Looks come each 250 ms, and not a little earlier.
Math.random = () => 1;

interface Setting {
  readonly source: LeaseServer;
  readonly target: LeaseServer;
  candidate(others?: number): { readonly ownership: Ownership; lost(): LeaseError | null };
  both(change: (server: LeaseServer) => void): void;
}

function setting(): Setting {
  const [source, target] = ['source', 'target'].map((label) => new LeaseServer(clock, label));
  target.runId = 't'.repeat(40);
  return {
    ...{ source, target },
    candidate(others = 0) {
      let reason: LeaseError | null = null;
      const dialers = { source: source.dialer, target: target.dialer };
      const ownership = new Ownership({ shard: 'a', dialers, others, lost: (lost) => (reason = lost) });
      return { ownership, lost: () => reason };
    },
    both(change) {
      change(source);
      change(target);
    },
  };
}

const needed = (): Promise<['source']> => Promise.resolve(['source']);

/** Resolves once it has the shard. */
async function owner({ candidate }: Setting, others = 0): Promise<ReturnType<Setting['candidate']>> {
  const one = candidate(others);
  const acquired = one.ownership.acquire({ standby: false, needed });
  await clock.settle();
  await acquired;
  return one;
}

const holds = ({ leases }: Ownership): boolean => leases.source.held && leases.target.held;

test('a standby takes over 2,000 ms after a holder vanished without a word', async () => {
  const scene = setting();
  const first = await owner(scene);
  const second = scene.candidate();
  const acquired = watched(second.ownership.acquire({ standby: true, needed }));
  await clock.advance(1_000);
  first.ownership.close();
  // It looks at this moment: from then on nobody has it.
  await clock.advance(250);
  await clock.advance(1_999);
  assert.equal(acquired.state, 'pending');
  await clock.advance(1);
  assert.equal(acquired.state, 'fulfilled');
  assert.deepEqual([holds(second.ownership), second.ownership.predecessor?.clean], [true, false]);
  second.ownership.close();
});

test('the first in line ends a silent holder and takes over at its next look, though another saw it before', async () => {
  const scene = setting();
  const first = scene.candidate();
  const takeover = watched(first.ownership.acquire({ standby: true, needed }));
  await clock.advance(50);
  scene.both((server) => server.hold('a'));
  await clock.advance(50);
  const second = scene.candidate();
  const other = watched(second.ownership.acquire({ standby: true, needed }));
  // The second looks at 3,100 ms, 50 ms after the holder is silent, and the first at 3,250 ms.
  await clock.advance(3_000);
  assert.ok(scene.source.words.includes('holds'), 'the second leaves it to the first');
  await clock.advance(400);
  assert.deepEqual([takeover.state, other.state, holds(first.ownership)], ['fulfilled', 'pending', true]);
  first.ownership.close();
  second.ownership.close();
});

test('a standby that could not serve lets those behind it take over, and is in line again when it could', async () => {
  for (const end of [
    (scene: Setting) => scene.both((server) => server.cut(1)),
    // It is silent from the start.
    () => undefined,
  ]) {
    const scene = setting();
    scene.both((server) => server.hold('a'));
    const [first, second] = [scene.candidate(), scene.candidate()];
    let problem: Error | null = new Error('the address is in use');
    const cannotServe = (): Promise<Error | null> => Promise.resolve(problem);
    const takeover = watched(first.ownership.acquire({ standby: true, needed, cannotServe }));
    await clock.advance(50);
    const other = watched(second.ownership.acquire({ standby: true, needed }));
    await clock.advance(1_000);
    end(scene);
    await clock.advance(3_000);
    assert.deepEqual([takeover.state, other.state, holds(second.ownership)], ['pending', 'fulfilled', true]);
    problem = null;
    await clock.advance(500);
    assert.deepEqual(scene.source.words, ['waits', 'holds']);
    first.ownership.close();
    second.ownership.close();
  }
});

test('a standby that lacks a server steps aside as soon as nobody holds the lease', async () => {
  const scene = setting();
  scene.source.hold('a');
  scene.target.refuses = true;
  const first = scene.candidate();
  const acquired = watched(
    first.ownership.acquire({ standby: true, needed: () => Promise.resolve(['source', 'target']) }),
  );
  await clock.advance(500);
  assert.deepEqual(scene.source.words, ['holds', 'waits']);
  scene.source.cut(1);
  await clock.advance(750);
  assert.deepEqual([acquired.state, scene.source.words], ['pending', ['aside']]);
  first.ownership.close();
});

test('it does so at its next look, 250 ms later at most, after one that said goodbye', async () => {
  const scene = setting();
  const first = await owner(scene);
  await first.ownership.publishNote('note1');
  const second = scene.candidate();
  const acquired = watched(second.ownership.acquire({ standby: true, needed }));
  await clock.advance(1_000);
  const released = watched(first.ownership.release(true));
  await clock.advance(249);
  assert.equal(acquired.state, 'pending');
  await clock.advance(1);
  assert.equal(acquired.state, 'fulfilled');
  const { process } = first.ownership;
  assert.deepEqual(second.ownership.predecessor, { process, clean: true, note: 'note1' });
  // The next one has ended its connections.
  await clock.advance(50);
  assert.equal(released.state, 'fulfilled');
  second.ownership.close();
});

test('a word of goodbye stays for 1,000 ms where the one that waits cannot serve, and does not count afterwards', async () => {
  const scene = setting();
  const first = await owner(scene);
  const second = scene.candidate();
  let problem: Error | null = new Error('the address is in use');
  const cannotServe = (): Promise<Error | null> => Promise.resolve(problem);
  const acquired = watched(second.ownership.acquire({ standby: true, needed, cannotServe }));
  await clock.advance(1_000);
  const released = watched(first.ownership.release(true));
  await clock.advance(999);
  assert.equal(released.state, 'pending');
  await clock.advance(1);
  assert.equal(released.state, 'fulfilled');
  // Another process may have served and ended since then.
  problem = null;
  await clock.advance(500);
  assert.equal(acquired.state, 'fulfilled');
  assert.deepEqual(second.ownership.predecessor, { process: first.ownership.process, clean: false, note: '' });
  second.ownership.close();
});

test('a lease whose connections were lost for 1,999 ms is taken again, for 2,000 ms is lost', async () => {
  for (const [cutAfter, kept] of [
    [249, true],
    [250, false],
  ] as const) {
    const scene = setting();
    const { ownership, lost } = await owner(scene);
    await clock.advance(cutAfter);
    scene.both((server) => {
      server.refuses = true;
      server.cut();
    });
    // It tries each 250 ms, and succeeds the seventh time.
    await clock.advance(6 * 250 + 1);
    assert.deepEqual([holds(ownership), lost()], [false, null]);
    scene.both((server) => (server.refuses = false));
    await clock.advance(249);
    assert.equal(lost() === null, kept, `${cutAfter + 1_750} ms`);
    assert.equal(holds(ownership), kept);
    if (!kept) assert.match(lost()!.message, /was lost at the (source|target) .* for so long/);
    ownership.close();
  }
});

test('a lease that was lost at one server for any time is taken again, for the other one vouches', async () => {
  const scene = setting();
  const { ownership, lost } = await owner(scene);
  await clock.advance(100);
  scene.source.refuses = true;
  scene.source.cut();
  await clock.advance(30_000);
  assert.deepEqual([ownership.leases.source.held, ownership.leases.target.held, lost()], [false, true, null]);
  scene.source.refuses = false;
  await clock.advance(250);
  assert.deepEqual([holds(ownership), lost()], [true, null]);
  ownership.close();
});

test('where others wait, that is so if they have waited at the other server, or would need its lease, too', async () => {
  const CASES: readonly [
    string,
    'source' | 'target',
    (target: LeaseServer) => void,
    (target: LeaseServer) => void,
    boolean,
  ][] = [
    ['nobody has waited', 'source', () => undefined, () => undefined, false],
    ['it has waited', 'source', (other) => other.wait('a'), (other) => other.look(), true],
    ['it has waited, and is silent', 'source', (other) => other.wait('a'), () => undefined, false],
    ['it came later', 'source', () => undefined, (other) => other.wait('a'), false],
    ['the shard does not need the server', 'target', () => undefined, () => undefined, true],
  ];
  for (const [title, side, before, after, isKept] of CASES) {
    const scene = setting();
    const { ownership, lost } = await owner(scene, 1);
    const server = scene[side];
    before(scene.target);
    await clock.advance(1_100);
    server.refuses = true;
    server.cut();
    await clock.advance(5_000);
    after(scene.target);
    server.refuses = false;
    await clock.advance(250);
    assert.deepEqual([holds(ownership), lost() === null], [isKept, isKept], title);
    ownership.close();
  }
});

test('not where the lease at that one is younger than the loss', async () => {
  const scene = setting();
  const { ownership, lost } = await owner(scene);
  await clock.advance(100);
  for (const server of [scene.source, scene.target]) {
    server.refuses = true;
    server.cut();
  }
  // Another process of the server: nobody had it there, and nobody can tell of the other one.
  scene.target.runId = 'u'.repeat(40);
  await clock.advance(3_000);
  scene.target.refuses = false;
  await clock.advance(250);
  assert.deepEqual([ownership.leases.target.held, lost()], [true, null]);
  scene.source.refuses = false;
  await clock.advance(250);
  assert.match(lost()!.message, /was lost at the source/);
  ownership.close();
});

test('a server that restarted is no loss, however long it took', async () => {
  const scene = setting();
  const { ownership, lost } = await owner(scene);
  scene.both((server) => {
    server.refuses = true;
    server.cut();
  });
  await clock.advance(60_000);
  scene.source.runId = 'x'.repeat(40);
  scene.target.runId = 'y'.repeat(40);
  scene.both((server) => (server.refuses = false));
  await clock.advance(250);
  assert.deepEqual([holds(ownership), lost()], [true, null]);
  ownership.close();
});

test('who took the lease from another keeps it for 2,250 ms before it gives it back', async () => {
  const scene = setting();
  const first = await owner(scene);
  const second = scene.candidate();
  const taken = second.ownership.acquire({ standby: true, takeOver: true, needed });
  await clock.settle();
  await taken;
  const since = clock.now;
  const released = watched(second.ownership.release(true));
  await clock.advance(since + 2_249 - clock.now);
  assert.deepEqual([released.state, holds(second.ownership)], ['pending', true]);
  await clock.advance(1);
  assert.equal(released.state, 'fulfilled');
  assert.match(first.lost()?.message ?? '', /has held the lease/);
});

test('whether the lease is held is asked for 1,000 ms at most, and a server that says nothing is believed', async () => {
  const scene = setting();
  const { ownership, lost } = await owner(scene);
  scene.both((server) => (server.silent = true));
  const checked = watched(ownership.check());
  await clock.advance(999);
  assert.equal(checked.state, 'pending');
  await clock.advance(1);
  assert.deepEqual([checked.state, lost()], ['fulfilled', null]);
  ownership.close();
});

test('a holder lets its servers hear of it each 1,000 ms', async () => {
  const scene = setting();
  const { ownership } = await owner(scene);
  const since = ownership.leases.source.tenure!.aliveAt;
  await clock.advance(999);
  assert.equal(ownership.leases.source.tenure!.aliveAt, since);
  await clock.advance(1);
  assert.equal(ownership.leases.source.tenure!.aliveAt, since + 1_000);
  ownership.close();
});

test('a new note is known when the one that waits says so: at its next look', async () => {
  const scene = setting();
  const first = await owner(scene);
  const second = scene.candidate();
  void second.ownership.acquire({ standby: true, needed }).catch(() => undefined);
  await clock.advance(1_000);
  await first.ownership.publishNote('note2');
  const known = watched(first.ownership.waitForNote('note2'));
  await clock.advance(200);
  assert.equal(known.state, 'pending');
  await clock.advance(100);
  assert.deepEqual([known.state, known.value], ['fulfilled', []]);
  for (const each of [second, first]) each.ownership.close();
});

test('one that could not serve in the new stages does not say so, and is named after a second', async () => {
  const scene = setting();
  const first = await owner(scene);
  const second = scene.candidate();
  let able = false;
  const knows = (): Promise<boolean> => Promise.resolve(able);
  void second.ownership.acquire({ standby: true, needed, knows }).catch(() => undefined);
  await clock.advance(1_000);
  await first.ownership.publishNote('note2');
  const late = watched(first.ownership.waitForNote('note2'));
  await clock.advance(999);
  assert.equal(late.state, 'pending');
  await clock.advance(100);
  assert.match(String(late.value), /^127\.0\.0\.1:\d+$/);
  able = true;
  const known = watched(first.ownership.waitForNote('note2'));
  await clock.advance(300);
  assert.deepEqual(known.value, []);
  for (const each of [second, first]) each.ownership.close();
});

test('its word at one of both servers is enough, and nobody is waited for where nobody waits', async () => {
  const scene = setting();
  const first = await owner(scene);
  await first.ownership.publishNote('note2');
  assert.deepEqual(await first.ownership.waitForNote('note2'), []);
  const second = scene.candidate();
  void second.ownership.acquire({ standby: true, needed }).catch(() => undefined);
  await clock.advance(1_000);
  // What it says at the target does not arrive.
  const waiter = [...scene.target.callers.values()].find(({ name }) => name.includes(':waits:'))!;
  waiter.name = waiter.name.replace('note2', 'note1');
  const known = watched(first.ownership.waitForNote('note2'));
  await clock.settle();
  assert.deepEqual([known.state, known.value], ['fulfilled', []]);
  for (const each of [second, first]) each.ownership.close();
});

test('a look says whether the holder is down: it is silent, or has ended without releasing the lease', async () => {
  const scene = setting();
  const first = await owner(scene);
  const { process } = first.ownership;
  const second = scene.candidate();
  const sights: Sight[] = [];
  const looked = (sight: Sight): void => void sights.push(sight);
  const last = (): [string | undefined, boolean | undefined] => [sights.at(-1)?.holder?.process, sights.at(-1)?.isDown];
  const acquired = watched(second.ownership.acquire({ standby: true, needed, looked }));
  await clock.advance(500);
  assert.deepEqual(last(), [process, false]);
  first.ownership.close();
  await clock.advance(250);
  assert.deepEqual(last(), [undefined, true], 'it has ended without a word');
  await clock.advance(2_500);
  assert.equal(acquired.state, 'fulfilled');

  const third = scene.candidate();
  const waits = watched(third.ownership.acquire({ standby: true, needed, looked }));
  await clock.advance(500);
  assert.deepEqual(last(), [second.ownership.process, false]);
  void second.ownership.release(true);
  await clock.advance(250);
  assert.deepEqual(last(), [undefined, false], 'it has released the lease');
  await clock.advance(1_000);
  assert.equal(waits.state, 'fulfilled');
  third.ownership.close();
});

test('a holder that says nothing is down when it was silent for 3 s', async () => {
  const scene = setting();
  scene.both((server) => server.hold('a'));
  const second = scene.candidate();
  const sights: Sight[] = [];
  const acquire = { standby: true, needed, looked: (sight: Sight) => void sights.push(sight) };
  const acquired = watched(
    second.ownership.acquire({ ...acquire, cannotServe: () => Promise.resolve(new Error('not now')) }),
  );
  await clock.advance(2_900);
  assert.deepEqual([sights.at(-1)?.holder?.process, sights.at(-1)?.isDown], ['stalled', false]);
  await clock.advance(600);
  assert.deepEqual([sights.at(-1)?.holder?.process, sights.at(-1)?.isDown], ['stalled', true]);
  assert.equal(acquired.state, 'pending');
  second.ownership.close();
});

test('a word of goodbye counts where the shard needs the server: at another one it may be that of an earlier holder', async () => {
  for (const [sides, clean] of [
    [['source'], true],
    [['target'], false],
    [['source', 'target'], true],
  ] as const) {
    const scene = setting();
    for (const side of sides) scene[side].goodbye('a', 'clean');
    const { ownership } = await owner(scene);
    assert.deepEqual(ownership.predecessor, { process: 'gone', clean, note: clean ? 'note1' : '' }, sides.join());
    ownership.close();
  }
});

test('a word of goodbye counts where it is the same at both servers that the shard needs', async () => {
  for (const [processes, clean] of [
    [['one', 'one'], true],
    [['one', 'two'], false],
  ] as const) {
    const scene = setting();
    scene.source.goodbye('a', 'clean', processes[0]);
    scene.target.goodbye('a', 'clean', processes[1]);
    const { ownership } = scene.candidate();
    const acquired = ownership.acquire({ standby: false, needed: () => Promise.resolve(['source', 'target']) });
    await clock.settle();
    await acquired;
    assert.equal(ownership.predecessor?.clean, clean, processes.join());
    ownership.close();
  }
});

test('the next holder ends the word of goodbye, also at a server that it reaches later', async () => {
  const scene = setting();
  scene.source.goodbye('a', 'clean');
  scene.target.goodbye('a', 'clean');
  scene.target.refuses = true;
  const { ownership } = await owner(scene);
  assert.deepEqual([scene.source.words, scene.target.words], [['holds'], ['clean']]);
  scene.target.refuses = false;
  await clock.advance(500);
  assert.deepEqual([scene.source.words, scene.target.words], [['holds'], ['holds']]);
  ownership.close();
});

test('who releases the lease knows that nobody takes over where the server that the shard needs shows none that waits', async () => {
  const CASES: readonly [string, (scene: Setting) => void, boolean][] = [
    ['nobody waits', () => undefined, false],
    ['one waits', ({ source }) => source.wait('a'), true],
    ['the server does not answer', ({ source }) => (source.silent = true), true],
    ['the other server does not answer', ({ target }) => (target.silent = true), false],
  ];
  for (const [title, before, mayBeFollowed] of CASES) {
    const scene = setting();
    const { ownership } = await owner(scene);
    before(scene);
    const released = watched(ownership.release(true));
    await clock.advance(1_500);
    assert.deepEqual([released.state, released.value], ['fulfilled', mayBeFollowed], title);
  }
});

test('a server that hangs is not asked for the other Sentinels for longer than 1,000 ms', async () => {
  const scene = setting();
  const first = await owner(scene);
  const dialers = { source: scene.source.dialer, target: scene.target.dialer };
  const second = new Ownership({ shard: 'a', dialers, sentinel: '10.0.0.2:26379', lost: () => undefined });
  void second.acquire({ standby: true, needed }).catch(() => undefined);
  await clock.advance(250);
  assert.deepEqual(await first.ownership.sentinels(), ['10.0.0.2:26379']);
  scene.source.silent = true;
  const asked = watched(first.ownership.sentinels());
  await clock.advance(999);
  assert.equal(asked.state, 'pending');
  await clock.advance(1);
  assert.equal(asked.state, 'fulfilled');
  scene.target.silent = true;
  const unknown = first.ownership.sentinels();
  await clock.advance(2_000);
  assert.equal(await unknown, null, 'no server says');
  second.close();
  first.ownership.close();
});
