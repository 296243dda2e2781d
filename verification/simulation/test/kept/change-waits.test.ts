/** What a stage change waits for. A test holds a connection, which no real server does at that moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { End } from '../../world/network.js';
import { KeptWorld, type KeptClient } from '../../kept/world.js';

const HELD_MS = 300;
const ASKED_MS = 20;

/** A client, its lane to the source, and the mirror's lane. */
interface Stand {
  readonly kept: KeptWorld;
  readonly client: KeptClient;
  readonly lane: End;
  readonly mirror: End;
}

const withStand = (
  body: (stand: Stand) => Promise<void>,
  plan: Readonly<Record<string, unknown>> = {},
): Promise<void> =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    let lane!: End;
    const mirror = await kept.endFor(kept.target, 'SET mark 1', async () => {
      lane = await kept.endFor(kept.source, 'SET mark 1', () => client.ask('SET mark 1'));
    });
    await kept.until(() => kept.isClean, 'the shard is clean');
    await body({ kept, client, lane, mirror });
  }, plan);

const isHeld = ({ proxy }: KeptWorld): boolean => proxy.parts!.router.default.position.held;

test('The new authority gets no command before it has confirmed the effects of those before it', () =>
  withStand(async ({ kept, client, mirror }) => {
    mirror.other.silence(HELD_MS);
    assert.equal(await client.ask('SET n 41'), '+OK');
    const change = kept.tryChange('live');
    await kept.until(() => isHeld(kept), 'commands are held');
    assert.equal(await client.ask('INCR n'), 42);
    assert.equal(change.outcome, 'made');
    await kept.until(() => kept.isClean, 'the shard is clean');
    assert.deepEqual(kept.values('0 n'), ['42', '42']);
  }));

test('The stage changes when each connection to the old authority has its replies', () =>
  withStand(async ({ kept, client }) => {
    const other = await kept.client();
    await other.ask('HELLO 3');
    const lane = await kept.endFor(kept.source, 'GET mark', () => other.ask('GET mark'));
    lane.silence(HELD_MS);
    other.send('SET k old');
    await kept.until(() => kept.source.entry('0 k') !== undefined, 'the source has run it');
    const change = kept.tryChange('live');
    await kept.until(() => isHeld(kept), 'commands are held');
    assert.equal(await client.ask('SET k new'), '+OK');
    assert.equal(change.outcome, 'made');
    await kept.pass(HELD_MS);
    assert.deepEqual(kept.values('0 k'), ['new', 'new']);
  }));

test('The stage changes when copies have come that began while commands were held', () =>
  withStand(async ({ kept, client, mirror }) => {
    await client.ask('SET k old');
    await kept.until(() => kept.isClean, 'the shard is clean');
    kept.write(kept.target, 'k', 'wrong');
    let hasRead = false;
    kept.target.onCommand = (address, [name]) => {
      // The copy is on its way while the new authority is asked whether it is there.
      if (name === 'INFO' && hasRead) kept.endOf(kept.target, Number(address.split(':')[1])).silence(ASKED_MS);
      if (name !== 'GET' || hasRead) return;
      hasRead = true;
      mirror.other.silence(HELD_MS);
    };
    assert.equal(await client.ask('GET k'), '$old');
    const change = kept.tryChange('live', { force: true });
    await kept.until(() => isHeld(kept) && hasRead, 'commands are held');
    client.send('SET k new');
    await kept.until(() => change.outcome !== null, 'the change is over');
    await kept.pass(2 * HELD_MS);
    assert.equal(change.outcome, 'made');
    assert.deepEqual(kept.values('0 k'), ['new', 'new']);
    assert.deepEqual(client.replies.slice(-2), ['$old', '+OK']);
  }));

test('The stage changes when a command that runs alone has run', () =>
  withStand(async ({ kept, client, mirror }) => {
    const other = await kept.client();
    await other.ask('HELLO 3');
    const lane = await kept.endFor(kept.source, 'HELLO 3', async () => other.send('FLUSHDB'));
    lane.silence(HELD_MS);
    await kept.until(() => kept.proxy.parts!.sequencer.blocked, 'it is about to run alone');
    const change = kept.tryChange('live');
    await kept.pass(50);
    client.send('SET k v');
    kept.source.onCommand = (_address, [name]) => {
      if (name === 'FLUSHDB') mirror.other.silence(2 * HELD_MS);
    };
    await kept.until(() => change.outcome !== null, 'the change is over');
    await kept.pass(3 * HELD_MS);
    assert.equal(change.outcome, 'made');
    assert.deepEqual(kept.values('0 k'), ['v', 'v']);
  }));
