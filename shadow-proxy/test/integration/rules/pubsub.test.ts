/**
 * Rule 3 for subscribers: they move with their workload, and miss no message, and get none twice.
 *
 * Needs real servers: pub/sub of KeyDB and Redis during stage changes, and a target that refuses channels.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stage } from '../../../src/route/stage.js';
import { changeStage, until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene } from './scene.js';
import { needs } from '../../support/needs.js';
import { patienceMs } from '../../support/patience.js';

const MESSAGES = 10_000;

/** The numbers that a subscriber received: the last line of each message. */
const numbers = (frames: readonly string[]): number[] =>
  frames.filter((frame) => /message\r\n/.test(frame)).map((frame) => Number(frame.slice(frame.lastIndexOf('\n') + 1)));

async function subscribe(scene: Scene, protocol: number, ...command: string[]): Promise<Wire> {
  const wire = await scene.wire();
  await wire.ask('HELLO', protocol);
  await wire.ask(...command);
  return wire;
}

/** Publishes numbers to a channel until `stop`; resolves with how many. */
function publisher(wire: Wire, channel: string): { readonly sent: number; stop(): Promise<number> } {
  let sent = 0;
  let running = true;
  const done = (async () => {
    while (running || sent < MESSAGES) {
      await wire.pipeline(Array.from({ length: 50 }, () => ['PUBLISH', channel, String(sent++)]));
    }
    return sent;
  })();
  done.catch(() => undefined);
  return {
    get sent() {
      return sent;
    },
    stop: () => ((running = false), done),
  };
}

test('numbered messages arrive once and in order while their workload flips to live and back', async () => {
  await withScene({}, async (scene) => {
    const subscribers = await Promise.all([
      subscribe(scene, 2, 'SUBSCRIBE', 'n'),
      subscribe(scene, 3, 'SUBSCRIBE', 'n', 'other'),
      subscribe(scene, 2, 'PSUBSCRIBE', 'n*'),
      subscribe(scene, 3, 'PSUBSCRIBE', '?'),
    ]);
    await subscribers[1].frames(1);
    const load = publisher(await scene.wire(), 'n');
    for (const stage of ['live', 'shadow', 'live', 'rampdown', 'live', 'shadow'] as Stage[]) {
      const from = load.sent;
      await until(() => load.sent > from + 1000);
      const { heldMs } = await scene.shard.shard.changeStage({ workload: 'default', stage });
      assert.ok(heldMs < patienceMs(2_000), `held for ${heldMs} ms`);
      // They are at the authority, and nowhere else.
      const [here, away] = stage === 'shadow' ? [scene.source, scene.target] : [scene.target, scene.source];
      for (const [server, expected] of [
        [here, 4],
        [away, 0],
      ] as const) {
        await until(
          async () =>
            String(await scene.client({ of: server }).call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
              .split('\n')
              .filter(Boolean).length === expected,
        );
      }
    }
    const sent = await load.stop();
    const expected = Array.from({ length: sent }, (_, i) => i);
    for (const each of subscribers) assert.deepEqual(numbers(await each.frames(sent)), expected);
    for (const each of subscribers) {
      assert.deepEqual(each.unread, []);
      assert.match(await each.ask('PING', 'end'), /end$/);
    }
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
    await scene.assertEqual();
  });
});

test("a pattern hears another workload's messages once and in order while its own workload flips", async () => {
  const workloads = [{ name: 'flags', keys: ['flag:*'], channels: ['flags.*'], stage: 'shadow' as const }];
  await withScene({ workloads }, async (scene) => {
    const subscribers = await Promise.all([
      subscribe(scene, 2, 'PSUBSCRIBE', '*'),
      subscribe(scene, 3, 'PSUBSCRIBE', '*'),
    ]);
    const load = publisher(await scene.wire(), 'flags.n');
    for (let i = 0; i < 8; i++) {
      const from = load.sent;
      await until(() => load.sent > from + 500);
      await scene.shard.shard.changeStage({ workload: 'default', stage: i % 2 === 0 ? 'live' : 'shadow' });
    }
    const sent = await load.stop();
    const expected = Array.from({ length: sent }, (_, i) => i);
    for (const each of subscribers) assert.deepEqual(numbers(await each.frames(sent)), expected);
    for (const each of subscribers) assert.deepEqual(each.unread, []);
    await scene.assertEqual();
  });
});

test('channels move with the workload that the plan gives them to, and no others', async () => {
  const workloads = [{ name: 'flags', keys: ['flag:*'], channels: ['flags.*'] }].map((each) => ({
    ...each,
    stage: 'shadow' as const,
  }));
  await withScene({ workloads }, async (scene) => {
    const wire = await subscribe(scene, 2, 'SUBSCRIBE', 'flags.a', 'other');
    const pattern = await subscribe(scene, 3, 'PSUBSCRIBE', 'flags.*');
    const any = await subscribe(scene, 3, 'PSUBSCRIBE', '*');
    await wire.frames(1);
    const pub = await scene.wire();
    const at = async (server: Scene['source']): Promise<unknown> => [
      await scene.client({ of: server }).call('PUBSUB', 'CHANNELS'),
      await scene.client({ of: server }).call('PUBSUB', 'NUMPAT'),
    ];
    await scene.shard.shard.changeStage({ workload: 'flags', stage: 'live' });
    assert.deepEqual(
      [await at(scene.source), await at(scene.target)],
      [
        [['other'], 1],
        [['flags.a'], 1],
      ],
    );
    // What one server counts is only a part.
    assert.match(await wire.ask('SUBSCRIBE', 'more'), /:3$/);
    assert.match(await wire.ask('UNSUBSCRIBE', 'more'), /:2$/);
    for (const channel of ['flags.a', 'other']) await pub.ask('PUBLISH', channel, '1');
    assert.equal((await wire.frames(2)).length, 2);
    assert.deepEqual(numbers(await any.frames(2)), [1, 1]);
    assert.deepEqual(numbers(await pattern.frames(1)), [1]);
    // A transaction of the one workload that publishes to the other reaches its subscribers, too.
    assert.match((await pub.pipeline([['MULTI'], ['SET', 'x', 1], ['PUBLISH', 'flags.a', '2'], ['EXEC']]))[3], /^\*2/);
    assert.deepEqual(numbers([await wire.frame(), await pattern.frame(), await any.frame()]), [2, 2, 2]);
    await scene.shard.shard.changeStage({ workload: 'flags', stage: 'shadow' });
    assert.deepEqual([await at(scene.target), wire.unread], [[[], 0], []]);
    assert.equal((await wire.pipeline([['UNSUBSCRIBE'], ['PING']])).length, 2);
    await scene.assertEqual();
  });
});

test('a flip is refused when the target refuses a client’s subscriptions; the subscriber stays on the source', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  await withScene({}, async (scene) => {
    const [sharded, plain] = [
      await subscribe(scene, 3, 'SSUBSCRIBE', 's'),
      await subscribe(scene, 2, 'SUBSCRIBE', 'a'),
    ];
    const flip = scene.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    await assert.rejects(flip, {
      code: 'refused',
      message: /the target refuses a client's subscriptions: .*unknown command/,
    });
    const pub = await scene.wire();
    assert.equal(await pub.ask('SPUBLISH', 's', '1'), ':1');
    assert.equal(await pub.ask('PUBLISH', 'a', '2'), ':1');
    assert.deepEqual(numbers([await sharded.frame(), await plain.frame()]), [1, 2]);
    await until(
      async () => ((await scene.client({ of: scene.target }).call('PUBSUB', 'CHANNELS')) as string[]).length === 0,
    );
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'live', force: true });
    await sharded.closed;
    assert.equal(await pub.ask('PUBLISH', 'a', '3'), ':1');
    assert.deepEqual(numbers([await plain.frame()]), [3]);
  });
});

