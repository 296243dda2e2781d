/**
 * Streams with their groups, copied in chunks while they are written and read.
 *
 * Needs real servers: XINFO STREAM FULL, XCLAIM and XSETID of both servers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Redis } from 'ioredis';
import {
  assertCopied,
  DIRECTIONS,
  hammered,
  KEY,
  oneOf,
  random,
  wayOf,
  withScene,
  type Next,
  type Scene,
} from './large.js';

const COUNT = 2000;
const GROUPS = ['g0', 'g1', 'g2'];
const group = (): string => oneOf(...GROUPS);
const consumer = (): string => `c${random(5)}`;
const id = (): string => `${1 + random(COUNT)}-${random(3)}`;

async function fill({ before }: Scene): Promise<void> {
  const pipeline = before.pipeline();
  for (let i = 1; i <= COUNT; i++)
    pipeline.xadd(KEY, `${i}-${i % 3}`, 'field', `value ${i}`, `odd ${i % 2}`, 'x'.repeat(i % 60));
  for (const name of GROUPS) pipeline.xgroup('CREATE', KEY, name, '0');
  for (let i = 0; i < 12; i++)
    pipeline.call('XREADGROUP', 'GROUP', GROUPS[i % 3], `c${i % 4}`, 'COUNT', 350, 'STREAMS', KEY, '>');
  // What is trimmed while it is pending is another test's.
  for (const name of GROUPS)
    pipeline.xack(KEY, name, ...Array.from({ length: 1100 }, (_, i) => `${i + 1}-${(i + 1) % 3}`));
  pipeline.xgroup('CREATECONSUMER', KEY, 'g1', 'idle');
  await pipeline.exec();
}

const next: Next = () =>
  oneOf<readonly (string | number)[]>(
    ['XADD', KEY, '*', 'a', 'b'],
    ['XADD', KEY, 'MAXLEN', '=', COUNT - 100 - random(50), '*', 'a', 'b', 'c', 'd'],
    ['XADD', KEY, 'MAXLEN', '~', COUNT - 300, '*', 'a', 'b'],
    ['XREADGROUP', 'GROUP', group(), consumer(), 'COUNT', 2, 'STREAMS', KEY, '>'],
    ['XACK', KEY, group(), id(), id()],
    ['XREADGROUP', 'GROUP', group(), consumer(), 'COUNT', 2, 'STREAMS', KEY, '0'],
    ['XTRIM', KEY, 'MAXLEN', '=', COUNT - 150],
    ['XRANGE', KEY, id(), '+', 'COUNT', 3],
    ['XLEN', KEY],
    ['XGROUP', 'CREATECONSUMER', KEY, group(), `new${random(20)}`],
  );

/** Groups, consumers and what is pending, as both servers tell it. */
async function groupsOf(client: Redis): Promise<unknown> {
  const groups: unknown[] = [];
  const map = (flat: unknown[]): Record<string, unknown> =>
    Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]]] : [])));
  const infos = ((await client.xinfo('GROUPS', KEY)) as unknown[][]).map(map);
  for (const info of infos) {
    const consumers = ((await client.xinfo('CONSUMERS', KEY, info.name as string)) as unknown[][]).map(map);
    const pending = (await client.xpending(KEY, info.name as string, '-', '+', 100_000)) as [
      string,
      string,
      number,
      number,
    ][];
    groups.push({
      name: info.name,
      last: info['last-delivered-id'],
      consumers: consumers.map(({ name, pending: count }) => [name, count]).sort(),
      pending: pending.map(([entry, owner, , deliveries]) => [entry, owner, deliveries]),
    });
  }
  const stream = map((await client.xinfo('STREAM', KEY)) as unknown[]);
  return { groups, last: stream['last-generated-id'] };
}

async function assertGroups({ rig, authority, mirror }: Scene): Promise<void> {
  const [there, here] = await Promise.all([authority, mirror].map((server) => groupsOf(rig.client({ of: server }))));
  assert.deepEqual(here, there);
}

for (const stage of DIRECTIONS) {
  test(`a stream is copied with its groups, ${wayOf(stage)}, quietly and while it is written and read`, async () => {
    await withScene(stage, async (scene) => {
      const { rig, copy } = scene;
      await fill(scene);
      await scene.before.xdel(KEY, `${COUNT}-${COUNT % 3}`, '1900-1');
      const quiet = await copy();
      assert.deepEqual([quiet.outcome, quiet.restarts, quiet.elements], ['copied', 0, COUNT - 2]);
      await assertCopied(scene);
      await assertGroups(scene);
      const idle = async (server: Scene['mirror']): Promise<number> =>
        (
          (await rig.client({ of: server }).xpending(KEY, 'g0', '-', '+', 1)) as [string, string, number, number][]
        )[0][2];
      const [there, here] = await Promise.all([scene.authority, scene.mirror].map(idle));
      assert.ok(Math.abs(there - here) < 250, `idle for ${there} and ${here} ms`);
      const { result, commands } = await hammered(rig, 4, next, () => copy());
      assert.equal(result.outcome, 'copied', result.why ?? '');
      assert.ok(commands > 20, `${commands} commands`);
      await assertCopied(scene);
      await assertGroups(scene);
    });
  });
}

for (const stage of DIRECTIONS) {
  test(`entries that are pending and deleted are copied, ${wayOf(stage)}`, async () => {
    await withScene(stage, async (scene) => {
      const { copy, before } = scene;
      await fill(scene);
      await before.xdel(KEY, '1200-0', '1301-2', '1399-1');
      await before.xtrim(KEY, 'MAXLEN', COUNT - 1150);
      let chunks = 0;
      const copied = await copy({
        pace: async () => void (++chunks === 12 && (await scene.rig.client().xack(KEY, 'g1', '1200-0', '1110-0'))),
      });
      assert.deepEqual([copied.outcome, copied.restarts], ['copied', 0], copied.why ?? '');
      await assertCopied(scene);
      await assertGroups(scene);
    });
  });
}
