/** How long a change of stage waits, and for what: to the millisecond, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sequencer } from '../../../src/pipeline/sequencer.js';
import { Router } from '../../../src/route/router.js';
import type { Side } from '../../../src/route/stage.js';
import { Flipper, type FlipContext } from '../../../src/stages/flip.js';
import { Suspects } from '../../../src/suspects/suspects.js';
import { FakeClock, watched } from '../../support/fake-clock.js';

const clock = FakeClock.install();

/** A workload in shadow, all of whose servers answer at once, unless the test says otherwise. */
function setting() {
  const never = new Promise<void>(() => undefined);
  const router = new Router([], { stage: 'shadow', percent: 100 });
  const suspects = new Suspects(router, () => undefined);
  const state = {
    /** What does not come. */
    missing: null as 'answers' | 'confirmations' | 'identity' | 'blocked' | null,
    blocked: false,
    asks: false,
    frozen: null as string | null,
    isDown: false,
    timedOut: [] as Side[],
    /** What happened, in its order. */
    did: [] as string[],
  };
  const unless = (what: typeof state.missing): Promise<void> => (state.missing === what ? never : Promise.resolve());
  const server = (side: Side): object => ({ side, up: true, identify: () => unless('identity') });
  const lanes = { quiet: () => unless('answers') };
  const mirror = {
    flush: () => undefined,
    afterAppended: (then: () => void) => void (state.missing === 'confirmations' || then()),
  };
  const sequencer = {
    router,
    servers: { source: server('source'), target: server('target') },
    lanes: { source: lanes, target: lanes },
    mirrors: { source: mirror, target: mirror },
    get blocked() {
      return state.blocked;
    },
  };
  const context = {
    sequencer: sequencer as unknown as Sequencer,
    suspects,
    clients: {
      subscribers: {
        moving: false,
        connect: () => Promise.resolve(),
        prepare: () => Promise.resolve(),
        commit: () => Promise.resolve(),
        end: () => undefined,
      },
      interrupt: () => unless('blocked'),
      waitingRoom: { onceOpen: () => undefined, open: () => void state.did.push('opened') },
    },
    sharedTarget: false,
    persist: () => Promise.resolve(void state.did.push('written')),
    moved: () => void state.did.push('moved'),
    hooks: { of: () => [] },
    suspectWorkloads: { mark: () => undefined },
    adjudicator: { asksOf: () => state.asks, allClosed: () => true },
    authorities: {
      get frozen() {
        return state.frozen;
      },
      distrusts: () => false,
    },
    isDown: () => state.isDown,
    abandon: (side: Side) => void state.timedOut.push(side),
    redact: (key: Buffer) => key.toString(),
  } as unknown as FlipContext;
  const flipper = new Flipper(context, () => 5_000);
  const change = (force = false): Promise<unknown> =>
    flipper.change({ workload: 'default', stage: 'live', force } as Parameters<Flipper['change']>[0]);
  return { state, router, suspects, flipper, change, workload: router.default };
}

for (const missing of ['answers', 'confirmations', 'identity', 'blocked'] as const) {
  test(`a flip times out after 5,000 ms without ${missing}, with nothing changed`, async () => {
    const { state, change, workload, flipper } = setting();
    state.missing = missing;
    const flip = watched(change());
    await clock.settle();
    assert.equal(workload.position.held, true);
    await clock.advance(4_999);
    assert.equal(flip.state, 'pending');
    await clock.advance(1);
    assert.equal((flip.reason as { code: string }).code, 'deadline');
    assert.deepEqual(
      [workload.position.stage, workload.position.held, workload.position.moving, flipper.flips, state.did],
      ['shadow', false, false, 0, ['opened']],
    );
  });
}

test('a flip waits while a command runs alone, and times out after 5,000 ms, before it holds any command', async () => {
  const { state, change, workload } = setting();
  state.blocked = true;
  const flip = watched(change());
  await clock.advance(4_999);
  assert.deepEqual([flip.state, workload.position.held], ['pending', false]);
  await clock.advance(1);
  assert.equal((flip.reason as { code: string }).code, 'deadline');
});

test('where all is there it needs no time: written first, then moved, then its commands go on', async () => {
  const { state, change, workload, flipper } = setting();
  const flip = watched(change());
  await clock.settle();
  assert.equal(flip.state, 'fulfilled');
  assert.deepEqual([workload.position.stage, flipper.flips, state.did], ['live', 1, ['written', 'moved', 'opened']]);
});

test('a second change is refused while one is under way', async () => {
  const { state, change } = setting();
  state.missing = 'answers';
  const first = watched(change());
  await assert.rejects(change(), { code: 'busy' });
  await clock.advance(5_000);
  assert.equal(first.state, 'rejected');
  state.missing = null;
  const third = watched(change());
  await clock.settle();
  assert.equal(third.state, 'fulfilled');
});

test('suspects have 2,000 ms to be repaired before its commands are held; then it is refused', async () => {
  const { change, suspects, workload } = setting();
  suspects.mark(0, Buffer.from('k'), workload, 'copy');
  const flip = watched(change());
  await clock.advance(1_995);
  assert.deepEqual([flip.state, workload.position.held], ['pending', false]);
  // It looks each 5 ms.
  await clock.advance(5);
  assert.equal((flip.reason as { code: string }).code, 'not-clean');
  assert.match(String(flip.reason), /1 suspect key/);
});

test('one that is repaired by then lets it go on; with --force, none is waited for', async () => {
  const { change, suspects, workload } = setting();
  suspects.mark(0, Buffer.from('k'), workload, 'copy');
  const flip = watched(change());
  await clock.advance(1_990);
  const [suspect] = suspects.all();
  suspects.clear(suspect, suspect.generation);
  await clock.advance(5);
  assert.equal(flip.state, 'fulfilled');
  const forced = setting();
  forced.suspects.mark(0, Buffer.from('k'), forced.workload, 'copy');
  const other = watched(forced.change(true));
  await clock.settle();
  assert.equal(other.state, 'fulfilled');
});

test('newer suspects have 500 ms while its commands are held, and questions about its keys as well', async () => {
  for (const mark of [
    (scene: ReturnType<typeof setting>) => scene.suspects.mark(0, Buffer.from('k'), scene.workload, 'copy'),
    (scene: ReturnType<typeof setting>) => void (scene.state.asks = true),
  ]) {
    const scene = setting();
    // It comes when those from before were looked at.
    const again = watched(scene.change());
    mark(scene);
    await clock.advance(495);
    assert.equal(again.state, 'pending');
    await clock.advance(5);
    assert.equal((again.reason as { code: string } | null)?.code, 'not-clean');
  }
});

test('an authority that is down is abandoned, and its answers are not waited for', async () => {
  const { state, change, flipper } = setting();
  state.isDown = true;
  const flip = watched(change());
  await clock.settle();
  assert.deepEqual([flip.state, [...new Set(state.timedOut)]], ['fulfilled', ['source']]);
  // No change leaves it now.
  state.timedOut.length = 0;
  flipper.down('source');
  assert.deepEqual(state.timedOut, []);
});

test('nothing is changed while the authority is not trusted', async () => {
  const { state, change } = setting();
  state.frozen = 'another process';
  await assert.rejects(change(), { code: 'refused', message: /repairs are frozen: another process/ });
});
