/**
 * Rule 6, who waits: a command that blocks keeps its place among those that wait for its keys, as it would at the
 * authority.
 *
 * Needs real servers: in which order each server serves clients that block.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Argument } from '../../../src/resp/encode.js';
import type { Relay } from '../../../src/local/relay.js';
import { until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene } from './scene.js';

type Command = readonly Argument[];

/** How each way to wait is served: by the nth push. */
const WAYS: readonly { readonly wait: Command; readonly push: (n: number) => Command }[] = [
  { wait: ['BLPOP', 'l', 'l2', 0], push: (n) => ['RPUSH', 'l', `e${n}`] },
  { wait: ['BLMOVE', 'l', 'to', 'LEFT', 'RIGHT', 0], push: (n) => ['RPUSH', 'l', `e${n}`] },
  { wait: ['BZPOPMIN', 'z', 0], push: (n) => ['ZADD', 'z', n, `e${n}`] },
  {
    wait: ['XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', 1, 'BLOCK', 0, 'STREAMS', 'x', '>'],
    push: (n) => ['XADD', 'x', `${n}-1`, 'f', `e${n}`],
  },
];
const WHEN = ['when both wait', 'before the second one asks'] as const;

const blockedAt = async (server: Redis): Promise<number> =>
  Number(/blocked_clients:(\d+)/.exec(await server.info('clients'))?.[1]);

interface Place {
  readonly relay: Relay;
  readonly authority: Redis;
  readonly writer: Wire;
}

async function placeOf(scene: Scene, stage: string): Promise<Place> {
  const live = stage === 'live';
  const writer = await scene.wire();
  await writer.pipeline([
    ['XGROUP', 'CREATE', 'x', 'g', '$', 'MKSTREAM'],
    ['SELECT', 1],
    ['XGROUP', 'CREATE', 'x', 'g', '$', 'MKSTREAM'],
    ['SELECT', 0],
  ]);
  return {
    relay: live ? scene.toTarget : scene.toSource,
    authority: scene.client({ of: live ? scene.target : scene.source }),
    writer,
  };
}

/** Two clients that ask for the same, the first of which needs a connection that takes its time. */
async function twoThatWait(
  scene: Scene,
  { relay, authority, writer }: Place,
  wait: Command,
  between: () => Promise<unknown>,
): Promise<[Wire, Wire]> {
  const [holder, first, second] = [await scene.wire(), await scene.wire(), await scene.wire()];
  holder.send('BLPOP', 'other', 0);
  await until(async () => (await blockedAt(authority)) === 1);
  relay.holdLater('up');
  first.send(...wait);
  await until(() => relay.waiting('up') > 0);
  // The holder releases its connection.
  await writer.ask('RPUSH', 'other', 'o');
  await holder.frame();
  await between();
  second.send(...wait);
  await sleep(30);
  relay.release();
  return [first, second];
}

for (const stage of ['shadow', 'live', 'off'] as const) {
  for (const when of WHEN) {
    test(`who asked first is served first, although its connection took longer and a push came ${when}, in ${stage}`, async () => {
      for (const { wait, push } of WAYS) {
        await withScene({ default: { stage } }, async (scene) => {
          const place = await placeOf(scene, stage);
          const { writer, authority } = place;
          const early = when === 'before the second one asks';
          const [first, second] = await twoThatWait(scene, place, wait, async () => early && writer.ask(...push(1)));
          await until(async () => (await blockedAt(authority)) === (early ? 1 : 2));
          if (!early) await writer.ask(...push(1));
          assert.match(await first.frame(), /e1/, String(wait[0]));
          assert.deepEqual(second.unread, []);
          await writer.ask(...push(2));
          assert.match(await second.frame(), /e2/, String(wait[0]));
          if (stage !== 'off') await scene.assertEqual();
          assert.deepEqual(scene.shard.snapshot().mismatches, {});
        });
      }
    });
  }
}

test('a client of another protocol that asked later has no advantage', async () => {
  await withScene({}, async (scene) => {
    const { relay, authority, writer } = await placeOf(scene, 'shadow');
    const [first, second] = [await scene.wire(), await scene.wire()];
    await second.ask('HELLO', 3);
    await second.ask('BLPOP', 'none', 0.01);
    relay.holdLater('up');
    first.send('BLPOP', 'l', 0);
    await until(() => relay.waiting('up') > 0);
    second.send('BLPOP', 'l', 0);
    // The proxy has the second one's command: it waits there, where nothing shows it.
    await sleep(30);
    relay.release();
    await until(async () => (await blockedAt(authority)) === 2);
    await writer.ask('RPUSH', 'l', 'a');
    assert.match(await first.frame(), /a$/);
    await writer.ask('RPUSH', 'l', 'b');
    assert.match(await second.frame(), /b$/);
    await scene.assertEqual();
  });
});

test('a client that disconnects while its blocking command is on the way delays no other client', async () => {
  await withScene({}, async (scene) => {
    const place = await placeOf(scene, 'shadow');
    const leaving = await scene.wire();
    place.relay.holdLater('up');
    leaving.send('BLPOP', 'l', 0);
    await until(() => place.relay.waiting('up') > 0);
    const { clients } = scene.shard.snapshot();
    leaving.destroy();
    await until(() => scene.shard.snapshot().clients < clients);
    place.relay.release();
    await place.writer.ask('RPUSH', 'l', 'a');
    const next = await scene.wire();
    assert.match(await next.ask('BLPOP', 'l', 0), /a$/);
    const sent = Number(/cmdstat_blpop:calls=(\d+)/.exec(await place.authority.info('commandstats'))?.[1] ?? 0);
    assert.equal(sent, 0, 'nobody was left to wait for');
    await scene.assertEqual();
  });
});

test('those that wait keep their order at the new authority when a stage changes', async () => {
  await withScene({}, async (scene) => {
    const { relay, authority, writer } = await placeOf(scene, 'shadow');
    const waiting: Wire[] = [];
    const links: Relay['links'][number][] = [];
    for (let n = 0; n < 4; n++) {
      const known = new Set(relay.links);
      const wire = await scene.wire();
      wire.send('BLPOP', 'l', 0);
      await until(async () => (await blockedAt(authority)) === n + 1);
      waiting.push(wire);
      links.push(...relay.links.filter((link) => !known.has(link)).slice(-1));
    }
    // The first one's end comes last.
    links[0].hold('down');
    const flip = scene.shard.shard.changeStage({ workload: 'default', stage: 'live' });
    await until(async () => (await blockedAt(authority)) === 0);
    // The ends of the others have come to the proxy.
    await sleep(30);
    links[0].release();
    await flip;
    const target = scene.client({ of: scene.target });
    await until(async () => (await blockedAt(target)) === 4);
    await writer.ask('RPUSH', 'l', 'a', 'b', 'c', 'd');
    const taken = await Promise.all(waiting.map((wire) => wire.frame()));
    assert.deepEqual(
      taken.map((reply) => reply.slice(-1)),
      ['a', 'b', 'c', 'd'],
    );
    await scene.assertEqual();
  });
});