test('a PUBLISH that the mirror lost makes nothing suspect', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await scene.shard.settled();
    await scene.target.kill('SIGSTOP');
    for (let i = 0; i < 20; i++) assert.equal(await wire.ask('PUBLISH', 'c', 'x'), ':0');
    assert.match((await wire.pipeline([['MULTI'], ['PUBLISH', 'c', 'x'], ['SET', 'k', 1], ['EXEC']]))[3], /^\*2/);
    await until(() => scene.shard.snapshot().mirror.queuedEffects > 0);
    await scene.target.kill('SIGKILL');
    await until(() => scene.shard.snapshot().mirror.connected === false);
    await scene.target.start();
    await until(() => scene.shard.snapshot().mirror.connected);
    // The mirror restarted, so the workload is suspect, but not because of a PUBLISH.
    assert.match(scene.shard.snapshot().workloads[0].suspect ?? '', /restarted or was replaced/);
    assert.ok(scene.shard.snapshot().inconclusive['publish-lost'] > 0);
  });
});

test('messages that were published before the proxy was killed make nothing suspect', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.pipeline([['PUBLISH', 'c', 'x'], ['MULTI'], ['PUBLISH', 'c', 'y'], ['EXEC']]);
    await scene.stopShard();
    const { shard } = await scene.startShard();
    assert.equal(shard.snapshot().workloads[0].suspect, null);
  });
});

test('a flip that runs out of time leaves every subscriber where it was, and nothing at the other server', async () => {
  await withScene({ limits: { flipMs: 400 } }, async (scene) => {
    const pub = await scene.wire();
    assert.equal(await pub.ask('PUBLISH', 'a', '-'), ':0');
    const wires = await Promise.all(
      Array.from({ length: 20 }, (_, i) => subscribe(scene, 2 + (i % 2), 'SUBSCRIBE', 'a')),
    );
    // The PING of the last one's is not answered before the time is over.
    const last = scene.toSource.links.at(-1)!;
    assert.equal(await pub.ask('PUBLISH', 'a', '0'), ':20');
    last.hold('down');
    const flip = scene.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    await assert.rejects(flip, { code: 'deadline' });
    last.release();
    assert.equal(await pub.ask('PUBLISH', 'a', '1'), ':20');
    for (const wire of wires) assert.deepEqual(numbers(await wire.frames(2)), [0, 1]);
    await until(
      async () => ((await scene.client({ of: scene.target }).call('PUBSUB', 'CHANNELS')) as string[]).length === 0,
    );
    await changeStage(scene.shard.shard, { workload: 'default', stage: 'live' });
    assert.equal(await pub.ask('PUBLISH', 'a', '2'), ':20');
    for (const wire of wires) assert.deepEqual(numbers(await wire.frames(1)), [2]);
  });
});
