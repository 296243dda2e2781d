/**
 * Rule 5: commands of a connection that was lost do not run after what the proxy sends next.
 *
 * Needs real sockets: commands in a kernel's buffer that a server runs after its client has left.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Link } from '../../../src/local/relay.js';
import { until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene } from './scene.js';

// Few enough that all of one client are in flight at once.
const COUNT = 40;
const PADDING = 'x'.repeat(2_500);

/** More than a server reads of a connection at a time, so that another connection's commands can come between. */
const writes = (generation: string): string[][] =>
  Array.from({ length: COUNT }, (_, i) => [
    ['SET', `s:${i}`, `${generation}:${i}:${PADDING}`],
    ['RPUSH', `l:${i % 10}`, generation],
    ['INCR', 'n'],
  ]).flat();

/** The state of the zombies' keys is the newer one, on both servers; checked again when nothing can come any more. */
async function assertNewer(scene: Scene): Promise<void> {
  await scene.assertEqual();
  assert.match((await scene.client({ of: scene.target }).get('s:7')) ?? '', /^new:7:/);
  assert.deepEqual(scene.shard.snapshot().mismatches, {});
}

/** What was held arrives, as far as the server still takes it. */
async function letThemCome(scene: Scene, links: readonly Link[]): Promise<void> {
  scene.toSource.release();
  scene.toTarget.release();
  for (const link of links) link.release();
  await until(() => links.every((link) => link.ended || link.waiting('up') === 0));
  for (const of of [scene.source, scene.target]) await scene.client({ of }).ping();
}

test('effects that are still under way to the mirror when its connection is lost never run', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.pipeline(writes('first'));
    await scene.shard.settled();
    for (const link of scene.toTarget.links) link.hold('up');
    await wire.pipeline(writes('old'));
    await until(() => scene.toTarget.waiting('up') > COUNT * PADDING.length);
    const lost = await scene.toTarget.cutClients();
    await wire.pipeline(writes('new'));
    await assertNewer(scene);
    await letThemCome(scene, lost);
    await assertNewer(scene);
  });
});

test('effects that the mirror has received and not read when its connection is lost', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.pipeline(writes('first'));
    await scene.shard.settled();
    await scene.target.kill('SIGSTOP');
    const before = scene.toTarget.passed('up');
    await wire.pipeline(writes('old'));
    await until(() => scene.toTarget.passed('up') > before + COUNT * PADDING.length);
    await scene.toTarget.cutClients();
    await wire.pipeline(writes('new'));
    await scene.target.kill('SIGCONT');
    await assertNewer(scene);
  });
});

/** Sends the commands and loses the connection to the authority before any is answered. */
async function loseAuthority(scene: Scene, wire: Wire, arrived: () => boolean): Promise<readonly Link[]> {
  wire.sendBytes(
    Buffer.concat(
      writes('old').map((args) =>
        Buffer.from(`*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`),
      ),
    ),
  );
  await until(arrived);
  const lost = await scene.toSource.cutClients();
  await wire.closed;
  return lost;
}

test('commands that are still under way to the authority when its connection is lost never run', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.pipeline(writes('first'));
    await scene.shard.settled();
    for (const link of scene.toSource.links) link.hold('up');
    const lost = await loseAuthority(scene, wire, () => scene.toSource.waiting('up') > COUNT * PADDING.length);
    await (await scene.wire()).pipeline(writes('new'));
    await assertNewer(scene);
    await letThemCome(scene, lost);
    await assertNewer(scene);
  });
});

test('commands that the authority has received and not read when its connection is lost', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.pipeline(writes('first'));
    await scene.shard.settled();
    await scene.source.kill('SIGSTOP');
    const before = scene.toSource.passed('up');
    await loseAuthority(scene, wire, () => scene.toSource.passed('up') > before + COUNT * PADDING.length);
    const again = await scene.wire();
    const replies = again.pipeline(writes('new'));
    await scene.source.kill('SIGCONT');
    await replies;
    // Whichever ran last on the authority, both servers agree on it.
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('commands of a proxy that was killed do not run after those of the next', async () => {
  for (const side of ['toSource', 'toTarget'] as const) {
    await withScene({}, async (scene) => {
      const wire = await scene.wire();
      await wire.pipeline(writes('first'));
      await scene.shard.settled();
      const relay = scene[side];
      for (const link of relay.links) link.hold('up');
      wire.pipeline(writes('old')).catch(() => undefined);
      await until(() => relay.waiting('up') > COUNT * PADDING.length);
      const lost = relay.links;
      for (const link of lost) link.keepServerEnd();
      await scene.stopShard();
      await scene.startShard();
      await (await scene.wire()).pipeline(writes('new'));
      await assertNewer(scene);
      await letThemCome(scene, lost);
      await assertNewer(scene);
    });
  }
});

test('a stage does not change while a command of a lost connection may still run', async () => {
  await withScene({ default: { stage: 'off' } }, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('PING');
    for (const link of scene.toSource.links) link.hold('up');
    wire.send('SET', 's:1', 'never answered');
    await until(() => scene.toSource.waiting('up') > 20);
    const lost = await scene.toSource.cutClients();
    await wire.closed;
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    await letThemCome(scene, lost);
    await scene.assertEqual();
  });
});
