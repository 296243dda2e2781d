/**
 * Rule 20: connections that go silent without closing, one, some and all, while new ones work.
 *
 * Needs real sockets: connections that go silent beside CLIENT PAUSE, scripts and replies that take seconds.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Direction, Link } from '../../../src/local/relay.js';
import { patienceMs } from '../../support/patience.js';
import { redisSince } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { spinFor } from '../../support/spin.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene } from '../rules/scene.js';

/** Within so long clients are served again; on a quiet machine, it is below 3 s. */
const SERVED_MS = 6_000;

/** Silences what is open now. */
function silence(links: readonly Link[], ...directions: readonly Direction[]): void {
  for (const link of links) link.hold(...directions);
}

/** Asks with new connections until one is answered, as a client that reconnects; how long that took, in ms. */
async function reconnects(scene: Scene, since: number): Promise<number> {
  for (;;) {
    const wire = await scene.wire();
    const answer = await Promise.race([
      wire.ask('INCR', 'alive').catch(() => null),
      sleep(patienceMs(SERVED_MS), null),
    ]);
    wire.destroy();
    if (answer !== null) return performance.now() - since;
    assert.ok(performance.now() - since < patienceMs(SERVED_MS), 'no client is served');
    await sleep(20);
  }
}

const closedIn = async (wire: Wire, since: number): Promise<number> => {
  const closed = await Promise.race([wire.closed.then(() => true), sleep(patienceMs(SERVED_MS), false)]);
  assert.ok(closed, 'a client whose command nobody will answer is not told');
  return performance.now() - since;
};

for (const [what, directions] of [
  ['both ways', ['up', 'down']],
  ['towards the server', ['up']],
  ['towards the proxy', ['down']],
] as const) {
  test(`the clients' connection to the source goes silent ${what}`, async (t) => {
    await withScene({}, async (scene) => {
      const [a, b] = [await scene.wire(), await scene.wire()];
      await a.pipeline([
        ['SET', 'k', 1],
        ['RPUSH', 'l', 'a'],
      ]);
      const before = new Map(scene.toSource.links.map((link) => [link, link.passed.up]));
      await a.ask('ECHO', 'x'.repeat(10_000));
      const lane = scene.toSource.links.filter((link) => link.passed.up - before.get(link)! > 10_000);
      assert.equal(lane.length, 1);
      silence(lane, ...directions);
      const since = performance.now();
      a.send('APPEND', 'k', '!');
      b.send('GET', 'k');
      const took = Math.max(await closedIn(a, since), await closedIn(b, since), await reconnects(scene, since));
      t.diagnostic(`clients were served again after ${Math.round(took)} ms`);
      await scene.assertEqual();
      assert.equal(scene.shard.snapshot().source.silentConnections, 1);
      assert.match((await scene.client().get('k')) ?? '', /^1!?$/);
    });
  });
}

for (const side of ['source', 'target'] as const) {
  test(`every connection to the ${side} goes silent, and new ones work`, async (t) => {
    await withScene({ default: { stage: side === 'source' ? 'shadow' : 'live' } }, async (scene) => {
      const wire = await scene.wire();
      await wire.ask('SET', 'k', 1);
      silence((side === 'source' ? scene.toSource : scene.toTarget).links, 'up', 'down');
      const since = performance.now();
      wire.send('INCR', 'k');
      const took = Math.max(await closedIn(wire, since), await reconnects(scene, since));
      t.diagnostic(`clients were served again after ${Math.round(took)} ms`);
      await until(() => scene.shard.snapshot()[side].silentMs === 0, SERVED_MS);
      await scene.assertEqual();
    });
  });
}

test('every connection to the mirror goes silent: nothing is lost, and clients notice nothing', async (t) => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('SET', 'k', 1);
    await scene.shard.settled();
    silence(scene.toTarget.links, 'up', 'down');
    const since = performance.now();
    await wire.pipeline(Array.from({ length: 100 }, (_, i) => ['SET', `k:${i}`, i]));
    await scene.shard.settled(2 * SERVED_MS);
    t.diagnostic(`the mirror had everything after ${Math.round(performance.now() - since)} ms`);
    await scene.assertEqual();
    assert.equal(await wire.ask('PING'), '+PONG');
  });
});

test('a client that blocks stays connected, and is closed when its connection goes silent while an element is delivered to it', async (t) => {
  await withScene({}, async (scene) => {
    const [patient, unlucky, pusher] = [await scene.wire(), await scene.wire(), await scene.wire()];
    await Promise.all([patient.ask('PING'), unlucky.ask('PING')]);
    patient.send('BLPOP', 'p', 0);
    const source = scene.client({ of: scene.source });
    const blocked = (count: number): Promise<void> =>
      until(async () => (await source.info('clients')).includes(`blocked_clients:${count}`));
    await blocked(1);
    const before = new Set(scene.toSource.links);
    unlucky.send('BLPOP', 'u', 0);
    await blocked(2);
    // Neither may be closed: a silent connection would be by now.
    await sleep(2_000);
    const links = scene.toSource.links.filter((link) => !before.has(link));
    assert.equal(links.length, 1);
    assert.deepEqual(
      [patient.ended, unlucky.ended, scene.shard.snapshot().source.silentConnections],
      [false, false, 0],
    );
    silence(links, 'down');
    const since = performance.now();
    assert.equal(await pusher.ask('RPUSH', 'u', 'x'), ':1');
    t.diagnostic(`the client was told after ${Math.round(await closedIn(unlucky, since))} ms`);
    assert.deepEqual(
      await pusher.pipeline([
        ['RPUSH', 'u', 'next'],
        ['RPUSH', 'p', 'y'],
      ]),
      [':1', ':1'],
    );
    assert.match(await patient.frame(), /y$/);
    await scene.assertEqual();
    assert.equal(scene.shard.snapshot().reservations.oldestMs, 0);
  });
});

test('what is slow for a reason is not silent: a pause, a script, a reply and a value that take seconds', async () => {
  await withScene({ limits: { downAfterMs: 20_000 } }, async (scene) => {
    const direct = scene.client({ of: scene.source });
    const [wire, other] = [await scene.wire(), await scene.wire()];
    await wire.ask('SET', 'k', 1);
    await direct.call('CLIENT', 'PAUSE', '2000', 'WRITE');
    wire.send('INCR', 'k');
    assert.equal(await other.ask('PING'), '+PONG');
    assert.equal(await wire.frame(), ':2');
    assert.deepEqual(
      await Promise.all([
        wire.ask((await redisSince(7, 0)) ? 'EVAL_RO' : 'EVAL', spinFor(2), 1, 'k'),
        other.ask('GET', 'none'),
      ]),
      ['$4\r\nspun', '$-1'],
    );
    await scene.shard.settled();
    // 2 MB at 1 MB/s, each way.
    scene.toSource.bytesPerSecond = 1_000_000;
    assert.equal(await wire.ask('SET', 'large', 'x'.repeat(2_000_000)), '+OK');
    assert.equal((await wire.ask('GET', 'large')).length, '$2000000\r\n'.length + 2_000_000);
    scene.toSource.bytesPerSecond = Infinity;
    assert.equal(await wire.ask('INCR', 'k'), ':3');
    const { source, target } = scene.shard.snapshot();
    assert.deepEqual(
      [source.silentConnections, target.silentConnections, wire.ended, other.ended],
      [0, 0, false, false],
    );
    await scene.assertEqual();
  });
});
