/** When a stage change is refused: a test holds a connection, or a server refuses, just at that moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld, type KeptClient } from '../../kept/world.js';

const FLIP_MS = 200;
const LIMITS = { limits: { flipMs: FLIP_MS, downAfterMs: 1_000 } };
/** Longer than commands may be held. */
const LATE_MS = 2 * FLIP_MS;
const SLACK_MS = 30;
/** A copy takes several of these. */
const SLOW_MS = 20;

/** The shard serves, and both servers have a key. */
async function begin(kept: KeptWorld): Promise<KeptClient> {
  const client = await kept.client();
  await client.ask('SET k old');
  await settled(kept, 'old');
  return client;
}

const settled = (kept: KeptWorld, value: string): Promise<void> =>
  kept.until(() => kept.isClean && kept.values('0 k').every((each) => each === value), `both have ${value}`);

const isHeld = ({ proxy }: KeptWorld): boolean => proxy.parts!.router.default.position.held;

function slowly({ world: { network } }: KeptWorld): void {
  network.options = { ...network.options, delayMs: [SLOW_MS, SLOW_MS] };
}

/** What comes of a change, and after what time. */
async function outcome(
  kept: KeptWorld,
  change: ReturnType<KeptWorld['tryChange']>,
): Promise<{ readonly is: string; readonly ms: number }> {
  const { events } = kept.world;
  const since = events.now;
  await kept.until(() => change.outcome !== null, 'the change is made or refused');
  return { is: change.outcome!, ms: events.now - since };
}

test('A change that must wait longer than commands may be held is refused in time, and nothing has changed', () =>
  KeptWorld.run(async (kept) => {
    const client = await begin(kept);
    const lane = await kept.endFor(kept.source, 'SET k mark', () => client.ask('SET k mark'));
    lane.silence(LATE_MS);
    client.send('SET k new');
    await kept.until(() => kept.source.entry('0 k')!.value === 'new', 'the source has run it');
    const { is, ms } = await outcome(kept, kept.tryChange('live'));
    assert.equal(is, 'deadline');
    assert.ok(ms < FLIP_MS + SLACK_MS, `refused after ${ms} ms`);
    await kept.until(() => client.replies.length === 3, 'the client has its reply');
    await settled(kept, 'new');
    const { stage } = kept.proxy.parts!.router.default.position;
    assert.equal(stage, 'shadow');
  }, LIMITS));

test('A change waits no longer for a command that runs alone than commands may be held', () =>
  KeptWorld.run(async (kept) => {
    const client = await begin(kept);
    const lane = await kept.endFor(kept.source, 'SET k new', () => client.ask('SET k new'));
    lane.silence(LATE_MS);
    client.send('FLUSHDB');
    await kept.until(() => kept.proxy.parts!.sequencer.blocked, 'it runs alone');
    const { is, ms } = await outcome(kept, kept.tryChange('live'));
    assert.equal(is, 'deadline');
    assert.ok(ms < FLIP_MS + SLACK_MS, `refused after ${ms} ms`);
  }, LIMITS));

test('A change is refused for an effect that the mirror refuses while commands are held', () =>
  KeptWorld.run(async (kept) => {
    const client = await begin(kept);
    const mirror = await kept.endFor(kept.target, 'SET k late', () => client.ask('SET k late'));
    await settled(kept, 'late');
    mirror.other.silence(LATE_MS);
    await client.ask('SET k new');
    const change = kept.tryChange('live');
    await kept.until(() => isHeld(kept), 'commands are held');
    kept.target.model.troubles.outOfMemory = true;
    assert.equal((await outcome(kept, change)).is, 'not-clean');
    assert.equal(await client.ask('GET k'), '$new');
    kept.target.model.troubles.outOfMemory = false;
    await settled(kept, 'new');
  }));

test('A change waits for a suspect to be repaired before it holds commands', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await begin(kept);
      kept.target.model.troubles.outOfMemory = true;
      assert.equal(await client.ask('SET k new'), '+OK');
      await kept.until(() => kept.proxy.snapshot()!.suspects.total > 0, 'the key is a suspect');
      kept.target.model.troubles.outOfMemory = false;
      assert.equal((await outcome(kept, kept.tryChange('live'))).is, 'made');
      await settled(kept, 'new');
    },
    {},
    slowly,
  ));

test('A change waits until it is known what a difference means', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await begin(kept);
      kept.bypass(kept.target, 'DEL k');
      assert.equal(await client.ask('GET k'), '$old');
      const change = kept.tryChange('live');
      assert.equal((await outcome(kept, change)).is, 'made');
      await settled(kept, 'old');
    },
    {},
    slowly,
  ));

test('A change to a server that cannot be reached is refused, though nothing is to be confirmed', () =>
  KeptWorld.run(async (kept) => {
    const client = await begin(kept);
    kept.target.stop();
    assert.equal((await outcome(kept, kept.tryChange('live'))).is, 'refused');
    assert.equal(await client.ask('GET k'), '$old');
  }));

test('After a refused change the connections to a silent authority stay open', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await begin(kept);
      kept.source.stop();
      assert.equal((await outcome(kept, kept.tryChange('shadow'))).is, 'refused');
      kept.source.start(true);
      kept.target.pause(2_000);
      assert.equal(await client.ask('SET k new'), '+OK');
      await settled(kept, 'new');
    },
    { ...LIMITS, default: { stage: 'live' } },
  ));

test('No change leaves an authority that has restarted until it is accepted', () =>
  KeptWorld.run(async (kept) => {
    await begin(kept);
    kept.source.stop();
    kept.source.start(true);
    await kept.until(() => kept.proxy.condition()!.frozen !== null, 'repairs are frozen');
    await kept.pass(1_000);
    assert.equal((await outcome(kept, kept.tryChange('live'))).is, 'refused');
    kept.proxy.within(({ shard }) => void shard.acceptAuthority(null));
    await kept.until(() => kept.proxy.condition()!.frozen === null, 'it is accepted');
    await kept.until(() => kept.isClean, 'the shard is clean');
    assert.equal((await outcome(kept, kept.tryChange('live'))).is, 'made');
  }));
